//! `GET` and `DELETE /v1/responses/{id}`, and what was put in: responses that can be had again.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::agent::stored::StoredResponse;
use crate::http::auth;
use crate::http::error::Problem;
use crate::http::router::Service;

use super::recall::{forgetful, read};
use super::request_of;

/// How many items a page has where nobody says, and at most.
const LIMIT_USUAL: usize = 20;
const LIMIT_MAX: usize = 100;

/// The response as it was told.
pub(in crate::http) async fn retrieve(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    if pairs(query.as_deref()).any(|(name, value)| name == "stream" && value != "false") {
        let why = "is not offered for what has ended; leave it out";
        return Err(Problem::invalid(Some("stream"), why));
    }
    let kept = find(&service, &headers, &id).await?;
    let mut told: Value = serde_json::from_str(&kept.told).unwrap_or_default();
    if told.get("output").is_none() {
        told["output"] = read(&kept.output).into();
    }
    Ok(page(&told))
}

/// Deletes it for good.
pub(in crate::http) async fn delete(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let tenant = auth::tenant(&service.keys, &headers)?;
    let request = request_of(&id).ok_or_else(unknown)?;
    let deleted = service.responses.delete(&tenant.account, request).await;
    match deleted.map_err(|error| forgetful(&error))? {
        true => Ok(page(&json!({ "id": id, "object": "response", "deleted": true }))),
        false => Err(unknown()),
    }
}

/// What its request put in; what it continued is asked for by the ids of those.
pub(in crate::http) async fn input_items(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let asked = Page::read(query.as_deref())?;
    let kept = find(&service, &headers, &id).await?;
    asked.of(named(&kept)).map(|listed| page(&listed))
}

async fn find(service: &Service, headers: &HeaderMap, id: &str) -> Result<StoredResponse, Problem> {
    let tenant = auth::tenant(&service.keys, headers)?;
    let request = request_of(id).ok_or_else(unknown)?;
    let found = service.responses.find(&tenant.account, request, service.gateway.now()).await;
    found.map_err(|error| forgetful(&error))?.ok_or_else(unknown)
}

/// It says the same of what there never was, of what is gone, and of what is somebody else's.
fn unknown() -> Problem {
    Problem::not_found("this key has no response of that id, or it is not kept").code("response_not_found")
}

fn page(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// The items that were put in, each with an id and in its full form.
pub(super) fn named(kept: &StoredResponse) -> Vec<Value> {
    let hex = kept.id.to_string().replacen("req_", "", 1);
    let named = |(at, mut item): (usize, Value)| {
        if item["type"].is_null() {
            item["type"] = "message".into();
        }
        let (is_message, is_own) = (item["type"] == "message", item["role"] == "assistant");
        if is_message && let Some(text) = item["content"].as_str() {
            let kind = if is_own { "output_text" } else { "input_text" };
            item["content"] = json!([{ "type": kind, "text": text }]);
        }
        if is_message && item["status"].is_null() {
            item["status"] = "completed".into();
        }
        if item["id"].is_null() {
            item["id"] = format!("in_{hex}_{at}").into();
        }
        item
    };
    read(&kept.input).into_iter().enumerate().map(named).collect()
}

fn pairs(query: Option<&str>) -> impl Iterator<Item = (String, String)> {
    let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    pairs.map(|(name, value)| (name.into_owned(), value.into_owned()))
}

/// Which of the items are wanted.
struct Page {
    limit: usize,
    newest_first: bool,
    after: Option<String>,
}

impl Page {
    fn read(query: Option<&str>) -> Result<Page, Problem> {
        let mut page = Page { limit: LIMIT_USUAL, newest_first: true, after: None };
        for (name, value) in pairs(query) {
            match (name.as_str(), value.as_str()) {
                ("limit", number) => {
                    let limit = number.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
                    let must = format!("must be a whole number from 1 to {LIMIT_MAX}");
                    page.limit = limit.ok_or_else(|| Problem::invalid(Some("limit"), must))?;
                }
                ("order", "asc") => page.newest_first = false,
                ("order", "desc") => page.newest_first = true,
                ("order", _) => return Err(Problem::invalid(Some("order"), "must be asc or desc")),
                ("after", _) => page.after = Some(value),
                // All that could be included is there.
                ("include" | "include[]", _) => {}
                _ => return Err(Problem::invalid(Some(&name), "is not known here; leave it out")),
            }
        }
        Ok(page)
    }

    fn of(self, mut items: Vec<Value>) -> Result<Value, Problem> {
        if self.newest_first {
            items.reverse();
        }
        if let Some(after) = self.after {
            let at = items.iter().position(|item| item["id"] == *after);
            let at = at.ok_or_else(|| Problem::invalid(Some("after"), "names no item of this response"))?;
            items.drain(..=at);
        }
        let has_more = items.len() > self.limit;
        items.truncate(self.limit);
        let id = |item: Option<&Value>| item.map(|item| item["id"].clone());
        Ok(json!({
            "object": "list", "first_id": id(items.first()), "last_id": id(items.last()), "has_more": has_more,
            "data": items,
        }))
    }
}
