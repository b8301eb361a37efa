//! `POST /v1/messages`, and `POST /v1/messages/count_tokens` beside it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, header};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::{Value, json};

use crate::gateway::{Flight, PromptCount, Receipt};
use crate::units::{RequestId, Timestamp};

use super::access_log;
use super::anthropic::{self, Chunks, Look, message, read, read_count};
use super::error::Problem;
use super::events;
use super::router::Service;
use super::said::Said;
use super::surface::{Call, Opened, Surface, answer, open};

/// Answers with a message, as one object or as events.
pub(super) async fn messages(
    State(service): State<Arc<Service>>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let Opened { tenant, headers, body } = open(&service, request).await?;
    let (request, wanted) = read(&body, &headers, &service.settings.efforts)?;
    let surface = Messages { look: Look { thoughts: wanted.thoughts } };
    let call = Call { headers, body, request, stream: wanted.stream };
    answer(&service, &tenant, call, &surface).await
}

/// Counts a conversation's tokens, for nothing.
pub(super) async fn count_tokens(
    State(service): State<Arc<Service>>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let Opened { tenant, body, .. } = open(&service, request).await?;
    let request = read_count(&body, &service.settings.efforts)?;
    access_log::note(|record| record.asked(&request.model));
    let PromptCount { tokens, is_estimated } = service.gateway.count(&tenant, request).await?;
    let mut counted = json!({ "input_tokens": tokens });
    if is_estimated {
        counted["estimated"] = true.into();
    }
    Ok(([(header::CONTENT_TYPE, "application/json")], counted.to_string()).into_response())
}

/// Anthropic's messages.
struct Messages {
    look: Look,
}

impl Surface for Messages {
    fn endpoint(&self) -> &'static str {
        "messages"
    }

    fn object<'a>(&'a self, receipt: &'a Receipt, said: Vec<Said>, _: Timestamp) -> BoxFuture<'a, Value> {
        ready(message(receipt, said, self.look)).boxed()
    }

    fn chunks(&self, flight: &Flight, _: Timestamp) -> Box<dyn events::Chunks> {
        Box::new(Chunks::new(flight, self.look))
    }

    fn problem(&self, problem: Problem, id: RequestId) -> Response {
        anthropic::problem(problem, &id.to_string())
    }
}
