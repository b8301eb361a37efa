//! `/admin/episodes`: episodes of all accounts: list them, show one, raise its limits, end it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::http::Request;
use axum::response::Response;
use serde_json::{Value, json};

use crate::gateway::{EpisodeView, Gateway};
use crate::http::error::{ApiError, codes};
use crate::http::fields::Fields;
use crate::http::path_params::PathParams;
use crate::http::{body, budget, episodes};
use stint_sessions::agent::StoredEpisode;
use stint_types::chat::{EpisodeRaise, ToolCounts};
use stint_types::units::{AccountId, Count, EpisodeId, Tokens};

use super::access::Admin;
use super::audit;
use super::query::{PageQuery, QueryParams};
use super::show::page;
use super::state::AdminState;

/// `GET /admin/episodes`: runs by account and name; with `account`, only that account's.
pub(super) async fn list(
    State(admin): State<Arc<AdminState>>,
    asked: QueryParams,
) -> Result<Response, ApiError> {
    let span = PageQuery::read(asked, &["after", "limit", "account"])?;
    let account = span.account.as_deref().map(account).transpose()?;
    let after = span.after.as_deref().map(cursor).transpose()?;
    let most = span.page_size();
    let runs =
        admin.require_gateway()?.episodes(account.as_ref(), after.as_ref(), most.saturating_add(1)).await;
    let mut runs = runs.map_err(|error| ApiError::episodes_unavailable(&error))?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let has_more = runs.len() > most;
    runs.truncate(most);
    let next = runs.last().filter(|_| has_more).map(|(account, run)| format!("{account} {}", run.id));
    let data: Vec<Value> = runs.iter().map(|(account, run)| summary(account, run)).collect();
    Ok(page(&json!({ "object": "list", "data": data, "next": next })))
}

/// `GET /admin/episodes/{id}?account=…`: with what it has used and what is left.
pub(super) async fn show(
    State(admin): State<Arc<AdminState>>,
    PathParams(id): PathParams<String>,
    asked: QueryParams,
) -> Result<Response, ApiError> {
    let (account, id) = requested_episode(asked, &id)?;
    let shown = admin.require_gateway()?.episode(&account, &id).await;
    episode_page(&account, shown.map_err(|error| ApiError::episodes_unavailable(&error))?)
}

/// `POST /admin/episodes/{id}/raise?account=…`: so much more of what it is limited in.
pub(super) async fn raise(
    State(admin): State<Arc<AdminState>>,
    Extension(caller): Extension<Admin>,
    PathParams(id): PathParams<String>,
    asked: QueryParams,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let (account, id) = requested_episode(asked, &id)?;
    let mut fields = body::fields(request, &admin.settings).await?;
    let more = more(&mut fields)?;
    fields.finish()?;
    let gateway = admin.require_gateway()?;
    may_be_raised(gateway, &account, &id).await?;
    audit::note(&admin, &caller, "episode.raise", format!("{account} {id}"), Some(raise_value(&more)))
        .await?;
    tracing::info!(%account, episode = %id, "raised a run's limits");
    change(gateway, &account, &id, &more).await
}

/// `POST /admin/episodes/{id}/end?account=…`: it takes no step any more, for good.
pub(super) async fn end(
    State(admin): State<Arc<AdminState>>,
    Extension(caller): Extension<Admin>,
    PathParams(id): PathParams<String>,
    asked: QueryParams,
) -> Result<Response, ApiError> {
    let (account, id) = requested_episode(asked, &id)?;
    let more = EpisodeRaise { is_end: true, raises: 1, ..EpisodeRaise::default() };
    let gateway = admin.require_gateway()?;
    let known = gateway.episode(&account, &id).await;
    let known = known.map_err(|error| ApiError::episodes_unavailable(&error))?.ok_or_else(unknown)?;
    if known.episode.raised.is_end {
        // Nothing is done, so there is nothing to note.
        return episode_page(&account, Some(known));
    }
    audit::note(&admin, &caller, "episode.end", format!("{account} {id}"), None).await?;
    tracing::info!(%account, episode = %id, "ended a run");
    change(gateway, &account, &id, &more).await
}

async fn change(
    gateway: &Gateway,
    account: &AccountId,
    id: &EpisodeId,
    more: &EpisodeRaise,
) -> Result<Response, ApiError> {
    let changed = gateway.raise_episode(account, id, more).await;
    episode_page(account, changed.map_err(|error| ApiError::episodes_unavailable(&error))?)
}

/// What has ended stays so.
async fn may_be_raised(gateway: &Gateway, account: &AccountId, id: &EpisodeId) -> Result<(), ApiError> {
    let known = gateway.episode(account, id).await.map_err(|error| ApiError::episodes_unavailable(&error))?;
    match known {
        Some(known) if known.episode.raised.is_end => Err(ApiError::state_conflict(
            "this run was ended, which is for good: begin another one".to_owned(),
            codes::ENDED,
        )),
        Some(_) => Ok(()),
        None => Err(unknown()),
    }
}

fn more(fields: &mut Fields) -> Result<EpisodeRaise, ApiError> {
    let (cost, thinking) = (budget::cost(fields)?, fields.integer("thinking_tokens")?);
    let (turns, tools) = (fields.integer("turns")?, budget::tool_calls(fields)?);
    let more = EpisodeRaise {
        cost: cost.unwrap_or_default(),
        thinking: Tokens(thinking.unwrap_or_default()),
        turns: Count(turns.unwrap_or_default()),
        tools: ToolCounts { all: tools.all.unwrap_or_default(), each: tools.each },
        is_end: false,
        raises: 1,
    };
    if more == (EpisodeRaise { raises: 1, ..EpisodeRaise::default() }) {
        let must = "say by how much: cost_usd, thinking_tokens, turns or tool_calls";
        return Err(ApiError::invalid(None, must));
    }
    Ok(more)
}

/// By how much, for the audit log.
fn raise_value(more: &EpisodeRaise) -> Value {
    json!({
        "cost_usd": more.cost.to_string(),
        "thinking_tokens": more.thinking,
        "turns": more.turns.0,
        "tool_calls": { "*": more.tools.all.0, "each": more.tools.each.iter().map(|(tool, count)| (tool.to_string(), count.0)).collect::<std::collections::BTreeMap<_, _>>() },
    })
}

/// Whose episode it is, and which.
fn requested_episode(asked: QueryParams, id: &str) -> Result<(AccountId, EpisodeId), ApiError> {
    let span = PageQuery::read(asked, &["account"])?;
    let whose = span.account.ok_or_else(|| ApiError::missing("account", "the account whose run it is"))?;
    Ok((account(&whose)?, id.parse().map_err(|_| unknown())?))
}

fn account(path: &str) -> Result<AccountId, ApiError> {
    path.parse().map_err(|error| ApiError::invalid(Some("account"), format!("is {error}")))
}

/// The `next` of another page.
fn cursor(text: &str) -> Result<(AccountId, EpisodeId), ApiError> {
    let wrong = || ApiError::invalid(Some("after"), "must be the `next` of another page");
    let (account, id) = text.split_once(' ').ok_or_else(wrong)?;
    Ok((account.parse().map_err(|_| wrong())?, id.parse().map_err(|_| wrong())?))
}

fn unknown() -> ApiError {
    ApiError::not_found("this account has no such run, or it was too long ago")
        .with_code(codes::EPISODE_NOT_FOUND)
}

fn episode_page(account: &AccountId, shown: Option<EpisodeView>) -> Result<Response, ApiError> {
    let shown = shown.ok_or_else(unknown)?;
    let mut answer = episodes::page(&shown);
    answer["account"] = account.as_str().into();
    answer["raised"] = raised(&shown.episode);
    Ok(page(&answer))
}

/// An episode in a list, with what is known of it without asking the ledger.
fn summary(account: &AccountId, run: &StoredEpisode) -> Value {
    json!({
        "object": "episode",
        "id": run.id.as_str(),
        "account": account.as_str(),
        "limits": episodes::limits(&run.limits),
        "raised": raised(run),
        "steps": run.steps.0,
        "used_at": run.last_used,
        "model": run.last.as_ref().map(|last| &*last.model),
        "state": run.last.as_ref().map(|last| last.ended.as_str()),
    })
}

fn raised(run: &StoredEpisode) -> Value {
    json!({ "times": run.raised.raises, "is_ended": run.raised.is_end })
}
