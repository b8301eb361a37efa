//! The items of a conversation: read in pages, added, removed.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, Request};
use axum::response::Response;
use serde_json::Value;

use crate::agent::conversations::{Lengthening, Page, Placed, StoredConversation};
use crate::http::body;
use crate::http::error::Problem;
use crate::http::responses::listing::{self, Wanted, no_such};
use crate::http::router::Service;

use super::kept::shown;
use super::objects::{ITEMS_MAX, object};
use super::{Asked, asked, forgetful, made, nothing_is_kept, taken, unknown};

/// A page of items.
pub(in crate::http) async fn list(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let asked = asked(&service, &headers, &id)?;
    let wanted = Wanted::read(query.as_deref())?;
    conversation(&service, &asked).await?;
    let after = match &wanted.after {
        Some(after) => Some(find(&service, &asked, after).await?.ok_or_else(no_such)?.at),
        None => None,
    };
    let limit = u32::try_from(wanted.limit + 1).unwrap_or(u32::MAX);
    let page = Page { after, newest_first: wanted.newest_first, limit };
    let (account, now) = (&asked.tenant.account, service.gateway.now());
    let found = service.conversations.items(account, asked.id, page, now).await;
    let found = found.map_err(|error| forgetful(&error))?;
    let items = found.iter().map(|placed| shown(&placed.item)).collect();
    Ok(listing::shown(&wanted.page(items)))
}

/// Puts items at the end.
pub(in crate::http) async fn append(
    State(service): State<Arc<Service>>,
    Path(id): Path<String>,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let asked = asked(&service, request.headers(), &id)?;
    let mut fields = body::fields(request, &service.settings).await?;
    // Everything that could be included is there.
    fields.pass(&["include"]);
    let given = fields.list("items")?.ok_or_else(|| Problem::missing("items", "a list of items"))?;
    fields.end()?;
    let items = taken(&given, ITEMS_MAX)?;
    if !service.conversations.settings().store {
        return Err(nothing_is_kept());
    }
    let told: Vec<Value> = items.iter().map(shown).collect();
    let lengthening = Lengthening {
        account: asked.tenant.account.clone(),
        id: asked.id,
        claimant: None,
        items,
        episode: None,
        at: service.gateway.now(),
    };
    let change = service.conversations.lengthen(&lengthening).await;
    made(change.map_err(|error| forgetful(&error))?, unknown)?;
    Ok(listing::shown(&listing::list(&told, false)))
}

/// One item.
pub(in crate::http) async fn item(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    Path((id, item)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let asked = asked(&service, &headers, &id)?;
    conversation(&service, &asked).await?;
    let found = find(&service, &asked, &item).await?.ok_or_else(no_item)?;
    Ok(listing::shown(&shown(&found.item)))
}

/// Takes an item out; shows the conversation.
pub(in crate::http) async fn remove(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    Path((id, item)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let asked = asked(&service, &headers, &id)?;
    let stands = conversation(&service, &asked).await?;
    let (account, now) = (&asked.tenant.account, service.gateway.now());
    let change = service.conversations.remove(account, asked.id, &item, now).await;
    made(change.map_err(|error| forgetful(&error))?, no_item)?;
    Ok(listing::shown(&object(&stands)))
}

async fn conversation(service: &Service, asked: &Asked) -> Result<StoredConversation, Problem> {
    let found = service.conversations.find(&asked.tenant.account, asked.id, service.gateway.now()).await;
    found.map_err(|error| forgetful(&error))?.ok_or_else(unknown)
}

async fn find(service: &Service, asked: &Asked, item: &str) -> Result<Option<Placed>, Problem> {
    let found =
        service.conversations.item(&asked.tenant.account, asked.id, item, service.gateway.now()).await;
    found.map_err(|error| forgetful(&error))
}

fn no_item() -> Problem {
    Problem::not_found("the conversation has no item of that id").code("item_not_found")
}
