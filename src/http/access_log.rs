//! The log of requests: a line for each, when it has ended, also where it was refused or its caller hung up.
//!
//! A record is filled in wherever something of the request becomes known, and written when its last holder drops it. So a
//! stream has its line at its true end, and a request whose caller left has what it cost in the end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, HttpBody};
use axum::http::{Method, Request, StatusCode};
use axum::response::Response;
use tokio::time::Instant;

use crate::gateway::{RequestObserver, RequestStage, SHUTTING_DOWN};
use crate::traces::{LiveTrace, RootDetails, Tracer};
use stint_sessions::history::RequestRecord;
use stint_types::catalog::ChoiceOutcome;
use stint_types::trace::TraceLink;
use stint_types::units::{AccountId, Money, Tokens};

use super::endpoint_counters::EndpointCounters;
use super::headers;
use super::held_body::hold;

/// What the lines are filtered by.
pub const TARGET: &str = "stint::requests";

/// Paths that are asked all the time by machines.
const UNLOGGED: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// As much as is shown of what a caller wrote.
const SHOWN_MAX: usize = 128;

tokio::task_local! {
    /// The record of the request that this task handles.
    static CURRENT: Arc<AccessRecord>;
}

/// What the layer needs: the counters of answers, and where traces begin, if anywhere.
#[derive(Debug, Clone)]
pub(super) struct AccessContext {
    pub(super) counters: EndpointCounters,
    pub(super) tracer: Option<Tracer>,
}

/// What is known of one request so far.
#[derive(Debug)]
pub(super) struct AccessRecord {
    began: Instant,
    method: Method,
    path: Box<str>,
    details: Mutex<AccessDetails>,
    /// Its trace, and the endpoint that it is for.
    trace: Option<(LiveTrace, &'static str)>,
}

#[derive(Debug, Default)]
struct AccessDetails {
    id: Option<String>,
    key: Option<AccountId>,
    requested_model: Option<Box<str>>,
    model: Option<Arc<str>>,
    target: Option<Arc<str>>,
    status: Option<StatusCode>,
    code: Option<Arc<str>>,
    param: Option<Box<str>>,
    ended: Option<Arc<str>>,
    prompt: Option<Tokens>,
    thinking: Option<Tokens>,
    answer: Option<Tokens>,
    cost: Option<Money>,
    first_token: Option<f64>,
    /// How long the caller waited, or stayed.
    seconds: Option<f64>,
}

/// Keeps a record of every request of the API, and counts the answers.
pub(super) async fn record<F: Future<Output = Response>>(
    AccessContext { counters, tracer }: &AccessContext,
    request: Request<Body>,
    next: impl FnOnce(Request<Body>) -> F,
) -> Response {
    if let Some(path) = UNLOGGED.into_iter().find(|path| *path == request.uri().path()) {
        let response = next(request).await;
        counters.count(path, response.status());
        return response;
    }
    let record = Arc::new(AccessRecord::new(
        &request,
        tracer.as_ref().map(|tracer| begin_trace(tracer, counters, &request)),
    ));
    let caller = CallerGuard(record.clone());
    // The record has the path shortened, which is never that of an endpoint without variables.
    let response = CURRENT.scope(record.clone(), next(request)).await;
    counters.count(&record.path, response.status());
    caller.0.set_response(&response);
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    response.map(|body| hold(body, caller))
}

/// Writes the line of a request that is answered before it reaches the layer.
pub(super) fn record_early<B>(request: &Request<B>, answer: impl FnOnce() -> Response) -> Response {
    let record = Arc::new(AccessRecord::new(request, None));
    let caller = CallerGuard(record.clone());
    let response = CURRENT.sync_scope(record, answer);
    caller.0.set_response(&response);
    response
}

/// A trace that goes on from the caller's, where that has one.
fn begin_trace<B>(
    tracer: &Tracer,
    counters: &EndpointCounters,
    request: &Request<B>,
) -> (LiveTrace, &'static str) {
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let trace = tracer.begin(header("traceparent"), header("tracestate"));
    (trace, counters.endpoint(request.uri().path()))
}

/// The record of the request at hand, where there is one.
pub(super) fn current() -> Option<Arc<AccessRecord>> {
    CURRENT.try_with(Arc::clone).ok()
}

/// Notes something about the request at hand.
pub(super) fn note(what: impl FnOnce(&AccessRecord)) {
    // Where nothing is recorded there is nothing to note.
    let _ = CURRENT.try_with(|record| what(record));
}

/// The caller's part of a record: dropping it says that the caller has all, or has gone.
struct CallerGuard(Arc<AccessRecord>);

impl Drop for CallerGuard {
    fn drop(&mut self) {
        let seconds = self.0.began.elapsed().as_secs_f64();
        self.0.details().seconds = Some(seconds);
    }
}

impl AccessRecord {
    fn new<B>(request: &Request<B>, trace: Option<(LiveTrace, &'static str)>) -> AccessRecord {
        AccessRecord {
            began: Instant::now(),
            method: request.method().clone(),
            path: truncated(request.uri().path()),
            details: Mutex::default(),
            trace,
        }
    }

    /// What upstreams are told of its trace.
    pub(super) fn trace_link(&self) -> Option<Arc<TraceLink>> {
        self.trace.as_ref()?.0.link()
    }

    /// Whose key it carried.
    pub(super) fn set_key(&self, account: &AccountId) {
        self.details().key = Some(account.clone());
    }

    /// Which model or route was asked for.
    pub(super) fn set_requested_model(&self, model: &str) {
        self.details().requested_model = Some(truncated(model));
    }

    /// Who served it, and what that cost, where there is no outcome that tells.
    pub(super) fn set_served(&self, model: &Arc<str>, prompt: Tokens, cost: Option<Money>) {
        let mut details = self.details();
        details.model = Some(model.clone());
        (details.prompt, details.cost) = (Some(prompt), cost);
    }

    /// It is answered with an error of that code, or else of that kind, about a member of the request.
    pub(super) fn set_error_code(&self, code: &str, param: Option<&str>) {
        let mut details = self.details();
        details.code = Some(code.into());
        details.param = param.map(truncated);
    }

    fn set_response(&self, response: &Response) {
        let id = headers::request_id_of(response.headers()).and_then(|id| id.to_str().ok());
        let mut details = self.details();
        details.status = Some(response.status());
        details.id = id.map(str::to_owned);
        if response.status().is_success() {
            // It was an error on the way, and was mended.
            (details.code, details.param) = (None, None);
        }
    }

    fn details(&self) -> MutexGuard<'_, AccessDetails> {
        // Every change is whole.
        self.details.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RequestObserver for AccessRecord {
    fn dispatched(&self, model: &Arc<str>, target: &Arc<str>) {
        let mut details = self.details();
        (details.model, details.target) = (Some(model.clone()), Some(target.clone()));
        drop(details);
        self.trace.iter().for_each(|(trace, _)| trace.dispatched(model, target));
    }

    fn reached(&self, stage: RequestStage<'_>) {
        self.trace.iter().for_each(|(trace, _)| trace.reached(&stage));
    }

    fn settled(&self, record: &Arc<RequestRecord>) {
        self.trace.iter().for_each(|(trace, _)| trace.settled(record));
        let outcome = &record.outcome;
        let id = record.decision.id.to_string();
        let sum = |of: fn(&ChoiceOutcome) -> Tokens| Some(outcome.choices.iter().map(of).sum());
        let mut details = self.details();
        // Who hung up before the answer's head was there has it from here.
        details.id.get_or_insert(id);
        details.model = Some(outcome.model.clone());
        details.ended = Some(outcome.ended.clone());
        details.prompt = outcome.choices.first().map(|choice| choice.prompt);
        (details.thinking, details.answer) = (sum(|choice| choice.thinking), sum(|choice| choice.solution));
        details.cost = (!outcome.unbooked).then_some(outcome.cost);
        details.first_token = outcome.first_token;
        if let Some(error) = &outcome.error {
            details.code = Some(error.clone());
        }
    }
}

impl AccessDetails {
    /// What a trace says of the request itself.
    fn as_root(&self, method: &Method, endpoint: &'static str) -> RootDetails {
        RootDetails {
            method: method.to_string(),
            endpoint,
            id: self.id.clone(),
            account: self.key.as_ref().map(|key| key.as_str().to_owned()),
            status: self.status.map(|status| status.as_u16()),
            code: self.code.as_deref().map(str::to_owned),
            outcome: self.outcome(),
        }
    }

    /// How it ended, in a word.
    fn outcome(&self) -> &'static str {
        match (self.ended.as_deref(), self.status) {
            (Some("finished" | "emptied"), _) => "answered",
            // Its caller was told so.
            (Some("hung_up"), Some(_)) if self.code.as_deref() == Some(SHUTTING_DOWN) => "failed",
            (Some("hung_up"), _) | (None, None) => "hung_up",
            (Some(_), _) => "failed",
            (None, Some(status)) if status.as_u16() < 400 => "answered",
            (None, Some(StatusCode::INTERNAL_SERVER_ERROR | StatusCode::BAD_GATEWAY)) => "failed",
            (None, Some(StatusCode::GATEWAY_TIMEOUT)) => "failed",
            (None, Some(_)) => "refused",
        }
    }
}

impl Drop for AccessRecord {
    fn drop(&mut self) {
        let details = self.details.get_mut().unwrap_or_else(PoisonError::into_inner);
        tracing::info!(
            target: TARGET,
            request = details.id,
            key = details.key.as_ref().map(AccountId::as_str),
            method = self.method.as_str(),
            path = &*self.path,
            asked = details.requested_model.as_deref(),
            model = details.model.as_deref(),
            target = details.target.as_deref(),
            status = details.status.map(|status| status.as_u16()),
            outcome = details.outcome(),
            code = details.code.as_deref(),
            param = details.param.as_deref(),
            prompt_tokens = details.prompt.map(|tokens| tokens.0),
            thinking_tokens = details.thinking.map(|tokens| tokens.0),
            answer_tokens = details.answer.map(|tokens| tokens.0),
            cost_usd = details.cost.map(tracing::field::display),
            seconds = details.seconds.map(round_to_millis),
            first_token_seconds = details.first_token.map(round_to_millis),
            "request"
        );
        if let Some((trace, endpoint)) = self.trace.take() {
            trace.end(|| details.as_root(&self.method, endpoint));
        }
    }
}

/// The beginning of what a caller wrote.
fn truncated(text: &str) -> Box<str> {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// Seconds, to the millisecond.
fn round_to_millis(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}
