//! The part *episodes*: the runs of agents that were used last, what is left of each budget, and their latest steps.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::gateway::{EpisodeView, Gateway};
use crate::http::episodes;
use crate::http::error::ApiError;
use stint_sessions::history::RequestRecord;
use stint_types::units::{AccountId, EpisodeId};

/// Among how many of the latest requests steps are looked for, and how many of one run are listed.
const RECORDS_MAX: usize = 4096;
const STEPS_MAX: usize = 40;

type StepsOfRun = HashMap<(AccountId, EpisodeId), Vec<Arc<RequestRecord>>>;

/// So many of them, the latest first; of one account where that is named.
pub(super) async fn part(
    gateway: &Gateway,
    account: Option<&AccountId>,
    most: usize,
) -> Result<Value, ApiError> {
    let most = u32::try_from(most).unwrap_or(u32::MAX);
    let latest = gateway.recent_episodes(account, most.saturating_add(1)).await;
    let mut latest = latest.map_err(|error| ApiError::episodes_unavailable(&error))?;
    let has_more = latest.len() > most as usize;
    latest.truncate(most as usize);
    let mut steps = steps(gateway, &latest);
    let page = |(account, view): &(AccountId, EpisodeView)| {
        let mut page = episodes::page(view);
        page["account"] = account.as_str().into();
        page["raised"] = view.episode.raised.raises.into();
        page["is_ended"] = view.episode.raised.is_end.into();
        let of_run = steps.remove(&(account.clone(), view.episode.id.clone())).unwrap_or_default();
        page["latest_steps"] = of_run.iter().rev().map(|record| step(record)).collect();
        page
    };
    Ok(
        json!({ "now": gateway.now(), "has_more": has_more, "episodes": latest.iter().map(page).collect::<Vec<_>>() }),
    )
}

/// The latest steps of these runs that this process remembers, the last one first.
fn steps(gateway: &Gateway, runs: &[(AccountId, EpisodeView)]) -> StepsOfRun {
    let key = |(account, view): &(AccountId, EpisodeView)| (account.clone(), view.episode.id.clone());
    let mut steps: StepsOfRun = runs.iter().map(|run| (key(run), Vec::new())).collect();
    if steps.is_empty() {
        return steps;
    }
    for record in gateway.learning().latest_records(RECORDS_MAX) {
        let Some(episode) = record.decision.episode.clone() else { continue };
        if let Some(of_run) = steps.get_mut(&(record.account.clone(), episode))
            && of_run.len() < STEPS_MAX
        {
            of_run.push(record);
        }
    }
    steps
}

fn step(record: &RequestRecord) -> Value {
    let outcome = &record.outcome;
    let tokens =
        |of: fn(&stint_types::catalog::ChoiceOutcome) -> u64| outcome.choices.iter().map(of).sum::<u64>();
    json!({
        "id": record.decision.id,
        "at": record.decision.at,
        "seconds": outcome.seconds,
        "model": outcome.model,
        "ended": outcome.ended,
        "answer_ended": outcome.choices.first().map(|choice| choice.solution_ended.as_str()),
        "thinking_tokens": tokens(|choice| choice.thinking.0),
        "solution_tokens": tokens(|choice| choice.solution.0),
        "usd": (!outcome.unbooked).then(|| outcome.cost.as_dollars()),
    })
}
