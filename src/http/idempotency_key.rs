//! Requests with an `Idempotency-Key`: a repeated request gets the stored answer and does not run again. `answer` and the
//! endpoints with a flow of their own call it.

use axum::body::{Body as Wire, to_bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use stint_sessions::idempotency::{
    Fingerprint, IdempotencyKey, IdempotencyLookup, IdempotencyTicket, StoredAnswer, StoredBody,
};
use stint_types::metrics::Metrics;
use stint_types::tenant::Tenant;
use stint_types::units::RequestId;

use super::api_state::ApiState;
use super::error::{ApiError, codes};
use super::headers;
use super::headers::{REPLAYED, SHOULD_RETRY};

/// The header.
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The longest key.
const KEY_MAX: usize = 255;

/// What a request with or without a key is to get.
pub(super) enum IdempotencyDecision {
    /// It runs, with this ticket if it has a key.
    Proceed(Option<IdempotencyTicket>),
    /// It was answered before, so.
    Replay(Response),
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct IdempotentRequest<'a> {
    /// Of which endpoint.
    pub(super) endpoint: &'static str,
    /// With which body; there where it has a key.
    pub(super) digest: Option<&'a BodyDigest>,
}

/// A hash of everything that a body says, whatever the order of its members and however it is spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BodyDigest([u8; 32]);

impl BodyDigest {
    /// That of these members. It copies them: of a large body it is made where that is taken apart.
    pub(super) fn of(members: &Map<String, Value>) -> BodyDigest {
        let mut body = Value::Object(members.clone());
        body.sort_all_objects();
        BodyDigest(Sha256::digest(body.to_string()).into())
    }
}

/// Looks at the key, if there is one, and at what there is under it. The body is a valid one.
///
/// # Errors
/// 400 for a malformed key, 409 where the same request runs or has no answer to give, 422 where the key stands for
/// another request, 503 where nobody knows.
pub(super) async fn check_key(
    service: &ApiState,
    tenant: &Tenant,
    headers: &HeaderMap,
    asked: IdempotentRequest<'_>,
) -> Result<IdempotencyDecision, ApiError> {
    let Some(key) = key(headers)? else { return Ok(IdempotencyDecision::Proceed(None)) };
    if service.idempotency.settings().keep.is_zero() {
        return Err(ApiError::invalid(Some(IDEMPOTENCY_KEY.as_str()), "is switched off here; leave it out"));
    }
    let scope = IdempotencyKey { account: tenant.account.clone(), owner: tenant.id, key: key.into() };
    let asked = fingerprint(&scope, headers, asked);
    let found = service.idempotency.lookup(scope, asked, service.gateway.now()).await;
    let found = found.map_err(|error| {
        tracing::error!(error = &error as &dyn std::error::Error, "an idempotency key was refused");
        ApiError::overloaded(error.to_string(), std::time::Duration::from_secs(1))
    })?;
    service.metrics.storage.idempotency.with_label_values(&[outcome(&found)]).inc();
    match found {
        IdempotencyLookup::Free(ticket) => Ok(IdempotencyDecision::Proceed(Some(ticket))),
        IdempotencyLookup::Running => Err(ApiError::key_in_flight()),
        IdempotencyLookup::Mismatch => Err(ApiError::key_reused()),
        IdempotencyLookup::Interrupted(id) => Err(ApiError::idempotency_conflict(
            codes::IDEMPOTENCY_INTERRUPTED,
            format!(
                "{id}, which used this idempotency key, was cut off before its answer was complete; what it may have \
                 used is charged, and it is not run again: ask with a new key"
            ),
        )),
        IdempotencyLookup::Answered(id, answer) => replay(id, answer).map(IdempotencyDecision::Replay),
    }
}

/// What there may be under a key.
const BEGAN: &str = "began";
const IN_FLIGHT: &str = "in_flight";
const REUSED: &str = "reused";
const INTERRUPTED: &str = "interrupted";
const ANSWERED: &str = "replayed";
const NOT_KEPT: &str = "not_kept";

/// Begins the counts of what there is under a key.
pub(super) fn zero_metrics(metrics: &Metrics) {
    for outcome in [BEGAN, IN_FLIGHT, REUSED, INTERRUPTED, ANSWERED, NOT_KEPT] {
        metrics.storage.idempotency.with_label_values(&[outcome]);
    }
}

fn outcome(found: &IdempotencyLookup) -> &'static str {
    match found {
        IdempotencyLookup::Free(_) => BEGAN,
        IdempotencyLookup::Running => IN_FLIGHT,
        IdempotencyLookup::Mismatch => REUSED,
        IdempotencyLookup::Interrupted(_) => INTERRUPTED,
        IdempotencyLookup::Answered(_, StoredAnswer { body: StoredBody::Whole(_), .. }) => ANSWERED,
        IdempotencyLookup::Answered(..) => NOT_KEPT,
    }
}

/// Exactly one, of visible ASCII.
fn key(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let wrong = || {
        ApiError::invalid(
            Some(IDEMPOTENCY_KEY.as_str()),
            "must be one value of 1 to 255 visible ASCII characters",
        )
    };
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().map_err(|_| wrong())?;
    let is_good = (1..=KEY_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_good && values.next().is_none() { Ok(Some(text)) } else { Err(wrong()) }
}

/// Everything that says what is asked for, whatever the order of its members and however it is spaced. The key itself
/// is in it, so that one prompt does not have one hash everywhere.
fn fingerprint(scope: &IdempotencyKey, headers: &HeaderMap, asked: IdempotentRequest<'_>) -> Fingerprint {
    let body = asked.digest.map_or(&[][..], |digest| &digest.0);
    let tells = |name: &str| name.starts_with("x-budget-") || name == "x-episode-id";
    let budget = headers.iter().filter(|(name, _)| tells(name.as_str()));
    let mut budget: Vec<_> = budget.map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    budget.sort_unstable();
    let fixed = [asked.endpoint.as_bytes(), scope.account.as_str().as_bytes(), scope.key.as_bytes()];
    let budget = budget.into_iter().flat_map(|(name, value)| [name.as_bytes(), value]);
    let mut hash = Sha256::new();
    for part in fixed.into_iter().chain(budget).chain([body]) {
        // The lengths keep the parts apart.
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    Fingerprint(hash.finalize().into())
}

/// The answer as it went out the first time.
fn replay(id: RequestId, answer: StoredAnswer) -> Result<Response, ApiError> {
    let cost = answer.header("x-cost-usd").map_or(String::new(), |cost| format!(" and cost {cost} dollars"));
    let conflict = |code, what: &str| {
        let message = format!("{id}, which used this idempotency key, ended{cost}; {what}");
        Err(ApiError::idempotency_conflict(code, message))
    };
    let bytes = match answer.body {
        StoredBody::Whole(bytes) => bytes,
        StoredBody::Streamed => {
            return conflict(
                codes::IDEMPOTENCY_STREAM_DONE,
                "streams are not stored, and it is not run again",
            );
        }
        StoredBody::TooLarge => {
            return conflict(
                codes::IDEMPOTENCY_TOO_LARGE,
                "its answer was too large to keep, and it is not run again",
            );
        }
    };
    let mut response = Response::new(Wire::from(bytes));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in answer.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    if !response.status().is_success() {
        // It will be the same again.
        response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    Ok(response)
}

/// Stores a whole answer before it goes out.
pub(super) async fn store_answer(ticket: &IdempotencyTicket, response: Response) -> Response {
    let (parts, body) = response.into_parts();
    // It lies in memory already.
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return ApiError::internal(RequestId::new(), "an answer was not whole").into_response();
    };
    let (status, headers) = (parts.status.as_u16(), headers::text_headers(&parts.headers));
    ticket.store_answer(StoredAnswer { status, headers, body: StoredBody::Whole(bytes.clone()) }).await;
    Response::from_parts(parts, Wire::from(bytes))
}

/// What is kept of a streamed answer while it goes out.
#[derive(Debug)]
pub(super) struct StreamRecorder {
    ticket: IdempotencyTicket,
    headers: Vec<(String, String)>,
    /// The events so far, while streams are kept and this one is not too large.
    recorded: Option<String>,
    most: usize,
}

impl StreamRecorder {
    /// A stream that begins with these headers.
    pub(super) fn new(ticket: IdempotencyTicket, headers: &HeaderMap) -> StreamRecorder {
        let most = ticket.stream_max();
        StreamRecorder {
            ticket,
            headers: headers::text_headers(headers),
            recorded: most.map(|_| String::new()),
            most: most.unwrap_or(0),
        }
    }

    /// Records the next events, while they fit.
    pub(super) fn push(&mut self, text: &str) {
        self.recorded = self.recorded.take().filter(|recorded| recorded.len() + text.len() <= self.most);
        if let Some(recorded) = &mut self.recorded {
            recorded.push_str(text);
        }
    }

    /// Stores the ended stream, and waits a bounded time for that.
    pub(super) async fn finish(mut self, cost: Option<String>) {
        self.headers.extend(cost.map(|cost| (headers::COST.as_str().to_owned(), cost)));
        let body = match self.recorded {
            Some(recorded) => StoredBody::Whole(recorded.into()),
            None if self.most > 0 => StoredBody::TooLarge,
            None => StoredBody::Streamed,
        };
        let status = StatusCode::OK.as_u16();
        self.ticket.store_answer(StoredAnswer { status, headers: self.headers, body }).await;
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;

    use super::*;
    use crate::http::strict;
    use stint_types::tenant::KeyId;
    use stint_types::units::AccountId;

    fn of(body: &str, headers: &[(&'static str, &'static str)]) -> Fingerprint {
        let account = AccountId::new("a");
        let scope = IdempotencyKey { owner: KeyId::of_declared(&account), account, key: "k".into() };
        let digest = BodyDigest::of(&strict::object(body.as_bytes(), strict::VALUES_MAX).unwrap());
        let headers: HeaderMap = headers
            .iter()
            .map(|&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        fingerprint(
            &scope,
            &headers,
            IdempotentRequest { endpoint: "chat.completions", digest: Some(&digest) },
        )
    }

    #[test]
    fn a_request_is_the_same_in_any_order_and_spacing_and_another_with_any_other_word() {
        let body = r#"{"model":"m","budget":{"effort":1,"cost_usd":"1"}}"#;
        let budget = ("x-budget-effort", "1");
        let same = [
            of(r#"{ "budget": {"cost_usd":"1", "effort":1}, "model": "m" }"#, &[budget]),
            of(body, &[budget, ("authorization", "Bearer x"), ("x-stainless-retry-count", "2")]),
        ];
        assert_eq!(same, [of(body, &[budget]); 2]);
        let others = [
            of(body, &[]),
            of(body, &[("x-budget-effort", "2")]),
            of(body, &[budget, ("x-episode-id", "task-42")]),
            of(r#"{"model":"m","budget":{"effort":2,"cost_usd":"1"}}"#, &[budget]),
            of(r#"{"model":"m","budget":{"effort":1.0,"cost_usd":"1"}}"#, &[budget]),
        ];
        assert!(others.iter().all(|other| *other != of(body, &[budget])));
    }
}
