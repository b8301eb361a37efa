//! Limits and switches of thinking as servers of open models and other providers call them.

use serde_json::Value;

use super::BudgetParser;
use crate::http::error::ApiError;
use crate::http::fields::Fields;

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

/// How thoughts are told apart and shown, which is decided here: every answer has them in the same place.
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

impl BudgetParser<'_> {
    /// The limits on all that is written.
    pub(in crate::http) fn foreign_totals(&mut self, fields: &mut Fields) -> Result<(), ApiError> {
        for key in TOTALS {
            if let Some(value) = token_limit(fields, key)? {
                fields.put(key, value.into());
                self.total(fields, key)?;
            }
        }
        Ok(())
    }

    /// What limits a thought or turns it off.
    pub(in crate::http) fn foreign_thinking(&mut self, fields: &mut Fields) -> Result<(), ApiError> {
        for key in BUDGETS {
            let tokens = token_limit(fields, key)?;
            self.thinking(key, tokens);
        }
        if fields.boolean("enable_thinking")? == Some(false) {
            self.thinking("enable_thinking", Some(0));
        }
        self.think(fields)?;
        self.template_arguments(fields)?;
        self.custom_params(fields)?;
        if fields.text("reasoning_format")?.as_deref() == Some("hidden") {
            self.thoughts = false;
        }
        fields.take_all(&DISPLAY_MEMBERS);
        Ok(())
    }

    /// Ollama's `think`: a switch, or an effort word.
    fn think(&mut self, fields: &mut Fields) -> Result<(), ApiError> {
        match fields.take("think") {
            None | Some(Value::Bool(true)) => Ok(()),
            Some(Value::Bool(false)) => {
                self.thinking("think", Some(0));
                Ok(())
            }
            Some(Value::String(word)) => self.effort_word("think", Some(word)),
            Some(_) => Err(ApiError::invalid(Some("think"), "must be true, false or an effort word")),
        }
    }

    /// The arguments of the chat template: those that speak of thinking hold here, the others are left for who has a template.
    fn template_arguments(&mut self, fields: &mut Fields) -> Result<(), ApiError> {
        let Some(mut arguments) = fields.fields("chat_template_kwargs")? else { return Ok(()) };
        for (key, param) in TEMPLATE_SWITCHES {
            if arguments.boolean(key)? == Some(false) {
                self.thinking(param, Some(0));
            }
        }
        let tokens = token_limit(&mut arguments, "thinking_budget")?;
        self.thinking("chat_template_kwargs.thinking_budget", tokens);
        let word = arguments.text("reasoning_effort")?;
        self.effort_word("chat_template_kwargs.reasoning_effort", word)?;
        let rest = arguments.into_members();
        if !rest.is_empty() {
            fields.put("chat_template_kwargs", Value::Object(rest));
        }
        Ok(())
    }

    /// `SGLang`'s `custom_params`, which have the budget among what a processor of the operator's may want.
    fn custom_params(&mut self, fields: &mut Fields) -> Result<(), ApiError> {
        let Some(mut custom) = fields.fields("custom_params")? else { return Ok(()) };
        let tokens = token_limit(&mut custom, "thinking_budget")?;
        self.thinking("custom_params.thinking_budget", tokens);
        let rest = custom.into_members();
        if !rest.is_empty() {
            fields.put("custom_params", Value::Object(rest));
        }
        Ok(())
    }
}

/// A number of tokens; nothing where it is below zero.
pub(in crate::http) fn token_limit(fields: &mut Fields, key: &str) -> Result<Option<u64>, ApiError> {
    match fields.peek(key).and_then(Value::as_i64) {
        Some(below) if below < 0 => {
            fields.take(key);
            Ok(None)
        }
        _ => fields.integer(key),
    }
}
