//! One flow for every API that asks for an answer: admit, watch the flight, write what it tells in the API's own words.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::chat::Request;
use crate::gateway::{Denial, Flight, Receipt, Report, RequestObserver};
use crate::idempotency::Ticket;
use crate::tenant::Tenant;
use crate::units::{RequestId, Timestamp};

use super::error::Problem;
use super::events::{Chunks, LOST, stream};
use super::repeat::{Asked, Kept, Turn};
use super::router::Service;
use super::said::Said;
use super::{access_log, auth, body, headers, images, repeat};

/// How an API writes answers.
pub(super) trait Surface {
    /// The endpoint's name, by which a request is told from the same body for another.
    fn endpoint(&self) -> &'static str;

    /// The whole answer as one object, once what has to be done before it is told is done.
    fn object<'a>(
        &'a self,
        receipt: &'a Receipt,
        said: Vec<Said>,
        created: Timestamp,
    ) -> BoxFuture<'a, Value>;

    /// What writes it as events.
    fn chunks(&self, flight: &Flight, created: Timestamp) -> Box<dyn Chunks>;

    /// An error as the API has it.
    fn problem(&self, problem: Problem, id: RequestId) -> Response;
}

/// A request whose caller is known and whose body is here.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) tenant: Arc<Tenant>,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// Finds out who asks, then reads the JSON body.
///
/// # Errors
/// 401 before a byte of the body is read; as [`body::read`].
pub(super) async fn open(service: &Service, request: axum::http::Request<Body>) -> Result<Opened, Problem> {
    let (parts, body) = request.into_parts();
    let tenant = auth::tenant(&service.keys, &parts.headers)?;
    let body = body::read(&parts.headers, body, &service.settings).await?;
    Ok(Opened { tenant, headers: parts.headers, body })
}

/// A request that was read and understood.
#[derive(Debug)]
pub(super) struct Call {
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
    service: &Service,
    tenant: &Tenant,
    call: Call,
    surface: &impl Surface,
) -> Result<Response, Problem> {
    let asked = Asked { of: surface.endpoint(), body: &call.body };
    match repeat::turn(service, tenant, &call.headers, asked).await? {
        Turn::Run(ticket) => Ok(run(service, tenant, call, ticket, surface).await),
        Turn::Said(response) => Ok(with_limits(service, tenant, response)),
    }
}

/// Answers a request whose turn it is, as one object or as events; an error is an answer too.
pub(super) async fn run(
    service: &Service,
    tenant: &Tenant,
    call: Call,
    ticket: Option<Ticket>,
    surface: &impl Surface,
) -> Response {
    let created = Timestamp::now();
    access_log::note(|record| record.asked(&call.request.model));
    let observer = access_log::current().map(|record| record as Arc<dyn RequestObserver>);
    let flight = match service.gateway.admit(tenant, call.request, ticket.clone(), observer).await {
        Ok(flight) => flight,
        Err(denial) => {
            let named = Denial { refusal: images::named(*denial.refusal, &call.body).into(), ..denial };
            return with_limits(service, tenant, Problem::from(named).into_response());
        }
    };
    let (id, episode) = (flight.id(), flight.episode().cloned());
    let answered = match call.stream {
        true => streamed(service, flight, created, surface, ticket.clone()).await,
        false => whole(flight, created, surface).await,
    };
    let is_to_come = call.stream && answered.is_ok();
    let problem = |problem: Problem| surface.problem(problem.of_step(episode.as_ref()), id);
    let mut response = answered.unwrap_or_else(problem);
    headers::request_id(response.headers_mut(), id);
    episode.iter().for_each(|episode| headers::episode(response.headers_mut(), episode));
    // A stream keeps itself, when it ends.
    if let (Some(ticket), false) = (ticket, is_to_come) {
        response = repeat::keep(&ticket, response).await;
    }
    with_limits(service, tenant, response)
}

/// The status is decided by the first report; a long silence decides for 200, so that comments can be sent.
async fn streamed(
    service: &Service,
    mut flight: Flight,
    created: Timestamp,
    surface: &impl Surface,
    ticket: Option<Ticket>,
) -> Result<Response, Problem> {
    let heartbeat = service.settings.heartbeat;
    let first = match tokio::time::timeout(heartbeat, flight.next()).await {
        Ok(Some(Report::Failed(refusal))) => return Err(refusal.into()),
        Ok(None) => return Err(Problem::internal(flight.id(), LOST)),
        Ok(first) => first,
        Err(_) => None,
    };
    let chunks = surface.chunks(&flight, created);
    let mut more = HeaderMap::new();
    more.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    more.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    more.insert(header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    headers::reserved(&mut more, flight.reserved());
    headers::request_id(&mut more, flight.id());
    flight.episode().into_iter().for_each(|episode| headers::episode(&mut more, episode));
    let kept = ticket.map(|ticket| Kept::new(ticket, &more));
    let body: Body = stream(flight, first, chunks, heartbeat, kept);
    Ok((more, body).into_response())
}

async fn whole(mut flight: Flight, created: Timestamp, surface: &impl Surface) -> Result<Response, Problem> {
    let choices = usize::try_from(flight.choices()).unwrap_or(usize::MAX);
    let mut said = vec![Said::default(); choices];
    while let Some(report) = flight.next().await {
        match report {
            Report::Event(index, event) => {
                if let Some(said) = said.get_mut(usize::try_from(index).unwrap_or(usize::MAX)) {
                    said.push(event);
                }
            }
            Report::Failed(refusal) => return Err(refusal.into()),
            Report::Done(receipt) => {
                let body = surface.object(&receipt, said, created).await.to_string();
                let mut response = ([(header::CONTENT_TYPE, "application/json")], body).into_response();
                headers::cost(response.headers_mut(), receipt.cost);
                return Ok(response);
            }
        }
    }
    Err(Problem::internal(flight.id(), LOST))
}

/// The answer with the headers that tell of the tightest limit.
pub(super) fn with_limits(service: &Service, tenant: &Tenant, mut response: Response) -> Response {
    let statement = service.gateway.account_statement(&tenant.account);
    headers::tightest(response.headers_mut(), &statement);
    response
}
