//! `/v1/conversations`: items that callers store here. Responses continue a conversation and append to it.

mod items;
mod objects;
mod stored_items;

pub(in crate::http) use items::{append, item, list, remove};
pub(in crate::http) use objects::{create, delete, retrieve, set_metadata};
pub(super) use stored_items::{model_item, stored_input, stored_output, visible_item};

use std::sync::Arc;

use axum::http::HeaderMap;
use serde_json::Value;

use crate::http::api_state::ApiState;
use crate::http::auth;
use crate::http::error::ApiError;
use stint_sessions::agent::conversations::{ConversationWriteResult, StoredConversation, StoredItem};
use stint_types::tenant::Tenant;
use stint_types::units::ConversationId;

use super::conversation_builder::ConversationBuilder;
use super::errors::{conversation_full, conversation_not_found, conversations_unavailable};

/// Whose conversations, and which of them.
struct ConversationRequest {
    tenant: Arc<Tenant>,
    id: ConversationId,
}

/// Who asks for which conversation.
fn conversation_request(
    service: &ApiState,
    headers: &HeaderMap,
    id: &str,
) -> Result<ConversationRequest, ApiError> {
    let tenant = auth::tenant(service, headers)?;
    let id = id.parse().map_err(|_| conversation_not_found())?;
    Ok(ConversationRequest { tenant, id })
}

/// The conversation that is asked for, without its items.
///
/// # Errors
/// 404 where this key has none of that id; 503 where the store does not answer.
async fn find_conversation(
    service: &ApiState,
    asked: &ConversationRequest,
) -> Result<StoredConversation, ApiError> {
    let found = service.conversations.find(&asked.tenant, asked.id, service.gateway.now()).await;
    found.map_err(|error| conversations_unavailable(&error))?.ok_or_else(conversation_not_found)
}

/// The items of a list that a caller puts in, whole and named.
///
/// # Errors
/// 400 where there are too many at once, one is not an item, or an image is where none may be.
fn read_items(service: &ApiState, items: &[Value], most: usize) -> Result<Vec<StoredItem>, ApiError> {
    if items.len() > most {
        let why = format!("may have {most} items at once; add the others after them");
        return Err(ApiError::invalid(Some("items"), why));
    }
    let mut conversation = ConversationBuilder::default();
    for (at, item) in items.iter().enumerate() {
        conversation.push(&format!("items[{at}]"), item)?;
    }
    service.settings.image_urls.check_items(conversation.parts(), ("items", items), "items")?;
    Ok(stored_input(items))
}

/// The problem with a change that is not made.
fn check_change(change: ConversationWriteResult, unknown: fn() -> ApiError) -> Result<(), ApiError> {
    match change {
        ConversationWriteResult::Done => Ok(()),
        ConversationWriteResult::Busy => Err(ApiError::conversation_locked()),
        ConversationWriteResult::Full => Err(conversation_full("items")),
        ConversationWriteResult::Unknown => Err(unknown()),
    }
}
