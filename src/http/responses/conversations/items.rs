//! The items of a conversation: read in pages, added, removed.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, Request};
use axum::response::Response;
use serde_json::Value;

use crate::http::api_state::ApiState;
use crate::http::error::{ApiError, codes};
use crate::http::json_response::json_response;
use crate::http::responses::errors::{conversation_not_found, conversations_unavailable, storage_disabled};
use crate::http::responses::listing::{self, ItemPageQuery, unknown_cursor};
use crate::http::{body, body_limiter, writes};
use stint_sessions::agent::conversations::{
    ConversationAppend, ItemPage, PositionedItem, StoredConversation, StoredItem,
};

use super::objects::{ITEMS_MAX, object};
use super::stored_items::visible_item;
use super::{ConversationRequest, check_change, conversation_request, read_items};

/// A page of items.
pub(in crate::http) async fn list(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let asked = conversation_request(&service, &headers, &id)?;
    let wanted = ItemPageQuery::read(query.as_deref())?;
    conversation(&service, &asked).await?;
    let after = match &wanted.after {
        Some(after) => Some(find(&service, &asked, after).await?.ok_or_else(unknown_cursor)?.position),
        None => None,
    };
    let limit = u32::try_from(wanted.limit + 1).unwrap_or(u32::MAX);
    let page = ItemPage { after, newest_first: wanted.newest_first, limit };
    let (account, now) = (&asked.tenant.account, service.gateway.now());
    let found = service.conversations.items(account, asked.id, page, now).await;
    let found = found.map_err(|error| conversations_unavailable(&error))?;
    let items = found.iter().map(|placed| visible_item(&placed.item)).collect();
    Ok(json_response(&wanted.page(items)))
}

/// Puts items at the end.
pub(in crate::http) async fn append(
    State(service): State<Arc<ApiState>>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let asked = conversation_request(&service, request.headers(), &id)?;
    body_limiter::assign(request.extensions(), &asked.tenant);
    let taken = writes::take(&service, &asked.tenant, request.body())?;
    let mut fields = body::fields(request, &service.settings).await?;
    // Everything that could be included is there.
    fields.take_all(&["include"]);
    let given = fields.list("items")?.ok_or_else(|| ApiError::missing("items", "a list of items"))?;
    fields.finish()?;
    let items = read_items(&service, &given, ITEMS_MAX)?;
    if !service.conversations.settings().store {
        return Err(storage_disabled());
    }
    let shown: Vec<Value> = items.iter().map(visible_item).collect();
    let bytes = items.iter().map(StoredItem::size).sum();
    let appended = ConversationAppend {
        account: asked.tenant.account.clone(),
        id: asked.id,
        claimant: None,
        items,
        episode: None,
        at: service.gateway.now(),
    };
    let _turn = writes::begin(&service, &asked.tenant, taken, bytes).await;
    let change = service.conversations.append(&appended).await;
    check_change(change.map_err(|error| conversations_unavailable(&error))?, conversation_not_found)?;
    Ok(json_response(&listing::list(&shown, false)))
}

/// One item.
pub(in crate::http) async fn item(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
    Path((id, item)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let asked = conversation_request(&service, &headers, &id)?;
    conversation(&service, &asked).await?;
    let found = find(&service, &asked, &item).await?.ok_or_else(item_not_found)?;
    Ok(json_response(&visible_item(&found.item)))
}

/// Takes an item out; shows the conversation.
pub(in crate::http) async fn remove(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
    Path((id, item)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let asked = conversation_request(&service, &headers, &id)?;
    let taken = writes::take(&service, &asked.tenant, &Body::empty())?;
    let stands = conversation(&service, &asked).await?;
    let _turn = writes::begin(&service, &asked.tenant, taken, 0).await;
    let (account, now) = (&asked.tenant.account, service.gateway.now());
    let change = service.conversations.remove(account, asked.id, &item, now).await;
    check_change(change.map_err(|error| conversations_unavailable(&error))?, item_not_found)?;
    Ok(json_response(&object(&stands)))
}

async fn conversation(
    service: &ApiState,
    asked: &ConversationRequest,
) -> Result<StoredConversation, ApiError> {
    let found = service.conversations.find(&asked.tenant.account, asked.id, service.gateway.now()).await;
    found.map_err(|error| conversations_unavailable(&error))?.ok_or_else(conversation_not_found)
}

async fn find(
    service: &ApiState,
    asked: &ConversationRequest,
    item: &str,
) -> Result<Option<PositionedItem>, ApiError> {
    let found =
        service.conversations.item(&asked.tenant.account, asked.id, item, service.gateway.now()).await;
    found.map_err(|error| conversations_unavailable(&error))
}

fn item_not_found() -> ApiError {
    ApiError::not_found("the conversation has no item of that id").with_code(codes::ITEM_NOT_FOUND)
}
