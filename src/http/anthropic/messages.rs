//! `POST /v1/messages`, and `POST /v1/messages/count_tokens` beside it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::Response;
use serde_json::json;

use crate::gateway::{PromptCount, RequestReceipt, RequestTask};
use crate::http::access_log;
use crate::http::answer::{ParsedRequest, answer};
use crate::http::api_state::ApiState;
use crate::http::collected_choice::CollectedChoice;
use crate::http::dialect::{ApiDialect, StreamWriter};
use crate::http::error::ApiError;
use crate::http::json_response::json_response;
use crate::http::received_request::{ReceivedRequest, RequestTerms};
use crate::http::{images, nested_json};
use stint_types::chat::CommentaryPlace;
use stint_types::units::{RequestId, Timestamp};

use super::render::message;
use super::stream::AnthropicStreamWriter;
use super::thoughts::AnthropicThoughts;
use super::{errors, read, read_count};

/// Answers with a message, as one object or as events.
pub(in crate::http) async fn messages(
    State(service): State<Arc<ApiState>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let ReceivedRequest { tenant, headers, body, members, digest, extensions } =
        ReceivedRequest::receive(&service, request, RequestTerms::CHARGED).await?;
    let (mut request, wanted) = read(members, &headers, &service.settings.efforts)?;
    request.commentary = CommentaryPlace::in_blocks(request.response_format.as_ref());
    let dialect = MessagesDialect { thoughts: wanted.thoughts, commentary: request.commentary };
    let call = ParsedRequest {
        headers,
        body,
        digest,
        extensions,
        request: Box::new(request),
        stream: wanted.stream,
    };
    answer(&service, &tenant, call, &dialect).await
}

/// Counts a conversation's tokens, for nothing.
pub(in crate::http) async fn count_tokens(
    State(service): State<Arc<ApiState>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let ReceivedRequest { tenant, body, members, extensions, .. } =
        ReceivedRequest::receive(&service, request, RequestTerms::FREE).await?;
    let request = read_count(members, &service.settings.efforts)?;
    nested_json::check(&request.messages, &extensions)?;
    images::check_urls(service.settings.image_urls, &request, &extensions, &body).await?;
    access_log::note(|record| record.set_requested_model(&request.model));
    let PromptCount { tokens, is_estimated } = service.gateway.count(&tenant, request).await?;
    let mut counted = json!({ "input_tokens": tokens });
    if is_estimated {
        counted["estimated"] = true.into();
    }
    Ok(json_response(&counted))
}

/// Anthropic's messages.
struct MessagesDialect {
    thoughts: AnthropicThoughts,
    commentary: CommentaryPlace,
}

impl ApiDialect for MessagesDialect {
    fn endpoint(&self) -> &'static str {
        "messages"
    }

    async fn render(&self, receipt: &RequestReceipt, choices: Vec<CollectedChoice>, _: Timestamp) -> String {
        message(receipt, choices, self.thoughts, self.commentary).to_string()
    }

    fn stream_writer(&self, task: &RequestTask, _: Timestamp) -> Box<dyn StreamWriter> {
        Box::new(AnthropicStreamWriter::new(task, self.thoughts, self.commentary))
    }

    fn error_response(&self, problem: ApiError, id: RequestId) -> Response {
        errors::error_response(problem, &id.to_string())
    }
}
