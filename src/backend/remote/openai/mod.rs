//! OpenAI's chat completions, as OpenAI and most others serve them.
//!
//! What such an upstream can be asked for is its [`Dialect`]'s: whole answers always, a budget that it holds
//! itself (`native`), a thought and then the rest of the turn (`continue`), or a thought and then a new turn
//! without one (`turn`).

mod chunk;
pub(super) mod conversation;
mod details;
mod dialect;
mod events;
mod known;
mod opening;
mod request;
#[cfg(test)]
mod tests;
mod text;
mod usage;

use std::sync::Arc;

use super::client;
use super::{Connections, Provider, Reader, Remote, Sent, SettingsError, wire};
use crate::backend::{Call, Failure, Turns};
use crate::chat::{Embedding, Form, Maker};
use crate::prompt::calls::Syntax;
use crate::units::Tokens;
use opening::Opening;

pub use dialect::{
    BudgetMember, Dialect, EffortMember, LimitMember, Resume, Switch, ThoughtsBack, UsageMember, Word,
};

/// What asks for the answer in a new turn, behind the thought that was cut. `{thought}` stands for it.
pub const TURN: &str = "Here is the reasoning so far, which was cut off:\n\n<reasoning>\n{thought}\n</reasoning>\n\n\
                        Give the final answer now, from this reasoning and without any more of it.";

/// How one model is spoken to.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How the upstream is reached.
    pub client: client::Settings,
    /// The name that callers use; what was signed under it is given back.
    pub name: Arc<str>,
    /// What the upstream calls the model.
    pub model: String,
    /// How the upstream is spoken to.
    pub dialect: Dialect,
    /// The tag that begins a thought inside the content.
    pub start_tag: String,
    /// The tag that closes a thought inside the content.
    pub end_tag: String,
    /// True where the chat template opens the thought, so that the content shows only its end.
    pub starts_in_thinking: bool,
    /// What closes a thought that was cut, where it is resumed: a sentence, if any, and the tag, which is left out where
    /// the upstream writes it itself.
    pub hand_off: String,
    /// How the model writes its tool calls, where they can be read out of its raw text.
    pub tool_syntax: Option<Syntax>,
    /// What asks for the answer in a new turn, with `{thought}` in it.
    pub turn: String,
    /// How many tokens the template puts behind the tag that begins a thought. The upstream counts them as thought, so they
    /// are added to a budget that it holds.
    pub opening: Tokens,
    /// How many tokens the upstream itself puts in where it closes a thought: they count against its limit.
    pub closing: Tokens,
    /// Whether the model thinks; nothing where its chat template is to tell, as far as that can be asked for.
    pub thinks: Option<bool>,
}

impl Settings {
    /// Who signs what it says.
    fn maker(&self) -> Maker {
        Maker { model: self.name.clone(), origin: self.client.origin() }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            client: client::Settings::default(),
            name: "".into(),
            model: String::new(),
            dialect: Dialect::default(),
            start_tag: "<think>".to_owned(),
            end_tag: "</think>".to_owned(),
            starts_in_thinking: false,
            hand_off: "\n</think>\n\n".to_owned(),
            tool_syntax: None,
            turn: TURN.to_owned(),
            opening: Tokens::ZERO,
            closing: Tokens::ZERO,
            thinks: None,
        }
    }
}

/// Chat completions of one model.
#[derive(Debug)]
pub struct ChatCompletions {
    settings: Settings,
    opening: Opening,
}

impl ChatCompletions {
    /// How such a model is spoken to; `client` is not looked at.
    pub(super) fn new(settings: Settings) -> ChatCompletions {
        ChatCompletions { settings, opening: Opening::default() }
    }
}

/// One model of an upstream that speaks OpenAI's chat completions.
pub type OpenAi = Remote<ChatCompletions>;

impl OpenAi {
    /// The model, not asked anything yet.
    pub fn new(connections: &Connections, settings: Settings) -> Result<OpenAi, SettingsError> {
        Remote::over(connections, settings.client.clone(), ChatCompletions::new(settings))
    }
}

impl Provider for ChatCompletions {
    fn write(&self, call: &Call) -> Result<Sent, Failure> {
        request::write(&self.settings, call)
    }

    fn embed(&self, ask: &Embedding) -> Result<Sent, Failure> {
        let path = self.settings.dialect.beside("embeddings");
        Ok(Sent { path: path.into(), body: wire::embedding(ask, Some(&self.settings.model)) })
    }

    fn turns(&self) -> Turns {
        let dialect = &self.settings.dialect;
        match dialect.effort {
            _ if dialect.turns_off() => Turns::Always,
            EffortMember::Never => Turns::Never,
            EffortMember::ReasoningEffort | EffortMember::Reasoning => Turns::ByWord,
        }
    }

    fn reader(&self, call: &Call) -> Box<dyn Reader> {
        match call.request.form {
            Form::Chat => Box::new(events::Reader::new(&self.settings, call, &self.opening)),
            Form::Text => Box::new(text::Reader::default()),
        }
    }
}
