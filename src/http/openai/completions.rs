//! `POST /v1/chat/completions`, and `POST /v1/completions` beside it: one flow, two forms.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::gateway::{RequestReceipt, RequestTask};
use crate::http::answer::{ParsedRequest, answer};
use crate::http::api_state::ApiState;
use crate::http::collected_choice::CollectedChoice;
use crate::http::dialect::{ApiDialect, StreamWriter};
use crate::http::error::ApiError;
use crate::http::received_request::{ReceivedRequest, RequestTerms};
use stint_types::chat::CommentaryPlace;
use stint_types::units::{RequestId, Timestamp};

use super::read;
use super::render::{CompletionFormat, OpenAiRenderOptions, completion};
use super::stream::OpenAiStreamWriter;
use super::text::read_text;

/// Answers a chat completion, as one object or as events.
pub(in crate::http) fn chat_completions(
    State(service): State<Arc<ApiState>>,
    request: Request<Body>,
) -> BoxFuture<'static, Result<Response, ApiError>> {
    // Boxed here, since it is large: axum would move it twice.
    async move { complete(&service, request, CompletionFormat::Chat).await }.boxed()
}

/// Says how a text goes on, as one object or as events.
pub(in crate::http) async fn text_completions(
    State(service): State<Arc<ApiState>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    complete(&service, request, CompletionFormat::Text).await
}

async fn complete(
    service: &ApiState,
    request: Request<Body>,
    format: CompletionFormat,
) -> Result<Response, ApiError> {
    let ReceivedRequest { tenant, headers, body, members, digest, extensions } =
        ReceivedRequest::receive(service, request, RequestTerms::CHARGED).await?;
    let (mut request, wanted) = match format {
        CompletionFormat::Chat => read(members, &headers, &service.settings.efforts)?,
        CompletionFormat::Text => read_text(members, &headers)?,
    };
    request.commentary = CommentaryPlace::in_text(request.response_format.as_ref());
    let options = OpenAiRenderOptions {
        kind: format,
        thoughts: wanted.thoughts,
        mirror: service.settings.mirror_reasoning,
        commentary: request.commentary,
    };
    let dialect = CompletionsDialect { options, include_usage: wanted.include_usage };
    let call = ParsedRequest {
        headers,
        body,
        digest,
        extensions,
        request: Box::new(request),
        stream: wanted.stream,
    };
    // Boxed: what a request's head and body are read with is moved more often, and is smaller.
    Box::pin(answer(service, &tenant, call, &dialect)).await
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

    async fn render(
        &self,
        receipt: &RequestReceipt,
        choices: Vec<CollectedChoice>,
        created: Timestamp,
    ) -> String {
        completion(receipt, choices, created, self.options)
    }

    fn stream_writer(&self, task: &RequestTask, created: Timestamp) -> Box<dyn StreamWriter> {
        Box::new(OpenAiStreamWriter::new(task, created, self.include_usage, self.options))
    }

    fn error_response(&self, problem: ApiError, _: RequestId) -> Response {
        problem.into_response()
    }
}
