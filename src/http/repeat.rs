//! Requests with an `Idempotency-Key`: asked again, they are answered again, not run again.

use axum::body::{Body as Wire, to_bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::idempotency::{Answer, Body, Fingerprint, Found, Scope, Ticket};
use crate::metrics::Metrics;
use crate::tenant::Tenant;
use crate::units::RequestId;

use super::error::Problem;
use super::headers::{REPLAYED, SHOULD_RETRY};
use super::router::Service;
use super::{headers, strict};

const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The longest key.
const KEY_MAX: usize = 255;

/// What a request with or without a key is to get.
pub(super) enum Turn {
    /// It runs, with this ticket if it has a key.
    Run(Option<Ticket>),
    /// It was answered before, so.
    Said(Response),
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    /// Of which endpoint.
    pub(super) of: &'static str,
    /// With which body.
    pub(super) body: &'a [u8],
}

/// Looks at the key, if there is one, and at what there is under it. The body is a valid one.
///
/// # Errors
/// 400 for a malformed key, 409 where the same request runs or has no answer to give, 422 where the key stands for
/// another request, 503 where nobody knows.
pub(super) async fn turn(
    service: &Service,
    tenant: &Tenant,
    headers: &HeaderMap,
    asked: Asked<'_>,
) -> Result<Turn, Problem> {
    let Some(key) = key(headers)? else { return Ok(Turn::Run(None)) };
    if service.idempotency.settings().keep.is_zero() {
        return Err(Problem::invalid(Some(KEY.as_str()), "is switched off here; leave it out"));
    }
    let scope = Scope { account: tenant.account.clone(), key: key.into() };
    let asked = fingerprint(&scope, headers, asked)?;
    let found = service.idempotency.look(scope, asked, service.gateway.now()).await;
    let found = found.map_err(|error| {
        tracing::error!(error = &error as &dyn std::error::Error, "an idempotency key was refused");
        Problem::overloaded(error.to_string(), std::time::Duration::from_secs(1))
    })?;
    service.metrics.kept.idempotency.with_label_values(&[outcome(&found)]).inc();
    match found {
        Found::Free(ticket) => Ok(Turn::Run(Some(ticket))),
        Found::Running => Err(Problem::in_flight()),
        Found::Other => Err(Problem::reused()),
        Found::Interrupted(id) => Err(Problem::conflict(
            "idempotency_interrupted",
            format!(
                "{id}, which used this idempotency key, was cut off before its answer was complete; what it may have \
                 used is charged, and it is not run again: ask with a new key"
            ),
        )),
        Found::Answered(id, answer) => again(id, answer).map(Turn::Said),
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
pub(super) fn begin(metrics: &Metrics) {
    for outcome in [BEGAN, IN_FLIGHT, REUSED, INTERRUPTED, ANSWERED, NOT_KEPT] {
        metrics.kept.idempotency.with_label_values(&[outcome]);
    }
}

fn outcome(found: &Found) -> &'static str {
    match found {
        Found::Free(_) => BEGAN,
        Found::Running => IN_FLIGHT,
        Found::Other => REUSED,
        Found::Interrupted(_) => INTERRUPTED,
        Found::Answered(_, Answer { body: Body::Whole(_), .. }) => ANSWERED,
        Found::Answered(..) => NOT_KEPT,
    }
}

/// Exactly one, of visible ASCII.
fn key(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let wrong =
        || Problem::invalid(Some(KEY.as_str()), "must be one value of 1 to 255 visible ASCII characters");
    let mut values = headers.get_all(KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().map_err(|_| wrong())?;
    let is_good = (1..=KEY_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_good && values.next().is_none() { Ok(Some(text)) } else { Err(wrong()) }
}

/// Everything that says what is asked for, whatever the order of its members and however it is spaced. The key itself
/// is in it, so that one prompt does not have one hash everywhere.
fn fingerprint(scope: &Scope, headers: &HeaderMap, asked: Asked<'_>) -> Result<Fingerprint, Problem> {
    let mut body = Value::Object(strict::object(asked.body)?);
    body.sort_all_objects();
    let tells = |name: &str| name.starts_with("x-budget-") || name == "x-episode-id";
    let budget = headers.iter().filter(|(name, _)| tells(name.as_str()));
    let mut budget: Vec<_> = budget.map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    budget.sort_unstable();
    let said = [asked.of.as_bytes(), scope.account.as_str().as_bytes(), scope.key.as_bytes()];
    let budget = budget.into_iter().flat_map(|(name, value)| [name.as_bytes(), value]);
    let mut hash = Sha256::new();
    for part in said.into_iter().chain(budget).chain([body.to_string().as_bytes()]) {
        // Told apart by their lengths, no two parts can run into each other.
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    Ok(Fingerprint(hash.finalize().into()))
}

/// The answer as it went out the first time.
fn again(id: RequestId, answer: Answer) -> Result<Response, Problem> {
    let cost = answer.header("x-cost-usd").map_or(String::new(), |cost| format!(" and cost {cost} dollars"));
    let conflict = |code, what: &str| {
        let message = format!("{id}, which used this idempotency key, ended{cost}; {what}");
        Err(Problem::conflict(code, message))
    };
    let bytes = match answer.body {
        Body::Whole(bytes) => bytes,
        Body::Streamed => {
            return conflict("idempotency_stream_done", "streams are not kept, and it is not run again");
        }
        Body::TooLarge => {
            return conflict(
                "idempotency_too_large",
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

/// Keeps a whole answer before it goes out.
pub(super) async fn keep(ticket: &Ticket, response: Response) -> Response {
    let (parts, body) = response.into_parts();
    // It lies in memory already.
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return Problem::internal(RequestId::new(), "an answer was not whole").into_response();
    };
    let (status, headers) = (parts.status.as_u16(), headers::text(&parts.headers));
    ticket.answered(Answer { status, headers, body: Body::Whole(bytes.clone()) }).await;
    Response::from_parts(parts, Wire::from(bytes))
}

/// What is kept of a streamed answer while it goes out.
#[derive(Debug)]
pub(super) struct Kept {
    ticket: Ticket,
    headers: Vec<(String, String)>,
    /// The events so far, while streams are kept and this one is not too large.
    said: Option<String>,
    most: usize,
}

impl Kept {
    /// A stream that begins with these headers.
    pub(super) fn new(ticket: Ticket, headers: &HeaderMap) -> Kept {
        let most = ticket.stream_max();
        let said = most.map(|_| String::new());
        Kept { ticket, headers: headers::text(headers), said, most: most.unwrap_or(0) }
    }

    /// So it goes on.
    pub(super) fn push(&mut self, text: &str) {
        self.said = self.said.take().filter(|said| said.len() + text.len() <= self.most);
        if let Some(said) = &mut self.said {
            said.push_str(text);
        }
    }

    /// So it ended; waits a bounded time until that is kept.
    pub(super) async fn end(mut self, cost: Option<String>) {
        self.headers.extend(cost.map(|cost| (headers::COST.as_str().to_owned(), cost)));
        let body = match self.said {
            Some(said) => Body::Whole(said.into()),
            None if self.most > 0 => Body::TooLarge,
            None => Body::Streamed,
        };
        let status = StatusCode::OK.as_u16();
        self.ticket.answered(Answer { status, headers: self.headers, body }).await;
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;

    use super::*;
    use crate::units::AccountId;

    fn of(body: &str, headers: &[(&'static str, &'static str)]) -> Fingerprint {
        let scope = Scope { account: AccountId::new("a"), key: "k".into() };
        let headers: HeaderMap = headers
            .iter()
            .map(|&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        fingerprint(&scope, &headers, Asked { of: "chat.completions", body: body.as_bytes() }).unwrap()
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
