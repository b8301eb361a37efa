//! Episodes out: `GET /v1/episodes/{id}`, and what every answer to a step shows of its episode.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Map, Value, json};

use crate::gateway::{EpisodeSnapshot, EpisodeView};
use stint_sessions::agent::RouteTurns;
use stint_types::chat::EpisodeLimits;
use stint_types::units::EpisodeId;

use super::api_state::ApiState;
use super::auth;
use super::error::ApiError;
use super::json_response::json_response;
use super::path_params::PathParams;

/// How an episode of this key stands.
pub(super) async fn episode(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
    PathParams(id): PathParams<String>,
) -> Result<Response, ApiError> {
    let tenant = auth::tenant(&service, &headers)?;
    let id: EpisodeId = id.parse().map_err(|_| ApiError::unknown_episode())?;
    let shown = service
        .gateway
        .own_episode(&tenant, &id)
        .await
        .map_err(|error| ApiError::episodes_unavailable(&error))?;
    Ok(json_response(&page(&shown.ok_or_else(ApiError::unknown_episode)?)))
}

/// What the page shows of an episode.
pub(super) fn page(EpisodeView { episode, snapshot }: &EpisodeView) -> Value {
    let mut page = episode_members(snapshot);
    page.insert("object".into(), "episode".into());
    page.insert("limits".into(), limits(&episode.limits));
    page.insert("used_at".into(), json!(episode.last_used));
    page.insert("steps".into(), episode.steps.0.into());
    if let Some(last) = &episode.last {
        page.insert("model".into(), (*last.model).into());
        page.insert("state".into(), last.ended.as_str().into());
    }
    page.into()
}

/// What an episode may take.
pub(super) fn limits(limits: &EpisodeLimits) -> Value {
    let mut shown = Map::new();
    if let Some(cost) = limits.cost {
        shown.insert("cost_usd".into(), cost.to_string().into());
    }
    if let Some(thinking) = limits.thinking {
        shown.insert("thinking_tokens".into(), thinking.0.into());
    }
    if let Some(turns) = limits.turns {
        shown.insert("turns".into(), turns.0.into());
    }
    let each = limits.tools.each.iter().map(|(tool, most)| (tool.to_string(), most.0.into()));
    let all = limits.tools.all.map(|most| ("*".to_owned(), most.0.into()));
    let tools: Map<String, Value> = each.chain(all).collect();
    if !tools.is_empty() {
        shown.insert("tool_calls".into(), tools.into());
    }
    shown.into()
}

/// What a step's budget object shows: its own tool calls, and its episode.
pub(super) fn step_members(snapshot: &EpisodeSnapshot) -> [(String, Value); 2] {
    let left = snapshot.calls.left.filter(|_| snapshot.is_booked);
    let mut calls = Map::from_iter([("used".to_owned(), Value::from(snapshot.passed.0))]);
    if let Some(left) = left {
        calls.insert("left".into(), left.0.into());
    }
    if snapshot.trimmed.0 > 0 {
        calls.insert("trimmed".into(), snapshot.trimmed.0.into());
    }
    if !snapshot.withheld.is_empty() {
        let withheld: Vec<&str> = snapshot.withheld.iter().map(AsRef::as_ref).collect();
        calls.insert("withheld".into(), withheld.into());
    }
    let mut episode = episode_members(snapshot);
    if let Some(finality) = snapshot.finality {
        episode.insert("final".into(), true.into());
        episode.insert("final_by".into(), finality.as_str().into());
    }
    [("tool_calls".into(), calls.into()), ("episode".into(), episode.into())]
}

/// How an episode stands. What is not limited has no `left`; what the books do not have is not told.
pub(super) fn episode_members(snapshot: &EpisodeSnapshot) -> Map<String, Value> {
    if !snapshot.is_booked {
        return Map::from_iter([("id".to_owned(), snapshot.id.as_str().into())]);
    }
    let count = |used: u64, left: Option<u64>| {
        let used = ("used".to_owned(), Value::from(used));
        let left = left.map(|left| ("left".to_owned(), Value::from(left)));
        Value::Object(std::iter::once(used).chain(left).collect())
    };
    let mut calls = count(snapshot.calls.used.0, snapshot.calls.left.map(|left| left.0));
    for (tool, share) in &snapshot.tools {
        calls["tools"][&**tool] = count(share.used.0, share.left.map(|left| left.0));
    }
    let mut turns = count(snapshot.turns.used.0, snapshot.turns.left.map(|left| left.0));
    if let Some(RouteTurns { used, most }) = snapshot.route_turns {
        turns["route"] = count(used.0, Some(most.saturating_sub(used).0));
    }
    let mut episode = Map::new();
    episode.insert("id".into(), snapshot.id.as_str().into());
    episode.insert("turns".into(), turns);
    episode.insert("tool_calls".into(), calls);
    episode.insert(
        "thinking_tokens".into(),
        count(snapshot.thinking.used.0, snapshot.thinking.left.map(|left| left.0)),
    );
    episode.insert("cost_usd".into(), snapshot.cost.used.to_string().into());
    if let Some(left) = snapshot.cost.left {
        episode.insert("left_usd".into(), left.to_string().into());
    }
    episode
}
