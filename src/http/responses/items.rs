//! Items → the canonical conversation.
//!
//! What a model said in one turn is several items, one after another; in the canonical conversation it is one message.

use serde_json::Value;

use crate::chat::{Message, Part, Role, ToolCall};
use crate::http::error::Problem;
use crate::http::fields::Fields;
use crate::http::signed;

use super::{parts, tools};

/// A conversation that grows item by item.
#[derive(Debug, Default)]
pub(super) struct Conversation(Vec<Message>);

impl Conversation {
    /// One that begins with the system's words, where there are any.
    pub(super) fn new(instructions: Option<&str>) -> Conversation {
        let system =
            instructions.filter(|text| !text.is_empty()).map(|text| Message::text(Role::System, text));
        Conversation(system.into_iter().collect())
    }

    /// The messages.
    pub(super) fn into_messages(self) -> Vec<Message> {
        self.0
    }

    /// So it goes on.
    ///
    /// # Errors
    /// 400 that names the member and the remedy.
    pub(super) fn push(&mut self, path: &str, item: &Value) -> Result<(), Problem> {
        let mut item = Fields::of(path, item.clone())?;
        let kind = item.text("type")?;
        match kind.as_deref() {
            None | Some("message") => self.message(&mut item)?,
            Some("reasoning") => self.reasoning(&mut item)?,
            Some("function_call") => {
                let arguments = item.need("arguments")?;
                self.call(&mut item, arguments)?;
            }
            Some("custom_tool_call") => {
                let arguments = tools::arguments(&item.need("input")?);
                self.call(&mut item, arguments)?;
            }
            Some("function_call_output" | "custom_tool_call_output") => self.result(&mut item)?,
            Some(_) => {
                let must = "must be message, reasoning, function_call, function_call_output, custom_tool_call, \
                            custom_tool_call_output or item_reference: nothing else is made here";
                return Err(Problem::invalid(Some(&item.name("type")), must));
            }
        }
        // What items carry when they come back.
        item.pass(&["id", "status", "phase", "namespace", "caller", "async"]);
        item.end()
    }

    fn message(&mut self, item: &mut Fields) -> Result<(), Problem> {
        let role = match item.text("role")?.as_deref() {
            Some("system" | "developer") => Role::System,
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => {
                let must = "must be user, assistant, system or developer";
                return Err(Problem::invalid(Some(&item.name("role")), must));
            }
        };
        let content = parts::read(item, "content")?;
        match role {
            Role::Assistant => self.turn().content.extend(content),
            _ => self.0.push(Message { content, ..Message::text(role, "") }),
        }
        Ok(())
    }

    fn reasoning(&mut self, item: &mut Fields) -> Result<(), Problem> {
        let (content, summary) = (texts(item, "content")?, texts(item, "summary")?);
        let sealed = item.text("encrypted_content")?;
        let turn = self.turn();
        let thought = if content.is_empty() { summary } else { content };
        if !thought.is_empty() {
            turn.thought.get_or_insert_default().push_str(&thought);
        }
        turn.signed.extend(sealed.as_deref().and_then(signed::unsealed));
        Ok(())
    }

    fn call(&mut self, item: &mut Fields, arguments: String) -> Result<(), Problem> {
        let call = ToolCall { id: item.need("call_id")?, name: item.need("name")?, arguments };
        self.turn().tool_calls.push(call);
        Ok(())
    }

    fn result(&mut self, item: &mut Fields) -> Result<(), Problem> {
        let id = item.need("call_id")?;
        let mut content = parts::read(item, "output")?;
        if content.is_empty() {
            content.push(Part::Text(String::new()));
        }
        item.pass(&["name"]);
        self.0.push(Message { content, tool_call_id: Some(id), ..Message::text(Role::Tool, "") });
        Ok(())
    }

    /// The model's turn that goes on, or a new one.
    fn turn(&mut self) -> &mut Message {
        if self.0.last().is_none_or(|last| last.role != Role::Assistant) {
            self.0.push(Message { content: Vec::new(), ..Message::text(Role::Assistant, "") });
        }
        let at = self.0.len() - 1;
        &mut self.0[at]
    }
}

/// The texts of a thought, joined.
fn texts(item: &mut Fields, key: &str) -> Result<String, Problem> {
    let path = item.name(key);
    let parts = item.list(key)?.unwrap_or_default();
    let text = |(at, part): (usize, Value)| match part["text"].as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(Problem::invalid(Some(&format!("{path}[{at}].text")), "must be a string")),
    };
    parts.into_iter().enumerate().map(text).collect()
}
