//! How Claude comes to give an answer of a form: it is held to a schema, or else asked for JSON in words.

use serde_json::Value;

use crate::Failure;
use crate::remote::caller_options::{FunctionDeclaration, OpenAiResponseFormat};
use crate::remote::form_instruction;
use stint_types::chat::{Request, SchemaRules};

use super::Settings;
use super::schema::{self, SchemaSize};

/// The most tools of a request that are held to their schemas.
const STRICT_TOOLS_MAX: usize = 20;

/// The form of an answer, as this model comes to it.
#[derive(Debug)]
pub(super) enum ClaudeForm {
    /// Any text.
    Text,
    /// It is held to this schema, which takes up so much.
    Held(Value, SchemaSize),
    /// It is asked for in these words.
    Asked(String),
}

impl ClaudeForm {
    pub(super) fn of(settings: &Settings, request: &Request) -> Result<ClaudeForm, Failure> {
        let named = match OpenAiResponseFormat::of(request)? {
            OpenAiResponseFormat::Text => return Ok(ClaudeForm::Text),
            OpenAiResponseFormat::Json => return Ok(ClaudeForm::Asked(form_instruction::json())),
            OpenAiResponseFormat::Schema(named) => named,
        };
        let schema = &named["schema"];
        if !settings.schemas {
            return Ok(ClaudeForm::Asked(form_instruction::schema(schema)));
        }
        // What is written by this provider's own rules is its own to judge.
        if request.schema_rules == SchemaRules::Anthropic {
            return Ok(ClaudeForm::Held(schema.clone(), SchemaSize::default()));
        }
        let reduced = schema::reduce(schema)
            .and_then(|reduced| Some((reduced.schema, SchemaSize::default().with(reduced.size)?)));
        Ok(match reduced {
            Some((schema, size)) => ClaudeForm::Held(schema, size),
            None => ClaudeForm::Asked(form_instruction::schema(schema)),
        })
    }

    /// What of the limits on a request's schemas it takes up.
    pub(super) fn size(&self) -> SchemaSize {
        match self {
            ClaudeForm::Held(_, size) => *size,
            ClaudeForm::Text | ClaudeForm::Asked(_) => SchemaSize::default(),
        }
    }
}

/// Which tools of a request are held to their schemas, one after the other, as far as its provider's limits go.
#[derive(Debug)]
pub(super) struct StrictTools<'s> {
    settings: &'s Settings,
    rules: SchemaRules,
    held: usize,
    size: SchemaSize,
}

impl<'s> StrictTools<'s> {
    pub(super) fn new(settings: &'s Settings, request: &Request, form: &ClaudeForm) -> StrictTools<'s> {
        StrictTools { settings, rules: request.schema_rules, held: 0, size: form.size() }
    }

    /// The schema of a tool's input, and whether its calls are held to it.
    pub(super) fn declare(&mut self, function: &FunctionDeclaration<'_>) -> (Value, bool) {
        let rules = self.rules;
        let plain = || typed(rules, &function.parameters);
        if !function.strict {
            return (plain(), false);
        }
        if self.rules == SchemaRules::Anthropic {
            return (plain(), true);
        }
        match self.reduced(&function.parameters) {
            Some(schema) => (schema, true),
            None => (plain(), false),
        }
    }

    fn reduced(&mut self, parameters: &Value) -> Option<Value> {
        if !self.settings.schemas || self.held == STRICT_TOOLS_MAX {
            return None;
        }
        let reduced = schema::reduce(parameters)?;
        self.size = self.size.with(reduced.size)?;
        self.held += 1;
        Some(reduced.schema)
    }
}

/// The schema as the caller wrote it. Claude must be told that it is of an object, which OpenAI's rules do without.
fn typed(rules: SchemaRules, schema: &Value) -> Value {
    let mut schema = schema.clone();
    if rules == SchemaRules::OpenAi
        && let Some(members) = schema.as_object_mut()
    {
        members.entry("type").or_insert_with(|| "object".into());
    }
    schema
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_that_says_nothing_is_of_an_object() {
        assert_eq!(typed(SchemaRules::OpenAi, &json!({})), json!({ "type": "object" }));
        assert_eq!(typed(SchemaRules::OpenAi, &json!({ "type": "string" })), json!({ "type": "string" }));
        assert_eq!(typed(SchemaRules::Anthropic, &json!({})), json!({}));
    }
}
