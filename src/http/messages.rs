//! `POST /v1/messages`, and `POST /v1/messages/count_tokens` beside it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, header};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::{Value, json};

use crate::gateway::{PromptCount, RequestReceipt, RequestTask};
use crate::units::{RequestId, Timestamp};

use super::access_log;
use super::anthropic::{self, AnthropicRenderOptions, AnthropicStreamWriter, message, read, read_count};
use super::collected_choice::CollectedChoice;
use super::dialect::{ApiDialect, ParsedRequest, ReceivedRequest, answer, receive};
use super::error::ApiError;
use super::events;
use super::router::ApiState;

/// Answers with a message, as one object or as events.
pub(super) async fn messages(
    State(service): State<Arc<ApiState>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let ReceivedRequest { tenant, headers, body } = receive(&service, request).await?;
    let (request, wanted) = read(&body, &headers, &service.settings.efforts)?;
    let surface = MessagesDialect { options: AnthropicRenderOptions { thoughts: wanted.thoughts } };
    let call = ParsedRequest { headers, body, request, stream: wanted.stream };
    answer(&service, &tenant, call, &surface).await
}

/// Counts a conversation's tokens, for nothing.
pub(super) async fn count_tokens(
    State(service): State<Arc<ApiState>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let ReceivedRequest { tenant, body, .. } = receive(&service, request).await?;
    let request = read_count(&body, &service.settings.efforts)?;
    access_log::note(|record| record.set_requested_model(&request.model));
    let PromptCount { tokens, is_estimated } = service.gateway.count(&tenant, request).await?;
    let mut counted = json!({ "input_tokens": tokens });
    if is_estimated {
        counted["estimated"] = true.into();
    }
    Ok(([(header::CONTENT_TYPE, "application/json")], counted.to_string()).into_response())
}

/// Anthropic's messages.
struct MessagesDialect {
    options: AnthropicRenderOptions,
}

impl ApiDialect for MessagesDialect {
    fn endpoint(&self) -> &'static str {
        "messages"
    }

    fn render<'a>(
        &'a self,
        receipt: &'a RequestReceipt,
        said: Vec<CollectedChoice>,
        _: Timestamp,
    ) -> BoxFuture<'a, Value> {
        ready(message(receipt, said, self.options)).boxed()
    }

    fn stream_writer(&self, flight: &RequestTask, _: Timestamp) -> Box<dyn events::StreamWriter> {
        Box::new(AnthropicStreamWriter::new(flight, self.options))
    }

    fn error_response(&self, problem: ApiError, id: RequestId) -> Response {
        anthropic::error_response(problem, &id.to_string())
    }
}
