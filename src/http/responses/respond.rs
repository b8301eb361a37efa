//! `POST /v1/responses`: loads what the request continues, runs it, and stores the response.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

use crate::gateway::{RequestReceipt, RequestTask};
use crate::http::answer::{ParsedRequest, answer_with_ticket};
use crate::http::api_state::ApiState;
use crate::http::body_limiter::{BodyLimiter, SharedBodyPermit};
use crate::http::collected_choice::CollectedChoice;
use crate::http::dialect::{ApiDialect, StreamWriter};
use crate::http::error::ApiError;
use crate::http::idempotency_key::{self, IdempotencyDecision, IdempotentRequest};
use crate::http::received_request::{ReceivedRequest, RequestTerms};
use stint_types::chat::FinishReason;
use stint_types::tenant::Tenant;
use stint_types::units::{RequestId, Timestamp};

use super::event_writer::EventWriter;
use super::load_context::{LoadedContext, PendingAppend};
use super::output::{ResponsesRenderOptions, visible_items};
use super::parse::{self, ResponsesRequest};
use super::recorder::ResponseRecorder;
use super::stream::ResponsesStreamWriter;
use super::{compaction, echo, load_context};

/// The endpoints' names.
const RESPONSES: &str = "responses";
const COMPACT: &str = "responses/compact";

/// Answers with a response, as one object or as events.
pub(in crate::http) async fn respond(
    State(service): State<Arc<ApiState>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let room = request.extensions().get::<BodyLimiter>().cloned();
    let mut received = ReceivedRequest::receive(&service, request, RequestTerms::CHARGED).await?;
    let members = std::mem::take(&mut received.members);
    let asked = parse::read(members, &received.headers, &service.settings.efforts)?;
    serve(&service, received, asked, room.as_ref()).await
}

/// Answers with what users said and the summary of all of a conversation, which go on from here in place of it.
pub(in crate::http) async fn compact(
    State(service): State<Arc<ApiState>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let room = request.extensions().get::<BodyLimiter>().cloned();
    let mut received = ReceivedRequest::receive(&service, request, RequestTerms::CHARGED).await?;
    let mut members = std::mem::take(&mut received.members);
    compaction::check_body(&mut members)?;
    let mut asked = parse::read_with_input(members, &received.headers, &service.settings.efforts)?;
    (asked.options.is_compaction, asked.users_items, asked.store) = (true, Some(Vec::new()), false);
    serve(&service, received, asked, room.as_ref()).await
}

/// Answers a request that was read.
async fn serve(
    service: &Arc<ApiState>,
    received: ReceivedRequest,
    mut asked: ResponsesRequest,
    room: Option<&BodyLimiter>,
) -> Result<Response, ApiError> {
    let ReceivedRequest { tenant, headers, body, digest, extensions, .. } = received;
    let endpoint = if asked.users_items.is_some() { COMPACT } else { RESPONSES };
    // Before a conversation is claimed and read: an answer that was added to it is given again as it was.
    let keyed = IdempotentRequest { endpoint, digest: digest.as_ref() };
    let ticket = match idempotency_key::check_key(service, &tenant, &headers, keyed).await? {
        IdempotencyDecision::Proceed(ticket) => ticket,
        IdempotencyDecision::Replay(response) => {
            let about = service.gateway.request_scope(&asked.request.model, &asked.request.extra);
            return Ok(service.with_limit_headers(&tenant, &about, response));
        }
    };
    let LoadedContext { permits, append } =
        load_context::load_conversation(service, &tenant, &mut asked, room).await?;
    let claim = append.as_ref().map(|append| append.claim.clone());
    let recorder = response_recorder(service, &tenant, &mut asked, append);
    let ResponsesRequest { request, stream, options, echo, users_items, .. } = asked;
    let call = ParsedRequest { headers, body, digest, extensions, request: Box::new(request), stream };
    let dialect = ResponsesDialect { options, echo, users_items, recorder, permits };
    let answered = answer_with_ticket(service, &tenant, call, ticket, &dialect).await;
    // Where no stream holds it any more, the conversation is free again.
    if let Some(claim) = claim.and_then(Arc::into_inner) {
        claim.release().await;
    }
    Ok(answered)
}

/// What is to be stored: the response where both the caller and the operator want that, and what a conversation gets.
fn response_recorder(
    service: &ApiState,
    tenant: &Tenant,
    asked: &mut ResponsesRequest,
    append: Option<PendingAppend>,
) -> ResponseRecorder {
    let wanted = asked.store && service.responses.settings().store;
    ResponseRecorder {
        responses: wanted.then(|| service.responses.clone()),
        append,
        metrics: service.metrics.clone(),
        gateway: service.gateway.clone(),
        account: tenant.account.clone(),
        key: tenant.id,
        previous: asked.previous,
        input: std::mem::take(&mut asked.input).into(),
    }
}

/// OpenAI's responses.
struct ResponsesDialect {
    options: ResponsesRenderOptions,
    echo: Map<String, Value>,
    /// What users said, where the answer is nothing but a compaction.
    users_items: Option<Vec<Value>>,
    recorder: ResponseRecorder,
    /// Room for what it continues.
    permits: Vec<SharedBodyPermit>,
}

impl ApiDialect for ResponsesDialect {
    fn endpoint(&self) -> &'static str {
        if self.users_items.is_some() { COMPACT } else { RESPONSES }
    }

    async fn render(
        &self,
        receipt: &RequestReceipt,
        choices: Vec<CollectedChoice>,
        created: Timestamp,
    ) -> String {
        let mut writer = EventWriter::new(receipt.id, self.options.clone());
        let finish = receipt.choices.first().map_or(FinishReason::Stop, |choice| choice.finish);
        let choice = choices.into_iter().next().unwrap_or_default().without_partial_calls(finish);
        for event in choice.into_events() {
            writer.write(event);
        }
        writer.end(echo::status(receipt));
        let (now, items) = (Timestamp::now(), writer.items());
        if let Some(said) = &self.users_items {
            let output: Vec<Value> = said.iter().cloned().chain(visible_items(items)).collect();
            return echo::compacted(receipt, created, &output).to_string();
        }
        let frame =
            echo::in_progress(receipt.id, created, &receipt.model, self.recorder.is_stored(), &self.echo);
        let mut response = echo::finished(frame, receipt, visible_items(items), &self.options.omitted, now);
        self.recorder.store(receipt, &mut response, items).await;
        response.to_string()
    }

    fn stream_writer(&self, task: &RequestTask, created: Timestamp) -> Box<dyn StreamWriter> {
        let chunks = ResponsesStreamWriter::new(
            task,
            created,
            self.options.clone(),
            &self.echo,
            self.recorder.clone(),
        );
        Box::new(chunks.with_permits(self.permits.clone()))
    }

    fn error_response(&self, problem: ApiError, _: RequestId) -> Response {
        problem.into_response()
    }
}
