//! Calls of declared tools as a grammar: each with arguments that fit what the tool declares.

use std::fmt::Write;

use serde_json::Value;

use crate::remote::caller_options::{FunctionDeclaration, OpenAiToolChoice, disables_parallel_tools};
use crate::{Failure, UnsupportedFeature};
use stint_prompt::tool_calls::{CallFrame, ToolCallSyntax};
use stint_types::chat::Request;

use super::json_schema::schema_source;

/// What an answer may be beside calls.
pub(super) enum CallMode {
    /// Nothing.
    Only,
    /// JSON by this schema, in their place.
    OrJson(Value),
    /// Any text around them.
    InText,
}

/// What the calls of an answer are held to.
pub(super) struct CallGrammar<'r> {
    frame: CallFrame,
    tools: Vec<FunctionDeclaration<'r>>,
    mode: CallMode,
    /// Whether there may be only one.
    is_single: bool,
}

impl<'r> CallGrammar<'r> {
    /// For a model that writes its calls so. None where nothing holds an answer to them, and where text around calls is free
    /// and no tool is strict.
    pub(super) fn of(
        request: &'r Request,
        choice: Option<&OpenAiToolChoice>,
        syntax: Option<ToolCallSyntax>,
        mode: CallMode,
    ) -> Option<CallGrammar<'r>> {
        let frame = syntax.and_then(ToolCallSyntax::frame)?;
        let is_withheld = |name: &str| request.withheld_tools.iter().any(|withheld| &**withheld == name);
        let is_chosen = |name: &str| !matches!(choice, Some(OpenAiToolChoice::Named(only)) if only != name);
        let chosen = request.tools.iter().filter(|tool| !is_withheld(&tool.name) && is_chosen(&tool.name));
        let tools: Vec<_> = chosen.map(FunctionDeclaration::of).collect();
        let is_wanted = match mode {
            CallMode::Only | CallMode::OrJson(_) => !tools.is_empty(),
            CallMode::InText => frame.tag.is_some() && tools.iter().any(|tool| tool.strict),
        };
        let is_named = matches!(choice, Some(OpenAiToolChoice::Named(_)));
        let is_single = is_named || disables_parallel_tools(request);
        is_wanted.then_some(CallGrammar { frame, tools, mode, is_single })
    }

    /// The same in the language of the grammar's maker.
    ///
    /// # Errors
    /// Where what a tool declares is no schema.
    pub(super) fn lark(&self) -> Result<String, Failure> {
        let CallGrammar { frame, tools, .. } = self;
        let mut source = self.start();
        for (at, tool) in tools.iter().enumerate() {
            let schema = schema_source(&object_schema(&tool.parameters), !tool.strict).map_err(|why| {
                Failure::incapable(UnsupportedFeature::Tools, format!("the tool `{}`: {why}", tool.name))
            })?;
            let name = quoted(&[tool.name, frame.arguments].concat());
            // Writing into a text cannot fail.
            let _ = writeln!(source, "tool_{at}: {name} arguments_{at}\narguments_{at}: %json {schema}");
        }
        let names: Vec<_> = (0..tools.len()).map(|at| format!("tool_{at}")).collect();
        let _ = writeln!(source, "named: {}", names.join(" | "));
        Ok(source)
    }

    fn start(&self) -> String {
        let CallFrame { first, open, close, between, last, tag, .. } = self.frame;
        let close = by_lines(close);
        let more = if self.is_single { String::new() } else { format!("({} call)*", by_lines(between)) };
        let parts = [optional(first), "call".into(), more, optional(last)];
        let calls = parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(" ");
        let call = format!("call: {} named {close}\n", by_lines(open));
        match &self.mode {
            CallMode::Only => format!("start: {calls}\n{call}"),
            CallMode::OrJson(schema) => {
                format!("start: answer | calls\nanswer: %json {schema}\ncalls: {calls}\n{call}")
            }
            CallMode::InText => {
                // Text up to the tag, what the tag opens, and so on; at the end text without a tag.
                let tag = tag.unwrap_or_default();
                let rest = by_lines(open.strip_prefix(tag).unwrap_or_default());
                let (tag, more) = (quoted(tag), if self.is_single { "?" } else { "*" });
                format!(
                    "start: called{more} REST\ncalled: before {rest} named {close}\n\
                     before[suffix={tag}]: /(.|\\n)*/\nREST: /(.|\\n)*/ & ~(/(.|\\n)*/ {tag} /(.|\\n)*/)\n"
                )
            }
        }
    }
}

/// A tool's arguments are an object, whatever else is declared of them.
fn object_schema(parameters: &Value) -> Value {
    let mut schema = parameters.clone();
    if let Some(members) = schema.as_object_mut() {
        members.entry("type").or_insert_with(|| "object".into());
    }
    schema
}

fn optional(text: &str) -> String {
    if text.is_empty() { String::new() } else { quoted(text) }
}

/// A part of a frame, without line ends where the model leaves them out: some write a call on one line, or have a token for its
/// beginning that holds no line end.
fn by_lines(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(optional).collect();
    lines.join(r#" "\n"? "#).trim().to_owned()
}

/// A text as the language writes it, which is as JSON does.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
