//! Our own members: the `budget` object of a body, and the headers `X-Budget-…` that state the same for clients without an
//! extra body.

use axum::http::HeaderMap;
use serde_json::{Map, Value};

use crate::http::error::ApiError;
use crate::http::fields::Fields;
use crate::http::strict;
use stint_types::chat::ReasoningEffort;
use stint_types::units::{Effort, Preference, Tokens};

use super::parser::{BudgetParser, take_least};
use super::{episode, members};

/// How the names of the headers begin.
pub(super) const HEADERS: &str = "x-budget-";

/// The object's members.
pub(in crate::http) const EXTENSION_MEMBERS: [&str; 9] = [
    "thinking_tokens",
    "solution_tokens",
    "cost_usd",
    "deadline_ms",
    "effort",
    "preference",
    "episode",
    "turns",
    "tool_calls",
];

/// The full names of the object's members, in a body or as headers.
struct BudgetMemberNames {
    thinking: &'static str,
    solution: &'static str,
    cost: &'static str,
    deadline: &'static str,
    depth: &'static str,
}

const IN_BODY: BudgetMemberNames = BudgetMemberNames {
    thinking: "budget.thinking_tokens",
    solution: "budget.solution_tokens",
    cost: "budget.cost_usd",
    deadline: "budget.deadline_ms",
    depth: "budget.effort",
};

const IN_HEADERS: BudgetMemberNames = BudgetMemberNames {
    thinking: "x-budget-thinking-tokens",
    solution: "x-budget-solution-tokens",
    cost: "x-budget-cost-usd",
    deadline: "x-budget-deadline-ms",
    depth: "x-budget-effort",
};

/// The `budget` object of a body, where there is one.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(in crate::http) fn read_extension(
    budgets: &mut BudgetParser<'_>,
    fields: &mut Fields,
) -> Result<(), ApiError> {
    fields.fields("budget")?.map_or(Ok(()), |budget| read_members(budgets, budget, &IN_BODY))
}

/// `X-Budget-Thinking-Tokens: 200` and its like; and `X-Episode-Id`.
///
/// # Errors
/// 400 that names the header and the remedy.
pub(in crate::http) fn read_headers(
    budgets: &mut BudgetParser<'_>,
    headers: &HeaderMap,
) -> Result<(), ApiError> {
    let mut members = Map::new();
    for (name, value) in headers {
        let Some(member) = name.as_str().strip_prefix(HEADERS) else { continue };
        let text =
            value.to_str().map_err(|_| ApiError::invalid(Some(name.as_str()), "must be plain text"))?;
        let member = member.replace('-', "_");
        let value = match member.as_str() {
            "cost_usd" => Value::from(text),
            // A name may look like a number; only the object with limits is JSON.
            "episode" if !text.starts_with('{') => Value::from(text),
            _ if text.starts_with('{') => object(name.as_str(), text)?,
            _ => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
        };
        if members.insert(member, value).is_some() {
            return Err(ApiError::invalid(Some(name.as_str()), "is there twice; send it once"));
        }
    }
    if !members.is_empty() {
        read_members(budgets, Fields::from_headers(HEADERS, members), &IN_HEADERS)?;
    }
    budgets.apply_episode(episode::from_header(headers)?);
    Ok(())
}

/// A header that is an object.
fn object(name: &str, text: &str) -> Result<Value, ApiError> {
    let wrong = |_| ApiError::invalid(Some(name), "must be a JSON object, each key once");
    strict::object(text.as_bytes(), strict::VALUES_MAX).map(Value::Object).map_err(wrong)
}

fn read_members(
    budgets: &mut BudgetParser<'_>,
    mut fields: Fields,
    names: &BudgetMemberNames,
) -> Result<(), ApiError> {
    budgets.thinking(names.thinking, fields.integer("thinking_tokens")?.map(Tokens));
    let budget = &mut budgets.budget;
    if take_least(&mut budget.solution, members::solution(&mut fields)?) {
        budget.members.solution = names.solution;
    }
    if take_least(&mut budget.cost, members::cost(&mut fields)?) {
        budget.members.cost = names.cost;
    }
    if take_least(&mut budget.deadline, members::deadline(&mut fields)?) {
        budget.members.deadline = names.deadline;
    }
    let effort = fields.number("effort", 0.0, Effort::MAX)?;
    if let Some(effort) = effort.and_then(|number| Effort::try_from(number).ok()) {
        budgets.reasoning_effort(names.depth, ReasoningEffort { effort, word: None });
    }
    let preference = fields.number("preference", 0.0, 1.0)?;
    take_least(
        &mut budgets.budget.preference,
        preference.and_then(|number| Preference::try_from(number).ok()),
    );
    budgets.apply_episode(episode::read(&mut fields)?);
    fields.finish_with_known(&EXTENSION_MEMBERS)
}
