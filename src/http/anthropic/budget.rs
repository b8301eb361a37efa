//! The members of a Messages request that state budgets.

use serde_json::{Map, Value};

use crate::http::budget::{
    BudgetParser, EffortTable, read_extension, read_foreign_thinking, read_foreign_totals,
};
use crate::http::error::{ApiError, codes};
use crate::http::fields::Fields;
use stint_types::chat::{MemberNames, TaskBudget};
use stint_types::units::Tokens;

/// A parser whose errors name the members of Messages.
pub(super) fn parser(efforts: &EffortTable) -> BudgetParser<'_> {
    let members = MemberNames {
        thinking: "thinking.budget_tokens",
        total: "max_tokens",
        reasoning_effort: "output_config.effort",
        response_format: "output_config.format",
        ..MemberNames::default()
    };
    BudgetParser::new(efforts, members)
}

/// The least thinking budget that the API takes.
const THINKING_MIN: Tokens = Tokens(1024);

/// Checks a thinking budget as Anthropic does. One between the calls of tools holds for several answers, and may be beyond the
/// limit of one.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn check_thinking(members: &Map<String, Value>, is_interleaved: bool) -> Result<(), ApiError> {
    const PARAM: &str = "thinking.budget_tokens";
    let number = |value: &Value| value.as_u64().map(Tokens);
    let Some(budget) = members.get("thinking").and_then(|thinking| number(&thinking["budget_tokens"])) else {
        return Ok(());
    };
    if budget < THINKING_MIN {
        let why = "must be at least 1024; a smaller thought is asked for with budget.thinking_tokens";
        return Err(ApiError::invalid(Some(PARAM), why));
    }
    let most = members.get("max_tokens").and_then(number);
    if most.is_some_and(|most| budget >= most) && !is_interleaved {
        let why = "must be below max_tokens, which holds thought and answer: raise that, or lower it";
        return Err(ApiError::invalid(Some(PARAM), why));
    }
    Ok(())
}

/// The least budget of a whole task that the API takes.
const TASK_MIN: Tokens = Tokens(20_000);

/// Reads what the model is told of its whole task.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn read_task_budget(mut task: Fields) -> Result<TaskBudget, ApiError> {
    if task.text("type")?.as_deref() != Some("tokens") {
        return Err(ApiError::invalid(Some(&task.full_name("type")), "must be tokens"));
    }
    let (name, left) = (task.full_name("total"), task.full_name("remaining"));
    let total = task.integer("total")?.map(Tokens).filter(|total| *total >= TASK_MIN);
    let total = total.ok_or_else(|| {
        let must = format!("must be a whole number, {TASK_MIN} at least");
        ApiError::invalid(Some(&name), must)
    })?;
    let remaining = task.integer("remaining")?.map(Tokens);
    if remaining.is_some_and(|remaining| remaining > total) {
        return Err(ApiError::invalid(Some(&left), "must be at most total"));
    }
    task.finish()?;
    Ok(TaskBudget { total, remaining })
}

/// Reads the members of a Messages body. `max_tokens` must be there, and holds thought and answer.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn read(budgets: &mut BudgetParser<'_>, fields: &mut Fields) -> Result<(), ApiError> {
    if !budgets.total(fields, "max_tokens")? {
        return Err(ApiError::invalid(Some("max_tokens"), "is missing; it holds thought and answer")
            .with_code(codes::MISSING_REQUIRED_PARAMETER));
    }
    read_foreign_totals(budgets, fields)?;
    budgets.max_tool_calls(fields)?;
    // A caller that does not ask for thinking expects no thoughts. The plan still decides how much is thought.
    budgets.thoughts = false;
    if let Some(thinking) = fields.fields("thinking")? {
        budgets.thoughts = true;
        read_thinking(budgets, thinking)?;
    }
    read_foreign_thinking(budgets, fields)?;
    read_extension(budgets, fields)
}

/// The `thinking` object, which chat completions take too.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(in crate::http) fn read_thinking(
    budgets: &mut BudgetParser<'_>,
    mut thinking: Fields,
) -> Result<(), ApiError> {
    match thinking.text("type")?.as_deref() {
        Some("enabled" | "adaptive") => {
            let tokens = thinking.integer("budget_tokens")?.map(Tokens);
            budgets.thinking("thinking.budget_tokens", tokens);
        }
        // It has no thought up front, and that is all that the gateway holds.
        Some("disabled" | "between_tools") => budgets.thinking("thinking.type", Some(Tokens::ZERO)),
        _ => {
            return Err(ApiError::invalid(
                Some("thinking.type"),
                "must be enabled, adaptive, between_tools or disabled",
            ));
        }
    }
    match thinking.text("display")?.as_deref() {
        None | Some("summarized") => {}
        // Models here write no updates on what they think, so nothing is left of it.
        Some("omitted" | "updates") => (budgets.thoughts, budgets.sealed) = (false, true),
        Some(_) => {
            let must = "must be summarized, omitted or updates";
            return Err(ApiError::invalid(Some("thinking.display"), must));
        }
    }
    if let Some(binding) = thinking.fields("block_binding")? {
        check_binding(binding)?;
    }
    thinking.finish()
}

/// Checks what a caller says of thoughts that stand behind another beginning than they were thought behind. Such a thought is
/// dropped whatever it says: the backend asks for that by itself wherever thoughts are bound.
fn check_binding(mut binding: Fields) -> Result<(), ApiError> {
    const MEMBER: &str = "prefix_mismatch_behavior";
    match binding.text(MEMBER)?.as_deref() {
        None | Some("drop_block" | "error") => binding.finish(),
        Some(_) => Err(ApiError::invalid(Some(&binding.full_name(MEMBER)), "must be drop_block or error")),
    }
}
