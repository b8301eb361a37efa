//! One flow for every API that asks for an answer: admit, watch the flight, write what it tells in the API's own words.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::chat::Request;
use crate::gateway::{Denial, RequestObserver, RequestReceipt, RequestTask, RequestUpdate};
use crate::idempotency::IdempotencyTicket;
use crate::tenant::Tenant;
use crate::units::{RequestId, Timestamp};

use super::collected_choice::CollectedChoice;
use super::error::ApiError;
use super::events::{NO_FINAL_REPORT, StreamWriter, stream};
use super::idempotency_key::{IdempotencyDecision, IdempotentRequest, StreamRecorder};
use super::router::ApiState;
use super::{access_log, auth, body, headers, idempotency_key, images};

/// How an API writes answers.
pub(super) trait ApiDialect {
    /// The endpoint's name, by which a request is told from the same body for another.
    fn endpoint(&self) -> &'static str;

    /// The whole answer as one object, once what has to be done before it is told is done.
    fn render<'a>(
        &'a self,
        receipt: &'a RequestReceipt,
        said: Vec<CollectedChoice>,
        created: Timestamp,
    ) -> BoxFuture<'a, Value>;

    /// What writes it as events.
    fn stream_writer(&self, flight: &RequestTask, created: Timestamp) -> Box<dyn StreamWriter>;

    /// An error as the API has it.
    fn error_response(&self, problem: ApiError, id: RequestId) -> Response;
}

/// A request whose caller is known and whose body is here.
#[derive(Debug)]
pub(super) struct ReceivedRequest {
    pub(super) tenant: Arc<Tenant>,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Finds out who asks, then reads the JSON body.
///
/// # Errors
/// 401 before a byte of the body is read; as [`body::read`].
pub(super) async fn receive(
    service: &ApiState,
    request: axum::http::Request<Body>,
) -> Result<ReceivedRequest, ApiError> {
    let (parts, body) = request.into_parts();
    let tenant = auth::tenant(&service.keys, &parts.headers)?;
    let body = body::read(&parts.headers, body, &service.settings).await?;
    Ok(ReceivedRequest { tenant, headers: parts.headers, body })
}

/// A request that was read and understood.
#[derive(Debug)]
pub(super) struct ParsedRequest {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) request: Request,
    /// Events as they come, or one object.
    pub(super) stream: bool,
}

/// Answers a request, as one object or as events.
///
/// # Errors
/// What the idempotency key of the request brings up; every other error is an answer.
pub(super) async fn answer(
    service: &ApiState,
    tenant: &Tenant,
    call: ParsedRequest,
    surface: &impl ApiDialect,
) -> Result<Response, ApiError> {
    let asked = IdempotentRequest { endpoint: surface.endpoint(), body: &call.body };
    match idempotency_key::check_key(service, tenant, &call.headers, asked).await? {
        IdempotencyDecision::Proceed(ticket) => {
            Ok(answer_with_ticket(service, tenant, call, ticket, surface).await)
        }
        IdempotencyDecision::Replay(response) => Ok(with_limits(service, tenant, response)),
    }
}

/// Answers a request whose turn it is, as one object or as events; an error is an answer too.
pub(super) async fn answer_with_ticket(
    service: &ApiState,
    tenant: &Tenant,
    call: ParsedRequest,
    ticket: Option<IdempotencyTicket>,
    surface: &impl ApiDialect,
) -> Response {
    let created = Timestamp::now();
    access_log::note(|record| record.set_requested_model(&call.request.model));
    let observer = access_log::current().map(|record| record as Arc<dyn RequestObserver>);
    let flight = match service.gateway.admit(tenant, call.request, ticket.clone(), observer).await {
        Ok(flight) => flight,
        Err(denial) => {
            let named =
                Denial { refusal: images::with_image_path(*denial.refusal, &call.body).into(), ..denial };
            return with_limits(service, tenant, ApiError::from(named).into_response());
        }
    };
    let (id, episode) = (flight.id(), flight.episode().cloned());
    let answered = match call.stream {
        true => streamed(service, flight, created, surface, ticket.clone()).await,
        false => whole(flight, created, surface).await,
    };
    let is_to_come = call.stream && answered.is_ok();
    let problem = |problem: ApiError| surface.error_response(problem.with_episode(episode.as_ref()), id);
    let mut response = answered.unwrap_or_else(problem);
    headers::set_request_id(response.headers_mut(), id);
    episode.iter().for_each(|episode| headers::set_episode(response.headers_mut(), episode));
    // A stream keeps itself, when it ends.
    if let (Some(ticket), false) = (ticket, is_to_come) {
        response = idempotency_key::store_answer(&ticket, response).await;
    }
    with_limits(service, tenant, response)
}

/// The status is decided by the first report; a long silence decides for 200, so that comments can be sent.
async fn streamed(
    service: &ApiState,
    mut flight: RequestTask,
    created: Timestamp,
    surface: &impl ApiDialect,
    ticket: Option<IdempotencyTicket>,
) -> Result<Response, ApiError> {
    let heartbeat = service.settings.heartbeat;
    let first = match tokio::time::timeout(heartbeat, flight.next()).await {
        Ok(Some(RequestUpdate::Failed(refusal))) => return Err(refusal.into()),
        Ok(None) => return Err(ApiError::internal(flight.id(), NO_FINAL_REPORT)),
        Ok(first) => first,
        Err(_) => None,
    };
    let chunks = surface.stream_writer(&flight, created);
    let mut more = HeaderMap::new();
    more.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    more.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    more.insert(header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    headers::set_reserved(&mut more, flight.reserved());
    headers::set_request_id(&mut more, flight.id());
    flight.episode().into_iter().for_each(|episode| headers::set_episode(&mut more, episode));
    let kept = ticket.map(|ticket| StreamRecorder::new(ticket, &more));
    let body: Body = stream(flight, first, chunks, heartbeat, kept);
    Ok((more, body).into_response())
}

async fn whole(
    mut flight: RequestTask,
    created: Timestamp,
    surface: &impl ApiDialect,
) -> Result<Response, ApiError> {
    let choices = usize::try_from(flight.choices()).unwrap_or(usize::MAX);
    let mut said = vec![CollectedChoice::default(); choices];
    while let Some(report) = flight.next().await {
        match report {
            RequestUpdate::Event(index, event) => {
                if let Some(said) = said.get_mut(usize::try_from(index).unwrap_or(usize::MAX)) {
                    said.push(event);
                }
            }
            RequestUpdate::Failed(refusal) => return Err(refusal.into()),
            RequestUpdate::Done(receipt) => {
                let body = surface.render(&receipt, said, created).await.to_string();
                let mut response = ([(header::CONTENT_TYPE, "application/json")], body).into_response();
                headers::set_cost(response.headers_mut(), receipt.cost);
                return Ok(response);
            }
        }
    }
    Err(ApiError::internal(flight.id(), NO_FINAL_REPORT))
}

/// The answer with the headers that tell of the tightest limit.
pub(super) fn with_limits(service: &ApiState, tenant: &Tenant, mut response: Response) -> Response {
    let statement = service.gateway.account_statement(&tenant.account);
    headers::set_tightest_limit(response.headers_mut(), &statement);
    response
}
