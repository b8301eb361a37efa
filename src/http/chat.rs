//! `POST /v1/chat/completions`, and `POST /v1/completions` beside it: one flow, two forms.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Request, header};
use axum::response::{IntoResponse, Response};

use crate::gateway::{Flight, Receipt, Report};
use crate::idempotency::Ticket;
use crate::tenant::Tenant;
use crate::units::Timestamp;

use super::error::Problem;
use super::openai::{Chunks, LOST, Look, Said, Style, Wanted, completion, read, read_text, stream};
use super::repeat::{Asked, Kept, Turn};
use super::router::Service;
use super::{auth, body, headers, repeat};

/// Answers a chat completion, as one object or as events.
pub(super) async fn completions(
    State(service): State<Arc<Service>>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    answer(service, request, Style::Chat).await
}

/// Says how a text goes on, as one object or as events.
pub(super) async fn texts(
    State(service): State<Arc<Service>>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    answer(service, request, Style::Text).await
}

async fn answer(service: Arc<Service>, request: Request<Body>, style: Style) -> Result<Response, Problem> {
    let created = Timestamp::now();
    let (parts, body) = request.into_parts();
    let tenant = auth::tenant(&service.keys, &parts.headers)?;
    let body = body::read(&parts.headers, body, &service.settings).await?;
    let (request, wanted) = match style {
        Style::Chat => read(&body, &parts.headers, &service.settings.efforts)?,
        Style::Text => read_text(&body, &parts.headers)?,
    };
    let asked = Asked { of: style.endpoint(), body: &body };
    let ticket = match repeat::turn(&service, &tenant, &parts.headers, asked).await? {
        Turn::Run(ticket) => ticket,
        Turn::Said(response) => return Ok(with_limits(&service, &tenant, response)),
    };
    let flight = match service.gateway.admit(&tenant, request, ticket.clone()).await {
        Ok(flight) => flight,
        Err(refusal) => return Ok(with_limits(&service, &tenant, Problem::from(refusal).into_response())),
    };
    let id = flight.id();
    let look = Look { style, thoughts: wanted.thoughts, mirror: service.settings.mirror_reasoning };
    let answered = match wanted.stream {
        true => streamed(&service, flight, created, wanted, look, ticket.clone()).await,
        false => whole(flight, created, look).await,
    };
    let is_to_come = wanted.stream && answered.is_ok();
    let mut response = answered.unwrap_or_else(IntoResponse::into_response);
    headers::request_id(response.headers_mut(), id);
    // A stream keeps itself, when it ends.
    if let (Some(ticket), false) = (ticket, is_to_come) {
        response = repeat::keep(&ticket, response).await;
    }
    Ok(with_limits(&service, &tenant, response))
}

/// The status is decided by the first report; a long silence decides for 200, so that comments can be sent.
async fn streamed(
    service: &Service,
    mut flight: Flight,
    created: Timestamp,
    wanted: Wanted,
    look: Look,
    ticket: Option<Ticket>,
) -> Result<Response, Problem> {
    let heartbeat = service.settings.heartbeat;
    let first = match tokio::time::timeout(heartbeat, flight.next()).await {
        Ok(Some(Report::Failed(refusal))) => return Err(refusal.into()),
        Ok(None) => return Err(Problem::internal(flight.id(), LOST)),
        Ok(first) => first,
        Err(_) => None,
    };
    let chunks = Chunks::new(&flight, created, wanted.include_usage, look);
    let mut more = HeaderMap::new();
    more.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    more.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    more.insert(header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    headers::reserved(&mut more, flight.reserved());
    headers::request_id(&mut more, flight.id());
    let kept = ticket.map(|ticket| Kept::new(ticket, &more));
    Ok((more, stream(flight, first, chunks, heartbeat, kept)).into_response())
}

async fn whole(mut flight: Flight, created: Timestamp, look: Look) -> Result<Response, Problem> {
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
            Report::Done(receipt) => return Ok(object(&receipt, said, created, look)),
        }
    }
    Err(Problem::internal(flight.id(), LOST))
}

fn object(receipt: &Receipt, said: Vec<Said>, created: Timestamp, look: Look) -> Response {
    let body = completion(receipt, said, created, look).to_string();
    let mut response = ([(header::CONTENT_TYPE, "application/json")], body).into_response();
    headers::cost(response.headers_mut(), receipt.cost);
    response
}

pub(super) fn with_limits(service: &Service, tenant: &Tenant, mut response: Response) -> Response {
    let statement = service.gateway.account_statement(&tenant.account);
    headers::tightest(response.headers_mut(), &statement);
    response
}
