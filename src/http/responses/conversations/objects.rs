//! Conversations themselves: made, read, described, deleted.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Request};
use axum::response::Response;
use serde_json::{Map, Value, json};

use crate::http::api_state::ApiState;
use crate::http::error::ApiError;
use crate::http::fields::Fields;
use crate::http::json_response::json_response;
use crate::http::path_params::PathParams;
use crate::http::responses::errors::{conversation_not_found, conversations_unavailable, storage_disabled};
use crate::http::{auth, body, body_limiter, metadata, writes};
use stint_sessions::agent::conversations::{StoredConversation, StoredItem};
use stint_types::units::{ConversationId, Timestamp};

use super::{check_change, conversation_request, find_conversation, read_items};

/// The most items that a conversation begins with.
pub(super) const ITEMS_MAX: usize = 20;

/// Makes a conversation.
pub(in crate::http) async fn create(
    State(service): State<Arc<ApiState>>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let tenant = auth::tenant(&service, request.headers())?;
    body_limiter::assign(request.extensions(), &tenant);
    let taken = writes::take(&service, &tenant, request.body())?;
    let mut fields = body::fields(request, &service.settings).await?;
    let items = read_items(&service, &fields.list("items")?.unwrap_or_default(), ITEMS_MAX)?;
    let notes = read_metadata(&mut fields)?.unwrap_or_default();
    fields.finish()?;
    if !service.conversations.settings().store {
        return Err(storage_disabled());
    }
    let conversation = StoredConversation {
        id: ConversationId::new(),
        account: tenant.account.clone(),
        key: Some(tenant.id),
        at: service.gateway.now(),
        metadata: Value::Object(notes).to_string().into(),
        episode: None,
    };
    let bytes = conversation.metadata.len() + items.iter().map(StoredItem::size).sum::<usize>();
    let _turn = writes::begin(&service, &tenant, taken, bytes).await;
    let change = service.conversations.create(&conversation, &items).await;
    check_change(change.map_err(|error| conversations_unavailable(&error))?, conversation_not_found)?;
    Ok(json_response(&object(&conversation)))
}

/// A conversation, without its items.
pub(in crate::http) async fn retrieve(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
    PathParams(id): PathParams<String>,
) -> Result<Response, ApiError> {
    let lookup = conversation_request(&service, &headers, &id)?;
    Ok(json_response(&object(&find_conversation(&service, &lookup).await?)))
}

/// Puts other metadata in the place of what is there.
pub(in crate::http) async fn set_metadata(
    State(service): State<Arc<ApiState>>,
    PathParams(id): PathParams<String>,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let lookup = conversation_request(&service, request.headers(), &id)?;
    body_limiter::assign(request.extensions(), &lookup.tenant);
    let taken = writes::take(&service, &lookup.tenant, request.body())?;
    let mut fields = body::fields(request, &service.settings).await?;
    let notes = read_metadata(&mut fields)?.ok_or_else(|| ApiError::missing("metadata", "an object"))?;
    fields.finish()?;
    let (metadata, now) = (Value::Object(notes).to_string(), service.gateway.now());
    let conversation = find_conversation(&service, &lookup).await?;
    let _turn = writes::begin(&service, &lookup.tenant, taken, metadata.len()).await;
    let described = service.conversations.set_metadata(&conversation, &metadata, now).await;
    described
        .map_err(|error| conversations_unavailable(&error))?
        .map(|found| json_response(&object(&found)))
        .ok_or_else(conversation_not_found)
}

/// Deletes it with its items for good. Responses that were made in it stay.
pub(in crate::http) async fn delete(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
    PathParams(id): PathParams<String>,
) -> Result<Response, ApiError> {
    let lookup = conversation_request(&service, &headers, &id)?;
    let taken = writes::take(&service, &lookup.tenant, &Body::empty())?;
    let conversation = find_conversation(&service, &lookup).await?;
    let _turn = writes::begin(&service, &lookup.tenant, taken, 0).await;
    let deleted = service.conversations.delete(&conversation).await;
    if !deleted.map_err(|error| conversations_unavailable(&error))? {
        return Err(conversation_not_found());
    }
    Ok(json_response(
        &json!({ "id": lookup.id.to_string(), "object": "conversation.deleted", "deleted": true }),
    ))
}

/// A conversation as the API shows it.
pub(super) fn object(conversation: &StoredConversation) -> Value {
    let StoredConversation { id, at, metadata, episode, .. } = conversation;
    let notes: Value = serde_json::from_str(metadata).unwrap_or_default();
    let mut object = json!({
        "id": id.to_string(), "object": "conversation", "created_at": Timestamp::as_seconds(*at), "metadata": notes,
    });
    if let Some(episode) = episode {
        object["episode"] = episode.as_str().into();
    }
    object
}

/// What its caller notes of it.
fn read_metadata(fields: &mut Fields) -> Result<Option<Map<String, Value>>, ApiError> {
    fields.take("metadata").map(metadata::read).transpose()
}
