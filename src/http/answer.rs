//! One flow for every API that asks for an answer: admit the request, follow its task, and write its updates in the API's own
//! form. The endpoints of all three dialects call it.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{Extensions, HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};

use crate::gateway::{Denial, RequestObserver};
use crate::guardrail::{GuardrailChain, Objection};
use stint_sessions::idempotency::IdempotencyTicket;
use stint_types::chat::Request;
use stint_types::tenant::Tenant;
use stint_types::units::Timestamp;

use super::api_state::ApiState;
use super::collected_choice::CollectedChoice;
use super::dialect::ApiDialect;
use super::error::ApiError;
use super::events::{NO_FINAL_REPORT, stream};
use super::idempotency_key::{BodyDigest, IdempotencyDecision, IdempotentRequest, StreamRecorder};
use super::json_response::json_text;
use super::judged_updates::{AnswerUpdate, JudgedUpdates};
use super::{access_log, headers, idempotency_key, images, nested_json};

/// A request that was read and understood.
#[derive(Debug)]
pub(super) struct ParsedRequest {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// What its idempotency key stands for, if it has one.
    pub(super) digest: Option<BodyDigest>,
    /// Where its body is counted.
    pub(super) extensions: Extensions,
    /// Boxed: it is large, and handed on several times.
    pub(super) request: Box<Request>,
    /// Events as they come, or one object.
    pub(super) stream: bool,
}

/// Answers a request, as one object or as events.
///
/// # Errors
/// Those of the request's idempotency key; every other error is an answer.
pub(super) async fn answer(
    service: &ApiState,
    tenant: &Tenant,
    call: ParsedRequest,
    dialect: &impl ApiDialect,
) -> Result<Response, ApiError> {
    nested_json::check(&call.request.messages, &call.extensions)?;
    images::check_urls(service.settings.image_urls, &call.request, &call.extensions, &call.body).await?;
    let request = IdempotentRequest { endpoint: dialect.endpoint(), digest: call.digest.as_ref() };
    match idempotency_key::check_key(service, tenant, &call.headers, request).await? {
        IdempotencyDecision::Proceed(ticket) => {
            Ok(answer_with_ticket(service, tenant, call, ticket, dialect).await)
        }
        IdempotencyDecision::Replay(response) => {
            let about = service.gateway.request_scope(&call.request.model, &call.request.extra);
            Ok(service.with_limit_headers(tenant, &about, response))
        }
    }
}

/// Answers a request that holds its idempotency ticket, if it has a key; an error is an answer too.
pub(super) async fn answer_with_ticket(
    service: &ApiState,
    tenant: &Tenant,
    call: ParsedRequest,
    ticket: Option<IdempotencyTicket>,
    dialect: &impl ApiDialect,
) -> Response {
    let created = Timestamp::now();
    access_log::note(|record| record.set_requested_model(&call.request.model));
    let observer = access_log::current().map(|record| record as Arc<dyn RequestObserver>);
    let mut request = call.request;
    let mut about = service.gateway.request_scope(&request.model, &request.extra);
    request.trace = access_log::current().and_then(|record| record.trace_link());
    let chain = service.guardrails.chain(&tenant.account, &request.model);
    let admitted = match judged(service, tenant, &mut request, chain.as_ref(), observer.as_deref()).await {
        Ok(()) => service.gateway.admit(tenant, request, ticket.clone(), observer).await,
        Err(RefusedRequest::Judged(objection)) => {
            return service.with_limit_headers(tenant, &about, ApiError::from(objection).into_response());
        }
        Err(RefusedRequest::Free(denial)) => Err(denial),
    };
    let task = match admitted {
        Ok(task) => task,
        Err(denial) => {
            let refusal = images::with_image_path(*denial.refusal, &call.extensions, &call.body).await;
            let named = Denial { refusal: refusal.into(), ..denial };
            return service.with_limit_headers(tenant, &about, ApiError::from(named).into_response());
        }
    };
    let (id, episode, answering) = (task.id(), task.episode().cloned(), task.model().clone());
    let updates = JudgedUpdates::new(task, chain);
    let answered = if call.stream {
        streamed(service, updates, created, dialect, ticket.clone()).await
    } else {
        whole(updates, created, dialect).await
    };
    let is_streaming = call.stream && answered.is_ok();
    let is_unjudged = answered.as_ref().is_err_and(ApiError::is_unjudged);
    let problem = |problem: ApiError| dialect.error_response(problem.with_episode(episode.as_ref()), id);
    let mut response = answered.unwrap_or_else(problem);
    headers::set_request_id(response.headers_mut(), id);
    episode.iter().for_each(|episode| headers::set_episode(response.headers_mut(), episode));
    // A stream is stored when it ends; that a guardrail could not judge an answer is no answer.
    if let (Some(ticket), false) = (ticket, is_streaming || is_unjudged) {
        response = idempotency_key::store_answer(&ticket, response).await;
    }
    about.model = Some(answering.name());
    service.with_limit_headers(tenant, &about, response)
}

/// Why a request is refused before it is admitted.
enum RefusedRequest {
    /// Nobody need be asked for it.
    Free(Denial),
    /// A guardrail objects.
    Judged(Objection),
}

/// Has the guardrails judge a request that is not refused anyway: who is refused for free costs no hook anything.
async fn judged(
    service: &ApiState,
    tenant: &Tenant,
    request: &mut Request,
    chain: Option<&GuardrailChain>,
    observer: Option<&dyn RequestObserver>,
) -> Result<(), RefusedRequest> {
    let Some(chain) = chain.filter(|chain| chain.judges_requests()) else { return Ok(()) };
    service.gateway.precheck(tenant, request, observer).await.map_err(RefusedRequest::Free)?;
    chain.before(request).await.map_err(RefusedRequest::Judged)
}

/// The first update decides the status. A long silence decides for 200, so that comments can be sent.
async fn streamed(
    service: &ApiState,
    mut updates: JudgedUpdates,
    created: Timestamp,
    dialect: &impl ApiDialect,
    ticket: Option<IdempotencyTicket>,
) -> Result<Response, ApiError> {
    let heartbeat = service.settings.heartbeat;
    let first = match tokio::time::timeout(heartbeat, updates.next()).await {
        Ok(Some(AnswerUpdate::Failed(problem))) => return Err(problem),
        Ok(None) => return Err(ApiError::internal(updates.task.id(), NO_FINAL_REPORT)),
        Ok(first) => first,
        Err(_) => None,
    };
    let task = &updates.task;
    let writer = dialect.stream_writer(task, created);
    let mut more = HeaderMap::new();
    more.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    more.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    more.insert(header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    headers::set_reserved(&mut more, task.reserved());
    headers::set_request_id(&mut more, task.id());
    task.episode().into_iter().for_each(|episode| headers::set_episode(&mut more, episode));
    let recorder = ticket.map(|ticket| StreamRecorder::new(ticket, &more));
    let body: Body = stream(updates, first, writer, heartbeat, recorder);
    Ok((more, body).into_response())
}

async fn whole(
    mut updates: JudgedUpdates,
    created: Timestamp,
    dialect: &impl ApiDialect,
) -> Result<Response, ApiError> {
    let choices = usize::try_from(updates.task.choices()).unwrap_or(usize::MAX);
    let mut collected = vec![CollectedChoice::default(); choices];
    while let Some(update) = updates.next().await {
        match update {
            AnswerUpdate::Event(index, event) => {
                if let Some(choice) = collected.get_mut(usize::try_from(index).unwrap_or(usize::MAX)) {
                    choice.push(event);
                }
            }
            AnswerUpdate::Restarted => collected.fill(CollectedChoice::default()),
            AnswerUpdate::Failed(problem) => return Err(problem),
            AnswerUpdate::Done(receipt) => {
                let mut response = json_text(dialect.render(&receipt, collected, created).await);
                receipt.cost.iter().for_each(|cost| headers::set_cost(response.headers_mut(), *cost));
                return Ok(response);
            }
        }
    }
    Err(ApiError::internal(updates.task.id(), NO_FINAL_REPORT))
}
