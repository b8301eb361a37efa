//! `POST /v1/chat/completions`, and `POST /v1/completions` beside it: one flow, two forms.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::Value;

use crate::gateway::{Flight, Receipt};
use crate::units::{RequestId, Timestamp};

use super::error::Problem;
use super::events;
use super::openai::{Chunks, Look, Style, completion, read, read_text};
use super::router::Service;
use super::said::Said;
use super::surface::{Call, Opened, Surface, answer, open};

/// Answers a chat completion, as one object or as events.
pub(super) async fn completions(
    State(service): State<Arc<Service>>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    complete(&service, request, Style::Chat).await
}

/// Says how a text goes on, as one object or as events.
pub(super) async fn texts(
    State(service): State<Arc<Service>>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    complete(&service, request, Style::Text).await
}

async fn complete(service: &Service, request: Request<Body>, style: Style) -> Result<Response, Problem> {
    let Opened { tenant, headers, body } = open(service, request).await?;
    let (request, wanted) = match style {
        Style::Chat => read(&body, &headers, &service.settings.efforts)?,
        Style::Text => read_text(&body, &headers)?,
    };
    let look = Look { style, thoughts: wanted.thoughts, mirror: service.settings.mirror_reasoning };
    let surface = Completions { look, include_usage: wanted.include_usage };
    let call = Call { headers, body, request, stream: wanted.stream };
    answer(service, &tenant, call, &surface).await
}

/// OpenAI's two completions.
struct Completions {
    look: Look,
    include_usage: bool,
}

impl Surface for Completions {
    fn endpoint(&self) -> &'static str {
        self.look.style.endpoint()
    }

    fn object<'a>(
        &'a self,
        receipt: &'a Receipt,
        said: Vec<Said>,
        created: Timestamp,
    ) -> BoxFuture<'a, Value> {
        ready(completion(receipt, said, created, self.look)).boxed()
    }

    fn chunks(&self, flight: &Flight, created: Timestamp) -> Box<dyn events::Chunks> {
        Box::new(Chunks::new(flight, created, self.include_usage, self.look))
    }

    fn problem(&self, problem: Problem, _: RequestId) -> Response {
        problem.into_response()
    }
}
