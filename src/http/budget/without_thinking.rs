//! Budgets of endpoints that do not think. Completions of plain texts take the `budget` object and its headers; embeddings take
//! only the episode.

use axum::http::{HeaderMap, HeaderName};
use serde_json::{Map, Value};

use crate::http::error::{ApiError, codes};
use crate::http::fields::Fields;
use stint_types::chat::{Budget, EpisodeLimits, MemberNames};
use stint_types::units::EpisodeId;

use super::episode::from_metadata;
use super::extension::{HEADERS, read_extension, read_headers};
use super::parser::{BudgetParser, EffortTable};

/// Completions have one limit for all that is written.
fn parser(efforts: &EffortTable) -> BudgetParser<'_> {
    let all = "max_tokens";
    let members = MemberNames { solution: all, total: all, prompt: "prompt", ..MemberNames::default() };
    BudgetParser::new(efforts, members)
}

/// The `budget` object and its headers.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(in crate::http) fn extension_only(fields: &mut Fields, headers: &HeaderMap) -> Result<Budget, ApiError> {
    let efforts = EffortTable::new();
    let mut budgets = parser(&efforts);
    read_extension(&mut budgets, fields)?;
    read_headers(&mut budgets, headers)?;
    Ok(budgets.finish())
}

/// The episode and its limits, where no other budget is known.
///
/// # Errors
/// 400 that names the member and the remedy; limits without an episode's name are one.
pub(in crate::http) fn episode_only(
    fields: &mut Fields,
    headers: &HeaderMap,
    extra: &Map<String, Value>,
) -> Result<(Option<EpisodeId>, EpisodeLimits), ApiError> {
    let unknown = |name: &str, known: &str| {
        ApiError::invalid(Some(name), format!("is not known here; of budgets only {known} is"))
    };
    let is_other = |name: &str| name.starts_with(HEADERS) && name != "x-budget-episode";
    if let Some(name) = headers.keys().map(HeaderName::as_str).find(|name| is_other(name)) {
        return Err(unknown(name, "x-budget-episode"));
    }
    let other_member = |name: &&String| *name != "episode";
    if let Some(Value::Object(budget)) = fields.peek("budget")
        && let Some(name) = budget.keys().find(other_member)
    {
        return Err(unknown(&format!("budget.{name}"), "budget.episode").with_code(codes::UNKNOWN_PARAMETER));
    }
    let efforts = EffortTable::new();
    let mut budgets = parser(&efforts);
    read_extension(&mut budgets, fields)?;
    read_headers(&mut budgets, headers)?;
    budgets.name_episode(from_metadata(extra)?);
    let Budget { episode, episode_limits, .. } = budgets.finish();
    if episode.is_none() && !episode_limits.is_empty() {
        return Err(ApiError::missing("budget.episode.id", "the name of the run that these limits are of"));
    }
    Ok((episode, episode_limits))
}
