//! Builds the canonical conversation from items.
//!
//! One turn of a model is several items, one after another; in the canonical conversation it is one message.

use std::collections::{HashMap, VecDeque};

use serde_json::{Value, json};

use crate::http::error::ApiError;
use crate::http::fields::Fields;
use crate::http::signed;
use stint_types::chat::{ContentPart, Message, Role, ToolCall};

use super::tool_set::{ToolSet, flat_name};
use super::{arguments, compaction, parts, tools};

/// A conversation that grows item by item.
#[derive(Debug, Default)]
pub(super) struct ConversationBuilder {
    messages: Vec<Message>,
    results: PendingResults,
    /// The tools that items offer.
    tool_set: ToolSet,
    /// True if results came after the model's last words: its next ones are another turn.
    is_answered: bool,
}

impl ConversationBuilder {
    /// One that begins with the system's words, where there are any.
    pub(super) fn new(instructions: Option<&str>) -> ConversationBuilder {
        let system =
            instructions.filter(|text| !text.is_empty()).map(|text| Message::text(Role::System, text));
        ConversationBuilder { messages: system.into_iter().collect(), ..ConversationBuilder::default() }
    }

    /// The tools that its items offer.
    pub(super) fn take_tool_set(&mut self) -> ToolSet {
        std::mem::take(&mut self.tool_set)
    }

    /// All parts so far.
    pub(super) fn parts(&self) -> impl Iterator<Item = &ContentPart> {
        let results = self.results.waiting.values().flatten().flatten();
        self.messages.iter().flat_map(|message| &message.content).chain(results)
    }

    /// The messages. Outputs are found by their calls wherever they stand, as OpenAI finds them, and are put right behind
    /// the turns that called, as providers want them.
    ///
    /// # Errors
    /// 400 where a call has no output, or an output no call.
    pub(super) fn into_messages(mut self) -> Result<Vec<Message>, ApiError> {
        let mut messages = Vec::with_capacity(self.messages.len() + self.results.count);
        for message in self.messages {
            let at = messages.len();
            messages.push(message);
            let calls = messages[at].tool_calls.len();
            for call in 0..calls {
                let result = self.results.take(&messages[at].tool_calls[call])?;
                messages.push(result);
            }
        }
        self.results.end()?;
        Ok(messages)
    }

    /// Adds an item.
    ///
    /// # Errors
    /// 400 that names the member and the remedy.
    pub(super) fn push(&mut self, path: &str, item: &Value) -> Result<(), ApiError> {
        let mut item = Fields::from_value(path, item.clone())?;
        let kind = item.text("type")?;
        match kind.as_deref() {
            None | Some("message") => self.message(&mut item)?,
            Some("reasoning") => self.reasoning(&mut item)?,
            Some("function_call") => {
                let arguments = item.require("arguments")?;
                self.call(&mut item, arguments)?;
            }
            Some("custom_tool_call") => {
                let arguments = arguments::wrap_input(&item.require("input")?);
                self.call(&mut item, arguments)?;
            }
            Some("function_call_output" | "custom_tool_call_output") => self.result(&mut item)?,
            Some("additional_tools") => {
                item.require("role")?;
                self.tool_set.override_with(tools::read(&mut item)?);
            }
            Some("compaction" | "compaction_summary") => self.compaction(&mut item)?,
            // What it asks for is seen to elsewhere.
            Some(compaction::TRIGGER) => {}
            Some("tool_search_call") => self.search(&mut item)?,
            Some("tool_search_output") => self.found(&mut item)?,
            Some(_) => {
                let must = "must be message, reasoning, function_call, function_call_output, custom_tool_call, \
                            custom_tool_call_output, tool_search_call, tool_search_output, additional_tools, compaction \
                            or item_reference: nothing else is made here";
                return Err(ApiError::invalid(Some(&item.full_name("type")), must));
            }
        }
        // What items carry when they come back.
        item.take_all(&["id", "status", "phase", "namespace", "caller", "async", "created_by"]);
        item.finish()
    }

    fn message(&mut self, item: &mut Fields) -> Result<(), ApiError> {
        let role = match item.text("role")?.as_deref() {
            Some("system" | "developer") => Role::System,
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => {
                let must = "must be user, assistant, system or developer";
                return Err(ApiError::invalid(Some(&item.full_name("role")), must));
            }
        };
        let content = parts::read(item, "content")?;
        let phase = item.text("phase")?;
        match role {
            Role::Assistant => {
                let turn = self.turn();
                turn.begin_phase(phase.as_deref());
                turn.content.extend(content);
            }
            _ => self.messages.push(Message { content, ..Message::text(role, "") }),
        }
        Ok(())
    }

    /// A summary stands for all that it was made of, as if its caller had told it.
    fn compaction(&mut self, item: &mut Fields) -> Result<(), ApiError> {
        let sealed = item.require("encrypted_content")?;
        let Some(summary) = compaction::unseal(&sealed) else {
            let why = "was not made here, so nothing of it can be read: send the items that it stands for";
            return Err(ApiError::invalid(Some(&item.full_name("encrypted_content")), why));
        };
        self.messages.push(Message::text(Role::User, summary));
        Ok(())
    }

    fn reasoning(&mut self, item: &mut Fields) -> Result<(), ApiError> {
        let (content, summary) = (texts(item, "content")?, texts(item, "summary")?);
        let sealed = item.text("encrypted_content")?;
        let turn = self.turn();
        let thought = if content.is_empty() { summary } else { content };
        if !thought.is_empty() {
            turn.thought.get_or_insert_default().push_str(&thought);
        }
        turn.signed.extend(sealed.as_deref().and_then(signed::unseal));
        Ok(())
    }

    fn call(&mut self, item: &mut Fields, arguments: String) -> Result<(), ApiError> {
        let space = item.text("namespace")?;
        let name = flat_name(space.as_deref(), &item.require_filled("name")?);
        let call = ToolCall { id: item.require_filled("call_id")?, name, arguments };
        self.turn().tool_calls.push(call);
        Ok(())
    }

    /// A search for tools, which the caller made.
    fn search(&mut self, item: &mut Fields) -> Result<(), ApiError> {
        check_client_search(item)?;
        let arguments = match item.take("arguments") {
            Some(Value::String(text)) => text,
            Some(arguments) => arguments.to_string(),
            None => "{}".to_owned(),
        };
        let call =
            ToolCall { id: item.require_filled("call_id")?, name: tools::SEARCH.to_owned(), arguments };
        self.turn().tool_calls.push(call);
        Ok(())
    }

    /// What such a search found can be called from here on.
    fn found(&mut self, item: &mut Fields) -> Result<(), ApiError> {
        check_client_search(item)?;
        let id = item.require_filled("call_id")?;
        let found = tools::read(item)?;
        let text = json!({ "tools": found.names() }).to_string();
        self.tool_set.override_with(found);
        self.results.put(id, vec![ContentPart::Text(text)]);
        self.is_answered = true;
        Ok(())
    }

    fn result(&mut self, item: &mut Fields) -> Result<(), ApiError> {
        let id = item.require_filled("call_id")?;
        let mut content = parts::read(item, "output")?;
        if content.is_empty() {
            content.push(ContentPart::Text(String::new()));
        }
        item.take_all(&["name"]);
        self.results.put(id, content);
        self.is_answered = true;
        Ok(())
    }

    /// The model's turn that goes on, or a new one.
    fn turn(&mut self) -> &mut Message {
        let is_over = std::mem::take(&mut self.is_answered);
        if is_over || self.messages.last().is_none_or(|last| last.role != Role::Assistant) {
            self.messages.push(Message { content: Vec::new(), ..Message::text(Role::Assistant, "") });
        }
        let at = self.messages.len() - 1;
        &mut self.messages[at]
    }
}

/// What tools gave back and has not found its call yet, in order, by the ids of calls.
#[derive(Debug, Default)]
struct PendingResults {
    waiting: HashMap<String, VecDeque<Vec<ContentPart>>>,
    count: usize,
}

impl PendingResults {
    fn put(&mut self, id: String, content: Vec<ContentPart>) {
        self.count += 1;
        self.waiting.entry(id).or_default().push_back(content);
    }

    /// What a call gave back.
    fn take(&mut self, ToolCall { id, name, .. }: &ToolCall) -> Result<Message, ApiError> {
        let content = self.waiting.get_mut(id).and_then(VecDeque::pop_front).ok_or_else(|| {
            let why = format!(
                "lacks the output of {name} ({id}): send its function_call_output, or custom_tool_call_output, or leave \
                 the call out"
            );
            ApiError::invalid(Some("input"), why)
        })?;
        let id = Some(id.clone());
        Ok(Message { content, tool_call_id: id, ..Message::text(Role::Tool, "") })
    }

    /// Nothing may be left.
    fn end(self) -> Result<(), ApiError> {
        let left = self.waiting.into_iter().filter(|(_, outputs)| !outputs.is_empty());
        left.map(|(id, _)| id).min().map_or(Ok(()), |id| {
            let why = format!(
                "has an output of {id} that no call is left for: send the call too, by itself or with the \
                 previous_response_id of the response that made it, or leave the output out"
            );
            Err(ApiError::invalid(Some("input"), why))
        })
    }
}

/// Searches that a provider makes are none of ours.
fn check_client_search(item: &mut Fields) -> Result<(), ApiError> {
    match item.text("execution")?.as_deref() {
        None | Some("client") => Ok(()),
        Some(_) => Err(ApiError::invalid(Some(&item.full_name("execution")), "must be client")),
    }
}

/// The texts of a thought, joined.
fn texts(item: &mut Fields, key: &str) -> Result<String, ApiError> {
    let path = item.full_name(key);
    let parts = item.list(key)?.unwrap_or_default();
    let text = |(at, part): (usize, Value)| match part["text"].as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(ApiError::invalid(Some(&format!("{path}[{at}].text")), "must be a string")),
    };
    parts.into_iter().enumerate().map(text).collect()
}
