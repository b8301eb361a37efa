//! The members of a Responses request that state budgets, all but `reasoning`.

use crate::http::budget::{
    BudgetParser, EffortTable, read_extension, read_foreign_thinking, read_foreign_totals,
};
use crate::http::error::ApiError;
use crate::http::fields::Fields;
use stint_types::chat::MemberNames;

/// A parser whose errors name the members of Responses.
pub(super) fn parser(efforts: &EffortTable) -> BudgetParser<'_> {
    let members = MemberNames {
        total: "max_output_tokens",
        logprobs: "top_logprobs",
        reasoning_effort: "reasoning.effort",
        prompt: "input",
        response_format: "text.format",
        ..MemberNames::default()
    };
    BudgetParser::new(efforts, members)
}

/// Reads the members of a Responses body.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn read(budgets: &mut BudgetParser<'_>, fields: &mut Fields) -> Result<(), ApiError> {
    budgets.total(fields, "max_output_tokens")?;
    read_foreign_totals(budgets, fields)?;
    read_foreign_thinking(budgets, fields)?;
    // OpenAI counts calls of its own tools. There are none here, so these are calls of the caller's tools in one answer.
    budgets.max_tool_calls(fields)?;
    read_extension(budgets, fields)
}
