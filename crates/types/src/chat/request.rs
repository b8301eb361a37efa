//! `Request`: one call, in a form that is the same for all APIs.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::trace::TraceLink;
use crate::units::{Money, Priority};

use super::{
    Budget, CacheTtl, CommentaryPlace, ContentPart, EffortChanges, Message, RawPrompt, Role, VendorHeaders,
};

/// How tokens are drawn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SamplingOptions {
    /// 0 is greedy. Absent leaves it to the model's own default.
    pub temperature: Option<f32>,
    /// Nucleus: the smallest set of tokens with this probability.
    pub top_p: Option<f32>,
    /// Only the k likeliest tokens.
    pub top_k: Option<u32>,
    /// Repeats a draw, where the backend can.
    pub seed: Option<u64>,
    /// Texts that end the answer; not part of it.
    pub stop: Vec<String>,
}

/// A function that the model may call; the caller runs it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// The function's name.
    pub name: String,
    /// The whole declaration, as the caller wrote it.
    pub declaration: Value,
    /// For how long the caller wants the tools up to this one kept in the provider's cache, where that is wanted.
    pub cache_breakpoint: Option<CacheTtl>,
    /// An object of what Anthropic's API alone has of it, such as examples of its input: for that API's models.
    pub anthropic_members: Option<Value>,
    /// The declaration of a tool that takes plain text, for OpenAI's Responses, which have such tools. Elsewhere it is a
    /// function with that text as its only argument, [`CUSTOM_INPUT`].
    pub custom: Option<Value>,
}

/// The one argument of a tool that takes plain text.
pub const CUSTOM_INPUT: &str = "input";

impl Tool {
    /// A tool, declared like that and nothing more.
    pub fn new(name: impl Into<String>, declaration: Value) -> Tool {
        Tool { name: name.into(), declaration, cache_breakpoint: None, anthropic_members: None, custom: None }
    }

    /// Its type, where it is one that Anthropic's models know by themselves and the caller runs, such as `bash_20250124`.
    pub fn anthropic_type(&self) -> Option<&str> {
        self.anthropic_members.as_ref()?.get("type")?.as_str()
    }
}

/// What is wanted of the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CompletionKind {
    /// Its turn in the conversation.
    #[default]
    Chat,
    /// How a text goes on, without template or thought: the text of the only message.
    Text,
}

/// By whose rules a request's schemas are written. The same word, `strict`, asks more of a schema at one provider than at another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SchemaRules {
    /// OpenAI's: all members are required, and constraints are held to.
    #[default]
    OpenAi,
    /// Anthropic's: members may be left out, and few constraints are held to.
    Anthropic,
}

/// One call for an answer, checked and in canonical form.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// A real model, a route, or `auto`.
    pub model: String,
    /// What is wanted of it.
    pub kind: CompletionKind,
    /// The conversation, at least one message.
    pub messages: Vec<Message>,
    /// True if the last message, which is the assistant's, is the beginning of the answer: only what follows it is wanted.
    pub continues_last: bool,
    /// The tokens that are to go on, where that is wanted and they were given in place of their text.
    pub prompt_ids: Option<Arc<[u32]>>,
    /// How tokens are drawn.
    pub sampling: SamplingOptions,
    /// How many independent answers are wanted, at least one.
    pub choices: u32,
    /// The functions that may be called.
    pub tools: Vec<Tool>,
    /// Whether one must be called, and which; as the caller wrote it.
    pub tool_choice: Option<Value>,
    /// Declared tools that may not be called now: for upstreams that can be told so beside the list of tools. Calls of them do
    /// not pass in any case.
    pub withheld_tools: Vec<Arc<str>>,
    /// What the caller chose, where `tool_choice` is "none" because all tools are withheld.
    pub asked_tool_choice: Option<Value>,
    /// The form that the answer must have; as the caller wrote it.
    pub response_format: Option<Value>,
    /// By whose rules the schemas of that form and of tools are written.
    pub schema_rules: SchemaRules,
    /// Where its caller is shown what the model says on its way.
    pub commentary: CommentaryPlace,
    /// What the caller wants to spend.
    pub budget: Budget,
    /// Where the caller changes in the middle of the conversation how deep the model is to think.
    pub effort_changes: EffortChanges,
    /// True if the answer is sent as it is written.
    pub streams: bool,
    /// Known members that only some upstreams understand (penalties, `user`, …), passed through.
    pub extra: Map<String, Value>,
    /// Members that nobody here knows: for the models whose backends take them.
    pub unknown_members: Map<String, Value>,
    /// How many other likely tokens are reported beside each token of the answer, where the chances of tokens are wanted.
    pub logprobs: Option<u32>,
    /// Whose prompts it may share an upstream's cache with: its account's; everybody's where there is none.
    pub cache_owner: Option<Arc<str>>,
    /// Who goes first where requests wait: its key's word, or its own where that is less.
    pub priority: Priority,
    /// What its whole run may cost, where the model is to be told in its provider's own way.
    pub run_cost: Option<Money>,
    /// The trace that it belongs to, where upstreams are told.
    pub trace: Option<Arc<TraceLink>>,
    /// What its caller says in a provider's own headers.
    pub vendor_headers: VendorHeaders,
}

impl Request {
    /// A request for how a text goes on.
    pub fn text(model: impl Into<String>, text: impl Into<String>) -> Request {
        let messages = vec![Message::text(Role::User, text)];
        Request { kind: CompletionKind::Text, ..Request::new(model, messages) }
    }

    /// A request for how a text goes on of which these are the tokens.
    pub fn tokens(model: impl Into<String>, ids: Arc<[u32]>) -> Request {
        Request { prompt_ids: Some(ids), ..Request::text(model, "") }
    }

    /// What is to go on, where that is what is wanted.
    pub fn raw_prompt(&self) -> Option<RawPrompt> {
        (self.kind == CompletionKind::Text).then(|| match &self.prompt_ids {
            Some(ids) => RawPrompt::Ids(ids.clone()),
            None => RawPrompt::Text(self.messages.iter().map(Message::plain_text).collect()),
        })
    }

    /// True if the last message is the assistant's.
    pub fn ends_with_assistant(&self) -> bool {
        self.messages.last().is_some_and(|message| message.role == Role::Assistant)
    }

    /// True if a message has something that is no text: an image, a sound or a file.
    pub fn has_media(&self) -> bool {
        self.messages.iter().any(|message| message.media().next().is_some())
    }

    /// What the caller marks that the provider is to keep in its cache, each for how long.
    pub fn cache_breakpoints(&self) -> impl Iterator<Item = CacheTtl> {
        let parts = self.messages.iter().flat_map(|message| &message.content);
        self.tools
            .iter()
            .filter_map(|tool| tool.cache_breakpoint)
            .chain(parts.filter_map(ContentPart::cache_ttl))
    }

    /// The longest that any of it is to be kept.
    pub fn cache_ttl(&self) -> CacheTtl {
        self.cache_breakpoints().max().unwrap_or_default()
    }

    /// A request for one answer, with nothing stated beyond the conversation.
    pub fn new(model: impl Into<String>, messages: Vec<Message>) -> Request {
        Request {
            model: model.into(),
            kind: CompletionKind::Chat,
            messages,
            continues_last: false,
            prompt_ids: None,
            sampling: SamplingOptions::default(),
            choices: 1,
            tools: Vec::new(),
            tool_choice: None,
            withheld_tools: Vec::new(),
            asked_tool_choice: None,
            response_format: None,
            schema_rules: SchemaRules::default(),
            commentary: CommentaryPlace::default(),
            budget: Budget::default(),
            effort_changes: EffortChanges::default(),
            streams: false,
            extra: Map::new(),
            unknown_members: Map::new(),
            logprobs: None,
            cache_owner: None,
            priority: Priority::default(),
            run_cost: None,
            trace: None,
            vendor_headers: VendorHeaders::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_part_that_is_no_text_is_media_in_any_message() {
        let said = |parts| Message { content: parts, ..Message::text(Role::User, "") };
        let text =
            said(vec![ContentPart::Text("look".into()), ContentPart::CacheBreakpoint(CacheTtl::Minutes)]);
        let file = said(vec![ContentPart::Other(json!({ "type": "file" }))]);
        assert!(!Request::new("m", vec![text.clone()]).has_media());
        assert!(Request::new("m", vec![file, text]).has_media());
    }
}
