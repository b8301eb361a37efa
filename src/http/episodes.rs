//! Runs of agents out: `GET /v1/episodes/{id}`, and what every answer to a step tells of its run.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Map, Value, json};

use crate::agent::RouteTurns;
use crate::chat::EpisodeLimits;
use crate::gateway::{EpisodeSnapshot, EpisodeView};
use crate::units::EpisodeId;

use super::api_state::ApiState;
use super::auth;
use super::error::ApiError;
use super::json_response::json_response;

/// How a run of this key stands.
pub(super) async fn episode(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let tenant = auth::tenant(&service.keys, &headers)?;
    let id: EpisodeId = id.parse().map_err(|_| ApiError::unknown_episode())?;
    let shown = service
        .gateway
        .episode(&tenant.account, &id)
        .await
        .map_err(|error| ApiError::episodes_unavailable(&error))?;
    Ok(json_response(&page(&shown.ok_or_else(ApiError::unknown_episode)?)))
}

/// What is told of a run.
pub(super) fn page(EpisodeView { episode, snapshot: told }: &EpisodeView) -> Value {
    let mut page = episode_members(told);
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

/// What a run may take.
pub(super) fn limits(limits: &EpisodeLimits) -> Value {
    let mut told = Map::new();
    if let Some(cost) = limits.cost {
        told.insert("cost_usd".into(), cost.to_string().into());
    }
    if let Some(thinking) = limits.thinking {
        told.insert("thinking_tokens".into(), thinking.0.into());
    }
    if let Some(turns) = limits.turns {
        told.insert("turns".into(), turns.0.into());
    }
    let each = limits.tools.each.iter().map(|(tool, most)| (tool.to_string(), most.0.into()));
    let all = limits.tools.all.map(|most| ("*".to_owned(), most.0.into()));
    let tools: Map<String, Value> = each.chain(all).collect();
    if !tools.is_empty() {
        told.insert("tool_calls".into(), tools.into());
    }
    told.into()
}

/// What a step's budget object tells: its own tool calls, and its run.
pub(super) fn step_members(told: &EpisodeSnapshot) -> [(String, Value); 2] {
    let left = told.calls.left;
    let mut calls = Map::from_iter([("used".to_owned(), Value::from(told.passed.0))]);
    if let Some(left) = left {
        calls.insert("left".into(), left.0.into());
    }
    if told.trimmed.0 > 0 {
        calls.insert("trimmed".into(), told.trimmed.0.into());
    }
    if !told.withheld.is_empty() {
        let withheld: Vec<&str> = told.withheld.iter().map(AsRef::as_ref).collect();
        calls.insert("withheld".into(), withheld.into());
    }
    let mut run = episode_members(told);
    if let Some(finality) = told.finality {
        run.insert("final".into(), true.into());
        run.insert("final_by".into(), finality.as_str().into());
    }
    [("tool_calls".into(), calls.into()), ("episode".into(), run.into())]
}

/// How a run stands; what is not limited has no `left`.
pub(super) fn episode_members(told: &EpisodeSnapshot) -> Map<String, Value> {
    let count = |used: u64, left: Option<u64>| {
        let used = ("used".to_owned(), Value::from(used));
        let left = left.map(|left| ("left".to_owned(), Value::from(left)));
        Value::Object(std::iter::once(used).chain(left).collect())
    };
    let mut calls = count(told.calls.used.0, told.calls.left.map(|left| left.0));
    for (tool, share) in &told.tools {
        calls["tools"][&**tool] = count(share.used.0, share.left.map(|left| left.0));
    }
    let mut turns = count(told.turns.used.0, told.turns.left.map(|left| left.0));
    if let Some(RouteTurns { used, most }) = told.route_turns {
        turns["route"] = count(used.0, Some(most.saturating_sub(used).0));
    }
    let mut run = Map::new();
    run.insert("id".into(), told.id.as_str().into());
    run.insert("turns".into(), turns);
    run.insert("tool_calls".into(), calls);
    run.insert("thinking_tokens".into(), count(told.thinking.used.0, told.thinking.left.map(|left| left.0)));
    run.insert("cost_usd".into(), told.cost.used.to_string().into());
    if let Some(left) = told.cost.left {
        run.insert("left_usd".into(), left.to_string().into());
    }
    run
}
