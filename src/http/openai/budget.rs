//! The members of a chat completion that state budgets: OpenAI's own, `OpenRouter`'s and vLLM's.

use crate::http::anthropic;
use crate::http::budget::{
    BudgetParser, EffortTable, read_extension, read_foreign_thinking, read_foreign_totals,
};
use crate::http::error::ApiError;
use crate::http::fields::Fields;
use stint_types::chat::MemberNames;
use stint_types::units::Tokens;

/// A parser whose errors name a chat completion's members.
pub(super) fn parser(efforts: &EffortTable) -> BudgetParser<'_> {
    BudgetParser::new(efforts, MemberNames::default())
}

/// Reads the members of a chat completion's body.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn read(budgets: &mut BudgetParser<'_>, fields: &mut Fields) -> Result<(), ApiError> {
    budgets.effort_word("reasoning_effort", fields.text("reasoning_effort")?)?;
    budgets.thinking("thinking_token_budget", fields.integer("thinking_token_budget")?.map(Tokens));
    budgets.max_tool_calls(fields)?;
    budgets.total(fields, "max_completion_tokens")?;
    budgets.total(fields, "max_tokens")?;
    read_foreign_totals(budgets, fields)?;
    read_foreign_thinking(budgets, fields)?;
    if let Some(reasoning) = fields.fields("reasoning")? {
        read_reasoning(budgets, reasoning)?;
    }
    if let Some(thinking) = fields.fields("thinking")? {
        anthropic::read_thinking(budgets, thinking)?;
    }
    if fields.boolean("include_reasoning")? == Some(false) {
        budgets.thoughts = false;
    }
    read_extension(budgets, fields)
}

/// `OpenRouter`'s `reasoning`, which Responses has too.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(in crate::http) fn read_reasoning(
    budgets: &mut BudgetParser<'_>,
    mut reasoning: Fields,
) -> Result<(), ApiError> {
    budgets.effort_word("reasoning.effort", reasoning.text("effort")?)?;
    budgets.thinking("reasoning.max_tokens", reasoning.integer("max_tokens")?.map(Tokens));
    if reasoning.boolean("enabled")? == Some(false) {
        budgets.thinking("reasoning.enabled", Some(Tokens::ZERO));
    }
    if reasoning.boolean("exclude")? == Some(true) {
        budgets.thoughts = false;
    }
    reasoning.finish()
}
