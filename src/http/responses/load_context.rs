//! Completes a request with what it continues and refers to, from the stores. `respond` calls it before the request is admitted.

use std::sync::Arc;

use crate::http::api_state::ApiState;
use crate::http::body_limiter::{BodyLimiter, SharedBodyPermit};
use crate::http::error::ApiError;
use crate::http::{image_urls, nested_json};
use stint_sessions::agent::conversations::{ConversationClaim, StoredItem};
use stint_types::chat::{Message, Role};
use stint_types::tenant::Tenant;
use stint_types::units::RequestId;

use super::compaction;
use super::conversation_builder::ConversationBuilder;
use super::conversations::stored_input;
use super::errors::conversation_full;
use super::output::ResponsesThoughts;
use super::parse::ResponsesRequest;
use super::previous_context::PreviousContext;
use super::references::dereference;
use super::repeated_items;

/// What a request holds of what it continues, until its answer has ended.
#[derive(Debug, Default)]
pub(super) struct LoadedContext {
    /// Body permits for it, and for what it refers to.
    pub(super) permits: Vec<SharedBodyPermit>,
    /// The conversation that the answer is appended to.
    pub(super) append: Option<PendingAppend>,
}

/// A conversation that an answer is appended to, and the input before it.
#[derive(Debug, Clone)]
pub(super) struct PendingAppend {
    pub(super) claim: Arc<ConversationClaim>,
    /// The input items.
    pub(super) input: Vec<StoredItem>,
}

/// Puts the conversation into the request: what it continues, then what was sent, with references replaced by their items.
/// What it continues counts against the body limiter as a body does.
///
/// # Errors
/// 400 where something is not there for this key, or wrong; 503 where there is no room, or a store does not answer.
pub(super) async fn load_conversation(
    service: &ApiState,
    tenant: &Tenant,
    asked: &mut ResponsesRequest,
    room: Option<&BodyLimiter>,
) -> Result<LoadedContext, ApiError> {
    let before = PreviousContext::find(service, tenant, asked).await?;
    let assembled = assemble(service, tenant, asked, room, &before).await;
    let PreviousContext::Conversation(conversation) = before else {
        return assembled.map(|(permits, _)| LoadedContext { permits, append: None });
    };
    let claim = conversation.claim;
    match assembled {
        Ok((permits, input)) => {
            let append = PendingAppend { claim: Arc::new(claim), input };
            Ok(LoadedContext { permits, append: Some(append) })
        }
        Err(problem) => {
            claim.release().await;
            Err(problem)
        }
    }
}

/// Joins what was sent to what is continued. Gives back the body permits, and the input to append to a conversation.
async fn assemble(
    service: &ApiState,
    tenant: &Tenant,
    asked: &mut ResponsesRequest,
    room: Option<&BodyLimiter>,
    before: &PreviousContext,
) -> Result<(Vec<SharedBodyPermit>, Vec<StoredItem>), ApiError> {
    let take = |bytes: usize| room.filter(|_| bytes > 0).map(|room| room.acquire(bytes, tenant)).transpose();
    let size = before.size();
    let permits = take(size)?;
    let referred = dereference(service, tenant, &mut asked.input, before.stored_items()).await?;
    let mut permits: Vec<SharedBodyPermit> = permits.into_iter().chain(take(referred)?).collect();
    let (param, items) = (before.param(), compaction::remaining(before.items()));
    let mut conversation = ConversationBuilder::new(asked.instructions.as_deref());
    for item in &items {
        conversation.push(param, item)?;
    }
    let repeated = repeated_items::repeated(&items, &asked.input);
    for (at, item) in asked.input.iter().enumerate().filter(|(at, _)| !repeated.contains(at)) {
        conversation.push(&format!("input[{at}]"), item)?;
    }
    asked.tool_set.merge_earlier(conversation.take_tool_set());
    let choice = asked.choice.take().map(|choice| choice.resolve(&asked.tool_set));
    asked.request.tool_choice = choice.transpose()?;
    asked.request.tools = asked.tool_set.tools()?;
    asked.options.omitted = Arc::new(std::mem::take(&mut asked.tool_set.omitted));
    asked.options.tools = Arc::new(std::mem::take(&mut asked.tool_set.identities));
    asked.request.messages = conversation.into_messages()?;
    permits.extend(take(nested_json::room_needed(&asked.request.messages)?)?);
    let parts = image_urls::parts(&asked.request.messages);
    service.settings.image_urls.check_items(parts, ("input", &asked.input), param)?;
    service.settings.image_urls.check_members(&asked.request.unknown_members)?;
    let input = std::mem::take(&mut asked.input).into_iter().enumerate();
    asked.input = input.filter(|(at, _)| !repeated.contains(at)).map(|(_, item)| item).collect();
    if asked.request.messages.is_empty() {
        return Err(ApiError::invalid(Some("input"), "must have at least one item"));
    }
    if asked.options.is_compaction {
        let hex = RequestId::new().to_string().replacen("req_", "", 1);
        let said = items.iter().chain(&asked.input).cloned().collect::<Vec<_>>();
        asked.users_items.iter_mut().for_each(|kept| *kept = compaction::users_items(&said, &hex));
        ask_for_summary(asked);
    }
    if asked.request.budget.episode.is_none() {
        asked.request.budget.episode = before.episode(&asked.request);
    }
    Ok((permits, input_to_append(service, asked, before, size)?))
}

/// Asks for the summary of the conversation in place of an answer. The tools stay declared, as they were when they were called.
fn ask_for_summary(asked: &mut ResponsesRequest) {
    let request = &mut asked.request;
    request.messages.push(Message::text(Role::User, compaction::QUESTION));
    request.response_format = None;
    request.tool_choice = (!request.tools.is_empty()).then(|| "none".into());
    asked.options.thoughts = ResponsesThoughts::Hidden;
}

/// What was sent, as it is stored in the conversation that it is appended to.
fn input_to_append(
    service: &ApiState,
    asked: &ResponsesRequest,
    before: &PreviousContext,
    size: usize,
) -> Result<Vec<StoredItem>, ApiError> {
    let PreviousContext::Conversation(_) = before else { return Ok(Vec::new()) };
    let input = stored_input(&asked.input);
    let more: usize = input.iter().map(StoredItem::size).sum();
    if size + more > service.conversations.settings().history_max {
        return Err(conversation_full("input"));
    }
    Ok(input)
}
