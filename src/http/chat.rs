//! `POST /v1/chat/completions`, and `POST /v1/completions` beside it: one flow, two forms.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::Value;

use crate::gateway::{RequestReceipt, RequestTask};
use crate::units::{RequestId, Timestamp};

use super::collected_choice::CollectedChoice;
use super::dialect::{ApiDialect, ParsedRequest, ReceivedRequest, answer, receive};
use super::error::ApiError;
use super::events;
use super::openai::{CompletionFormat, OpenAiRenderOptions, OpenAiStreamWriter, completion, read, read_text};
use super::router::ApiState;

/// Answers a chat completion, as one object or as events.
pub(super) async fn completions(
    State(service): State<Arc<ApiState>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    complete(&service, request, CompletionFormat::Chat).await
}

/// Says how a text goes on, as one object or as events.
pub(super) async fn text_completions(
    State(service): State<Arc<ApiState>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    complete(&service, request, CompletionFormat::Text).await
}

async fn complete(
    service: &ApiState,
    request: Request<Body>,
    style: CompletionFormat,
) -> Result<Response, ApiError> {
    let ReceivedRequest { tenant, headers, body } = receive(service, request).await?;
    let (request, wanted) = match style {
        CompletionFormat::Chat => read(&body, &headers, &service.settings.efforts)?,
        CompletionFormat::Text => read_text(&body, &headers)?,
    };
    let look = OpenAiRenderOptions {
        kind: style,
        thoughts: wanted.thoughts,
        mirror: service.settings.mirror_reasoning,
    };
    let surface = CompletionsDialect { options: look, include_usage: wanted.include_usage };
    let call = ParsedRequest { headers, body, request, stream: wanted.stream };
    answer(service, &tenant, call, &surface).await
}

/// OpenAI's two completions.
struct CompletionsDialect {
    options: OpenAiRenderOptions,
    include_usage: bool,
}

impl ApiDialect for CompletionsDialect {
    fn endpoint(&self) -> &'static str {
        self.options.kind.endpoint()
    }

    fn render<'a>(
        &'a self,
        receipt: &'a RequestReceipt,
        said: Vec<CollectedChoice>,
        created: Timestamp,
    ) -> BoxFuture<'a, Value> {
        ready(completion(receipt, said, created, self.options)).boxed()
    }

    fn stream_writer(&self, flight: &RequestTask, created: Timestamp) -> Box<dyn events::StreamWriter> {
        Box::new(OpenAiStreamWriter::new(flight, created, self.include_usage, self.options))
    }

    fn error_response(&self, problem: ApiError, _: RequestId) -> Response {
        problem.into_response()
    }
}
