//! How one model is spoken to: its template, its tokenizer and its tags of thinking in one hand.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use stint_types::chat::{Message, Request, Role, Tool};
use stint_types::units::Timestamp;

use super::detokenizer::{Detokenizer, TokenBytes};
use super::error::PromptError;
use super::template::{ChatTemplate, TemplateContext};
use super::thinking_tags::{FoundTags, ThinkingTags};
use super::tokenizer::Tokenizer;
use super::tool_calls::ToolCallSyntax;
use super::turn_style::{self, TurnStyle};
use super::vocabulary::{TokenKind, Vocabulary};

/// No tag of a thought has more tokens.
const TAG_TOKENS_MAX: usize = 64;

/// A name that no template has of itself.
const TRIAL_TOOL: &str = "stint_trial_tool";

/// How one model is spoken to.
#[derive(Debug)]
pub struct PromptFormat {
    tokenizer: Tokenizer,
    template: ChatTemplate,
    /// For requests with tools, where the model has one of its own for them.
    tool_template: Option<ChatTemplate>,
    bytes: TokenBytes,
    /// The names of tokens that have no text.
    controls: BTreeMap<u32, String>,
    thinking: FoundTags,
    stop_tokens: Vec<u32>,
    syntax: Option<ToolCallSyntax>,
    shows_tools: bool,
    turns: TurnStyle,
    bos: String,
    eos: String,
}

impl PromptFormat {
    /// The format of a model with this vocabulary, whose thoughts usually stand between these tags, or others that are known. They
    /// are tokens or text. A model whose template knows nothing of them does not think: models that only answer share their
    /// vocabulary with others that think. A template that fails at a plain question is refused.
    pub fn new(vocabulary: &Vocabulary, start_tag: &str, end_tag: &str) -> Result<PromptFormat, PromptError> {
        let template = vocabulary.template.as_deref().ok_or(PromptError::NoTemplate)?;
        let tags = FoundTags::search(vocabulary, template, [start_tag, end_tag]);
        PromptFormat::with_tags(vocabulary, template, tags)
    }

    /// The same of a model whose thoughts are known to stand between these tags, though its template may not mention them. They are
    /// refused where only one of them is a token.
    pub fn with_stated_tags(
        vocabulary: &Vocabulary,
        start_tag: &str,
        end_tag: &str,
    ) -> Result<PromptFormat, PromptError> {
        let template = vocabulary.template.as_deref().ok_or(PromptError::NoTemplate)?;
        PromptFormat::with_tags(vocabulary, template, FoundTags::stated(vocabulary, [start_tag, end_tag])?)
    }

    fn with_tags(
        vocabulary: &Vocabulary,
        template: &str,
        thinking: FoundTags,
    ) -> Result<PromptFormat, PromptError> {
        let tool_template = vocabulary.tool_template.as_deref();
        let text = |id: u32| vocabulary.tokens.get(id as usize).cloned().unwrap_or_default();
        let mut format = PromptFormat {
            tokenizer: Tokenizer::new(vocabulary)?,
            template: ChatTemplate::new(template)?,
            tool_template: tool_template.map(ChatTemplate::new).transpose()?,
            bytes: TokenBytes::new(vocabulary),
            controls: vocabulary
                .of_kind(TokenKind::Control)
                .map(|(id, name)| (id, name.to_owned()))
                .collect(),
            thinking,
            stop_tokens: vocabulary.stop_tokens(),
            syntax: ToolCallSyntax::of_template(tool_template.unwrap_or(template)),
            shows_tools: false,
            turns: TurnStyle::FALLBACK,
            bos: vocabulary.bos.map(text).unwrap_or_default(),
            eos: text(vocabulary.eos),
        };
        // A mistake that shows only when a template runs is found now, and not by the first caller.
        let trial = Request::new("", vec![Message::text(Role::User, "Hello")]);
        format.shows_tools = format.renders_tools(&trial);
        format.turns =
            TurnStyle::all().find(|turns| format.renders_calls(*turns)).unwrap_or(TurnStyle::FALLBACK);
        let single = format.turns.with_single_calls();
        if !format.renders_two_calls(format.turns) && format.renders_two_calls(single) {
            format.turns = single;
        }
        match format.render_at(&trial, false, Timestamp(0)) {
            Ok(_) | Err(PromptError::Refused(_)) => Ok(format),
            Err(error) => Err(error),
        }
    }

    /// The prompt of a request, ready for the model's turn.
    pub fn render(&self, request: &Request, thinking: bool) -> Result<Vec<u32>, PromptError> {
        self.render_at(request, thinking, Timestamp::now())
    }

    /// The same, on a given date.
    pub fn render_at(
        &self,
        request: &Request,
        thinking: bool,
        now: Timestamp,
    ) -> Result<Vec<u32>, PromptError> {
        let (text, mark) = self.render_text(request, thinking, now, self.turns)?;
        self.tokenizer.encode_prompt(&text, mark)
    }

    /// The text of a prompt, and what marks the control tokens that the caller spelled out.
    fn render_text(
        &self,
        request: &Request,
        thinking: bool,
        now: Timestamp,
        turns: TurnStyle,
    ) -> Result<(String, Option<char>), PromptError> {
        let withheld = request.tool_choice.as_ref().is_some_and(|choice| choice == "none");
        let has_tools = !request.tools.is_empty() && !withheld;
        let (template, turns) = match &self.tool_template {
            Some(own) if has_tools => (own, turns),
            // The other may know nothing of calls: a turn that says nothing has an empty text there.
            Some(_) => (&self.template, turns.with_empty_text()),
            None => (&self.template, turns),
        };
        let mut messages = turns.messages(&request.messages);
        let mut tools = if has_tools {
            request.tools.iter().map(|tool| tool.declaration.clone()).collect()
        } else {
            Value::Null
        };
        let mark = self.mark_controls(&mut [&mut messages, &mut tools]);
        let (bos_token, eos_token) = (self.bos.clone(), self.eos.clone());
        let context = TemplateContext { messages, tools, enable_thinking: thinking, bos_token, eos_token };
        Ok((template.render(&context, now)?, mark))
    }

    /// Whether a tool that is declared comes up in the prompt. A template that fails at it says for itself what it lacks.
    fn renders_tools(&self, request: &Request) -> bool {
        let function = json!({"name": TRIAL_TOOL, "description": "", "parameters": {"type": "object", "properties": {}}});
        let tool = Tool::new(TRIAL_TOOL, json!({"type": "function", "function": function}));
        let request = Request { tools: vec![tool], ..request.clone() };
        self.render_text(&request, false, Timestamp(0), self.turns)
            .map_or(true, |(text, _)| text.contains(TRIAL_TOOL))
    }

    /// Whether a conversation in which a tool was called comes up in the prompt, when its turns are told so. A text that is none may
    /// come up as that word.
    fn renders_calls(&self, turns: TurnStyle) -> bool {
        let nones = |text: &str| text.to_ascii_lowercase().matches("none").count();
        let render = |turns| {
            self.render_text(&turn_style::trial(1), false, Timestamp(0), turns).ok().map(|(text, _)| text)
        };
        let Some(text) = render(turns).filter(|text| text.contains(turn_style::TRIAL_ARGUMENT)) else {
            return false;
        };
        render(turns.with_empty_text()).is_none_or(|with_text| nones(&text) <= nones(&with_text))
    }

    /// Whether two calls that were made at once both come up in the prompt.
    fn renders_two_calls(&self, turns: TurnStyle) -> bool {
        let rendered = self.render_text(&turn_style::trial(2), false, Timestamp(0), turns);
        rendered.is_ok_and(|(text, _)| text.matches(turn_style::TRIAL_ARGUMENT).count() >= 2)
    }

    /// The tokens of a text that is to go on as it is, control tokens and all.
    pub fn encode_raw(&self, text: &str) -> Result<Vec<u32>, PromptError> {
        self.tokenizer.encode_prompt(text, None)
    }

    /// The tokens of a text of ours, such as a hand-off.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, PromptError> {
        self.tokenizer.encode(text, None)
    }

    /// Turns this model's tokens into text.
    pub fn detokenizer(&self) -> Detokenizer {
        Detokenizer::new(self.bytes.clone())
    }

    /// The bytes of a token's text; none where it has no text.
    pub fn token_bytes(&self, id: u32) -> &[u8] {
        self.bytes.of(id)
    }

    /// What a token is called where tokens are listed: its text, or its name where it has none.
    pub fn token_text(&self, id: u32) -> Cow<'_, str> {
        match self.controls.get(&id) {
            Some(name) => name.into(),
            None => String::from_utf8_lossy(self.bytes.of(id)),
        }
    }

    /// Whether the model thinks, as far as can be known.
    pub fn thinks(&self) -> bool {
        self.thinking.tags.is_some() || self.thinking.is_spelled
    }

    /// The tags of thinking that are text, since its vocabulary has no tokens for them.
    pub fn spelled_tags(&self) -> Option<&[String; 2]> {
        self.thinking.names.as_ref().filter(|_| self.thinking.is_spelled)
    }

    /// What each token spells, by their ids.
    pub fn token_texts(&self) -> Arc<[Box<[u8]>]> {
        self.bytes.shared()
    }

    /// The tags of thinking that are tokens; `None` for a model that does not think, or whose tags are text.
    pub fn tags(&self) -> Option<ThinkingTags> {
        self.thinking.tags
    }

    /// What closes a thought; `None` for a model that does not think.
    pub fn end_tag(&self) -> Option<&str> {
        let [_, end] = self.thinking.names.as_ref().filter(|_| self.thinks())?;
        Some(end)
    }

    /// The names of tokens around thoughts that the model has, though its template does not mention them: it is taken for one that
    /// does not think.
    pub fn unmentioned_tags(&self) -> Option<&[String; 2]> {
        self.thinking.names.as_ref().filter(|_| !self.thinks())
    }

    /// The tokens that end a text, the end-of-text token first.
    pub fn stop_tokens(&self) -> &[u32] {
        &self.stop_tokens
    }

    /// How the template shows the model to write its tool calls, if it is a syntax that can be read.
    pub fn syntax(&self) -> Option<ToolCallSyntax> {
        self.syntax
    }

    /// Whether the template tells the model of the tools that a request declares.
    pub fn shows_tools(&self) -> bool {
        self.shows_tools
    }

    /// True if the prompt ends inside a thought: with the tag that begins one, but for white space.
    pub fn opens_thought(&self, prompt: &[u32]) -> bool {
        if let Some([start, _]) = self.spelled_tags() {
            return self.ends_with(prompt, start);
        }
        let blank = |id: u32| {
            let bytes = self.bytes.of(id);
            !bytes.is_empty() && bytes.iter().all(u8::is_ascii_whitespace)
        };
        let last = prompt.iter().rev().find(|&&id| !blank(id));
        self.thinking.tags.is_some_and(|tags| last == Some(&tags.start))
    }

    /// Whether the last tokens spell this text, but for white space behind it. What stands before a token without text is of another
    /// turn.
    fn ends_with(&self, prompt: &[u32], text: &str) -> bool {
        let last = prompt.iter().rev().take(TAG_TOKENS_MAX).map(|id| self.bytes.of(*id));
        let mut last: Vec<&[u8]> = last.take_while(|bytes| !bytes.is_empty()).collect();
        last.reverse();
        last.concat().trim_ascii_end().ends_with(text.as_bytes())
    }

    /// Marks every control token that a caller spells out; the mark is a character that nobody uses.
    fn mark_controls(&self, texts: &mut [&mut Value]) -> Option<char> {
        let mut spells = false;
        let mut used = std::collections::BTreeSet::new();
        for text in texts.iter() {
            visit(text, &mut |text| {
                spells |= self.tokenizer.spells_control(text);
                used.extend(text.chars().filter(|character| PRIVATE.contains(character)));
            });
        }
        if !spells {
            return None;
        }
        let mark = PRIVATE.clone().find(|character| !used.contains(character)).unwrap_or(*PRIVATE.start());
        for text in texts.iter_mut() {
            **text = change(text, &|text| self.tokenizer.mark(text, mark));
        }
        Some(mark)
    }
}

/// Characters without a meaning of their own; more of them than any request may have.
const PRIVATE: std::ops::RangeInclusive<char> = '\u{F0000}'..='\u{10FFFD}';

fn visit(value: &Value, see: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(values) => values.iter().for_each(|value| visit(value, see)),
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            see(name);
            visit(value, see);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn change(value: &Value, with: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(with(text)),
        Value::Array(values) => values.iter().map(|value| change(value, with)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| (with(name), change(value, with))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}
