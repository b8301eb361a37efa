//! The items of a conversation: read in pages, added, removed.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, Request};
use axum::response::Response;
use serde_json::Value;

use crate::http::api_state::ApiState;
use crate::http::error::{ApiError, codes};
use crate::http::json_response::json_response;
use crate::http::path_params::PathParams;
use crate::http::responses::errors::{conversation_not_found, conversations_unavailable, storage_disabled};
use crate::http::responses::listing::{self, ItemPageQuery, unknown_cursor};
use crate::http::{body, body_limiter, writes};
use stint_sessions::agent::conversations::{
    ConversationAppend, ItemPage, PositionedItem, StoredConversation, StoredItem,
};

use super::objects::{ITEMS_MAX, object};
use super::stored_items::visible_item;
use super::{check_change, conversation_request, find_conversation, read_items};

/// A page of items.
pub(in crate::http) async fn list(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
    PathParams(id): PathParams<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let lookup = conversation_request(&service, &headers, &id)?;
    let wanted = ItemPageQuery::read(query.as_deref())?;
    let conversation = find_conversation(&service, &lookup).await?;
    let after = match &wanted.after {
        Some(after) => Some(find(&service, &conversation, after).await?.ok_or_else(unknown_cursor)?.position),
        None => None,
    };
    let limit = u32::try_from(wanted.limit + 1).unwrap_or(u32::MAX);
    let page = ItemPage { after, newest_first: wanted.newest_first, limit };
    let found = service.conversations.items(&conversation, page, service.gateway.now()).await;
    let found = found.map_err(|error| conversations_unavailable(&error))?;
    let items = found.iter().map(|placed| visible_item(&placed.item)).collect();
    Ok(json_response(&wanted.page(items)))
}

/// Puts items at the end.
pub(in crate::http) async fn append(
    State(service): State<Arc<ApiState>>,
    PathParams(id): PathParams<String>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let lookup = conversation_request(&service, request.headers(), &id)?;
    body_limiter::assign(request.extensions(), &lookup.tenant);
    let taken = writes::take(&service, &lookup.tenant, request.body())?;
    let mut fields = body::fields(request, &service.settings).await?;
    // Everything that could be included is there.
    fields.take_all(&["include"]);
    let given = fields.list("items")?.ok_or_else(|| ApiError::missing("items", "a list of items"))?;
    fields.finish()?;
    let items = read_items(&service, &given, ITEMS_MAX)?;
    if !service.conversations.settings().store {
        return Err(storage_disabled());
    }
    let StoredConversation { account, id, .. } = find_conversation(&service, &lookup).await?;
    let shown: Vec<Value> = items.iter().map(visible_item).collect();
    let bytes = items.iter().map(StoredItem::size).sum();
    let appended =
        ConversationAppend { account, id, claimant: None, items, episode: None, at: service.gateway.now() };
    let _turn = writes::begin(&service, &lookup.tenant, taken, bytes).await;
    let change = service.conversations.append(&appended).await;
    check_change(change.map_err(|error| conversations_unavailable(&error))?, conversation_not_found)?;
    Ok(json_response(&listing::list(&shown, false)))
}

/// One item.
pub(in crate::http) async fn item(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
    PathParams((id, item)): PathParams<(String, String)>,
) -> Result<Response, ApiError> {
    let lookup = conversation_request(&service, &headers, &id)?;
    let conversation = find_conversation(&service, &lookup).await?;
    let found = find(&service, &conversation, &item).await?.ok_or_else(item_not_found)?;
    Ok(json_response(&visible_item(&found.item)))
}

/// Takes an item out; shows the conversation.
pub(in crate::http) async fn remove(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
    PathParams((id, item)): PathParams<(String, String)>,
) -> Result<Response, ApiError> {
    let lookup = conversation_request(&service, &headers, &id)?;
    let taken = writes::take(&service, &lookup.tenant, &Body::empty())?;
    let conversation = find_conversation(&service, &lookup).await?;
    let _turn = writes::begin(&service, &lookup.tenant, taken, 0).await;
    let change = service.conversations.remove(&conversation, &item, service.gateway.now()).await;
    check_change(change.map_err(|error| conversations_unavailable(&error))?, item_not_found)?;
    Ok(json_response(&object(&conversation)))
}

async fn find(
    service: &ApiState,
    conversation: &StoredConversation,
    item: &str,
) -> Result<Option<PositionedItem>, ApiError> {
    let found = service.conversations.item(conversation, item, service.gateway.now()).await;
    found.map_err(|error| conversations_unavailable(&error))
}

fn item_not_found() -> ApiError {
    ApiError::not_found("the conversation has no item of that id").with_code(codes::ITEM_NOT_FOUND)
}
