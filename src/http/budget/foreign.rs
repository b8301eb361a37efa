//! Limits and switches of thinking by the names that servers of open models and other providers have for them. Every API takes
//! them beside its own.

use serde_json::Value;

use crate::http::error::ApiError;
use crate::http::fields::Fields;
use stint_types::units::Tokens;

use super::parser::BudgetParser;

/// What limits all that is written. Below zero means no limit to those who know these names.
pub(in crate::http) const TOTALS: [&str; 6] = [
    "n_predict",
    "num_predict",
    "max_new_tokens",
    "max_output_tokens",
    "max_gen_len",
    "max_tokens_to_sample",
];

/// What limits a thought. Below zero leaves it to the model.
const BUDGETS: [&str; 5] = [
    "thinking_budget",
    "thinking_budget_tokens",
    "reasoning_budget",
    "max_reasoning_tokens",
    "max_thinking_tokens",
];

/// What turns thinking off in a chat template.
const TEMPLATE_SWITCHES: [(&str, &str); 2] = [
    ("enable_thinking", "chat_template_kwargs.enable_thinking"),
    ("thinking", "chat_template_kwargs.thinking"),
];

/// How thoughts are separated and shown, which is decided here: every answer has them in the same place.
const DISPLAY_MEMBERS: [&str; 8] = [
    "separate_reasoning",
    "stream_reasoning",
    "reasoning_split",
    "reasoning_in_content",
    "return_reasoning",
    "thinking_forced_open",
    "parse_tool_calls",
    "prompt_mode",
];

/// The limits on all that is written.
pub(in crate::http) fn read_foreign_totals(
    budgets: &mut BudgetParser<'_>,
    fields: &mut Fields,
) -> Result<(), ApiError> {
    for key in TOTALS {
        if let Some(value) = token_limit(fields, key)? {
            fields.put(key, value.into());
            budgets.total(fields, key)?;
        }
    }
    Ok(())
}

/// What limits a thought or turns it off.
pub(in crate::http) fn read_foreign_thinking(
    budgets: &mut BudgetParser<'_>,
    fields: &mut Fields,
) -> Result<(), ApiError> {
    for key in BUDGETS {
        let tokens = token_limit(fields, key)?;
        budgets.thinking(key, tokens.map(Tokens));
    }
    if fields.boolean("enable_thinking")? == Some(false) {
        budgets.thinking("enable_thinking", Some(Tokens::ZERO));
    }
    think(budgets, fields)?;
    template_arguments(budgets, fields)?;
    custom_params(budgets, fields)?;
    if fields.text("reasoning_format")?.as_deref() == Some("hidden") {
        budgets.thoughts = false;
    }
    fields.take_all(&DISPLAY_MEMBERS);
    Ok(())
}

/// Ollama's `think`: a switch, or an effort word.
fn think(budgets: &mut BudgetParser<'_>, fields: &mut Fields) -> Result<(), ApiError> {
    match fields.take("think") {
        None | Some(Value::Bool(true)) => Ok(()),
        Some(Value::Bool(false)) => {
            budgets.thinking("think", Some(Tokens::ZERO));
            Ok(())
        }
        Some(Value::String(word)) => budgets.effort_word("think", Some(word)),
        Some(_) => Err(ApiError::invalid(Some("think"), "must be true, false or an effort word")),
    }
}

/// The arguments of the chat template: those that speak of thinking hold here, the others are left for who has a template.
fn template_arguments(budgets: &mut BudgetParser<'_>, fields: &mut Fields) -> Result<(), ApiError> {
    let Some(mut arguments) = fields.fields("chat_template_kwargs")? else { return Ok(()) };
    for (key, param) in TEMPLATE_SWITCHES {
        if arguments.boolean(key)? == Some(false) {
            budgets.thinking(param, Some(Tokens::ZERO));
        }
    }
    let tokens = token_limit(&mut arguments, "thinking_budget")?;
    budgets.thinking("chat_template_kwargs.thinking_budget", tokens.map(Tokens));
    let word = arguments.text("reasoning_effort")?;
    budgets.effort_word("chat_template_kwargs.reasoning_effort", word)?;
    let rest = arguments.into_members();
    if !rest.is_empty() {
        fields.put("chat_template_kwargs", Value::Object(rest));
    }
    Ok(())
}

/// `SGLang`'s `custom_params`, which have the budget among what a processor of the operator's may want.
fn custom_params(budgets: &mut BudgetParser<'_>, fields: &mut Fields) -> Result<(), ApiError> {
    let Some(mut custom) = fields.fields("custom_params")? else { return Ok(()) };
    let tokens = token_limit(&mut custom, "thinking_budget")?;
    budgets.thinking("custom_params.thinking_budget", tokens.map(Tokens));
    let rest = custom.into_members();
    if !rest.is_empty() {
        fields.put("custom_params", Value::Object(rest));
    }
    Ok(())
}

/// A number of tokens; nothing if it is below zero.
pub(in crate::http) fn token_limit(fields: &mut Fields, key: &str) -> Result<Option<u64>, ApiError> {
    match fields.peek(key).and_then(Value::as_i64) {
        Some(below) if below < 0 => {
            fields.take(key);
            Ok(None)
        }
        _ => fields.integer(key),
    }
}
