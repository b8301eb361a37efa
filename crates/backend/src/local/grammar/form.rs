//! The form that a request wants its answer to have, as a grammar's source.

use serde_json::{Value, json};

use llguidance::api::TopLevelGrammar;

use crate::remote::caller_options::{OpenAiResponseFormat, OpenAiToolChoice};
use crate::tool_calls::offers_tools;
use crate::{Failure, UnsupportedFeature};
use stint_prompt::tool_calls::ToolCallSyntax;
use stint_types::chat::Request;

use super::calls::{CallGrammar, CallMode};
use super::json_schema::schema_source;

/// What an answer must be.
pub(in super::super) struct AnswerForm {
    pub(super) source: TopLevelGrammar,
    /// What was asked for that cannot be done where no grammar can be made of it.
    pub(super) member: UnsupportedFeature,
}

impl AnswerForm {
    /// What a request wants, of a model that writes its calls so. None where any text will do.
    ///
    /// # Errors
    /// Where it cannot be held to what it wants.
    pub(in super::super) fn of(
        request: &Request,
        syntax: Option<ToolCallSyntax>,
    ) -> Result<Option<AnswerForm>, Failure> {
        let schema = answer_schema(request)?;
        let member = if schema.is_some() { UnsupportedFeature::Form } else { UnsupportedFeature::Tools };
        let source = match calls(request, syntax, schema.as_ref())? {
            Some(calls) => Some(TopLevelGrammar::from_lark(calls.lark()?)),
            None => schema.map(TopLevelGrammar::from_json_schema),
        };
        Ok(source.map(|source| AnswerForm { source, member }))
    }
}

/// The schema that an answer must fit.
fn answer_schema(request: &Request) -> Result<Option<Value>, Failure> {
    let schema = match OpenAiResponseFormat::of(request)? {
        OpenAiResponseFormat::Text => return Ok(None),
        OpenAiResponseFormat::Json => schema_source(&json!({ "type": "object" }), true),
        OpenAiResponseFormat::Schema(named) => {
            let is_strict = named.get("strict") == Some(&Value::Bool(true));
            schema_source(named.get("schema").unwrap_or(&Value::Null), !is_strict)
        }
    };
    schema.map(Some).map_err(|why| Failure::incapable(UnsupportedFeature::Form, why))
}

/// What the calls of an answer are held to, where it may have any and anything is wanted of them or of what may stand in their
/// place.
fn calls<'r>(
    request: &'r Request,
    syntax: Option<ToolCallSyntax>,
    schema: Option<&Value>,
) -> Result<Option<CallGrammar<'r>>, Failure> {
    if !offers_tools(request) {
        return Ok(None);
    }
    let choice = OpenAiToolChoice::of(request)?;
    let mode = match (&choice, schema) {
        (Some(choice), _) if choice.is_forced() => CallMode::Only,
        (_, Some(schema)) => CallMode::OrJson(schema.clone()),
        (_, None) => CallMode::InText,
    };
    let refused = match mode {
        CallMode::Only => {
            (UnsupportedFeature::Choice, "cannot be made to call a tool: leave tool_choice at auto")
        }
        CallMode::OrJson(_) => {
            (UnsupportedFeature::Form, "cannot both be held to a form and call tools: leave one of them out")
        }
        CallMode::InText => return Ok(CallGrammar::of(request, choice.as_ref(), syntax, mode)),
    };
    let why = || {
        Failure::incapable(refused.0, format!("this model, by the way it writes its calls, {}", refused.1))
    };
    CallGrammar::of(request, choice.as_ref(), syntax, mode).map(Some).ok_or_else(why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::chat::{Message, Role, Tool};

    fn request(more: &Value) -> Request {
        let mut request = Request::new("m", vec![Message::text(Role::User, "?")]);
        request.response_format = more.get("response_format").cloned();
        request.tool_choice = more.get("tool_choice").cloned();
        let strict = more.get("strict").cloned().unwrap_or_default();
        if more.get("tools").is_some() {
            let function = json!({ "name": "f", "parameters": { "type": "object" }, "strict": strict });
            let declaration = json!({ "type": "function", "function": function });
            request.tools = vec![Tool::new("f", declaration)];
        }
        request
    }

    /// The first line of what a request is held to; its member where it is refused.
    fn form(more: &Value, syntax: ToolCallSyntax) -> Result<String, UnsupportedFeature> {
        let form =
            AnswerForm::of(&request(more), Some(syntax)).map_err(|failure| failure.unsupported.unwrap())?;
        let Some(form) = form else { return Ok(String::new()) };
        let grammar = &form.source.grammars[0];
        let lark = grammar.lark_grammar.as_ref().map(|lark| lark.lines().next().unwrap().to_owned());
        Ok(lark.unwrap_or_else(|| "json".into()))
    }

    #[test]
    fn a_form_is_what_the_request_says() {
        let (hermes, coder) = (ToolCallSyntax::Hermes, ToolCallSyntax::Coder);
        let json = json!({ "type": "json_object" });
        let any = "start: call (\"\\n\"? call)*";
        let check = |more: Value, expected: Result<&str, UnsupportedFeature>| {
            assert_eq!(form(&more, hermes), expected.map(str::to_owned), "{more}");
        };
        check(json!({}), Ok(""));
        check(json!({ "response_format": { "type": "text" } }), Ok(""));
        check(json!({ "response_format": json }), Ok("json"));
        check(json!({ "tools": 1 }), Ok(""));
        check(json!({ "tools": 1, "tool_choice": "required" }), Ok(any));
        check(json!({ "tools": 1, "tool_choice": "required", "response_format": json }), Ok(any));
        check(json!({ "tools": 1, "tool_choice": "none", "response_format": json }), Ok("json"));
        check(json!({ "tools": 1, "response_format": json }), Ok("start: answer | calls"));
        check(json!({ "tools": 1, "strict": true }), Ok("start: called* REST"));
        check(json!({ "response_format": { "type": "json_schema" } }), Err(UnsupportedFeature::Form));
        let refused = |more: Value| form(&more, coder).unwrap_err();
        assert_eq!(refused(json!({ "tools": 1, "tool_choice": "required" })), UnsupportedFeature::Choice);
        assert_eq!(refused(json!({ "tools": 1, "response_format": json })), UnsupportedFeature::Form);
        assert_eq!(form(&json!({ "tools": 1, "strict": true }), coder).unwrap(), "");
    }

    #[test]
    fn one_function_is_called_once_and_a_tool_that_is_withheld_not_at_all() {
        let named = json!({ "type": "function", "function": { "name": "f" } });
        let named = json!({ "tools": 1, "tool_choice": named });
        assert_eq!(form(&named, ToolCallSyntax::Hermes).unwrap(), "start: call");
        let mut withheld = request(&json!({ "tools": 1, "tool_choice": "required" }));
        withheld.withheld_tools = vec!["f".into()];
        assert!(AnswerForm::of(&withheld, Some(ToolCallSyntax::Hermes)).is_err());
    }
}
