//! Anthropic's Messages.
//!
//! A thought is either given a budget, which the provider holds (class `native`), or is as long as an effort makes it
//! (class `effort`); both show it while it runs, so it can be cut and the answer asked for in a new turn (class
//! `turn`). What the provider signs of a thought is handed out whole and goes back as it was, to the same model only.
//!
//! What it cannot do: penalties, seeds, JSON without a schema, sound, going on with an assistant's message. While a
//! model thinks, it takes no temperature, and no tool can be forced on it; a forced tool goes without the thought.

mod conversation;
mod events;
mod request;

use std::sync::Arc;

use super::client;
use super::summaries::Summaries;
use super::{Auth, Connections, Provider, Reader, Remote, Sent, SettingsError, Silence};
use crate::backend::{Call, Failure};
use crate::catalog::Class;
use crate::chat::{Maker, Request};
use crate::units::Tokens;

/// The version of the API in which `temperature`, `top_p` and `top_k` are no more.
const VERSION: &str = "2026-10-21";
/// The one before it, which is the only one that some others than Anthropic know.
pub(super) const VERSION_WITH_SAMPLING: &str = "2023-06-01";

/// How a model is told to think.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Thinking {
    /// It does not think, and is told nothing.
    Never,
    /// With a budget of at least 1024 tokens: `thinking: {type: enabled, budget_tokens}`.
    #[default]
    Budget,
    /// As much as it sees fit: `thinking: {type: adaptive}`, and `output_config: {effort}` where there is one.
    Adaptive,
}

/// How a model is told not to think.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Off {
    /// By saying nothing.
    #[default]
    Silence,
    /// `thinking: {type: disabled}`, for models that would think without it.
    Disabled,
    /// It cannot be told.
    Never,
}

/// How one model is spoken to.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How the upstream is reached. How the key is sent, and the API's version, need not be said.
    pub client: client::Settings,
    /// What the upstream calls the model.
    pub model: String,
    /// What callers call it: what it signs goes back to this name only.
    pub name: Arc<str>,
    /// How it is told to think.
    pub thinking: Thinking,
    /// How it is told not to.
    pub off: Off,
    /// Asks for its thoughts to be shown: newer models leave them out otherwise, older ones do not know the member.
    pub asks_for_thoughts: bool,
    /// True where it takes `temperature`, `top_p` and `top_k`, at least while it does not think: so do models up to
    /// Claude 4.6, by the API's older version. Else the newer one is spoken, and they are left out.
    pub sampling: bool,
    /// True where the provider is to keep the prompt in its cache, which has a price.
    pub caches: bool,
    /// The most that it writes in one call, where that is known.
    pub output_max: Option<Tokens>,
    /// Its context, where that is known.
    pub context: Option<Tokens>,
    /// What stands before a thought that was cut, when the answer is asked for.
    pub thought_so_far: String,
    /// What asks for the answer after it.
    pub answer_now: String,
}

impl Settings {
    /// Who signs what it says.
    fn maker(&self) -> Maker {
        Maker { model: self.name.clone(), origin: self.client.origin() }
    }

    /// Whether it goes on with the beginning of an answer. Models that think as much as they see fit refuse one ("does not support
    /// assistant message prefill").
    pub fn goes_on(&self) -> bool {
        self.thinking != Thinking::Adaptive && self.off != Off::Never
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            client: client::Settings::default(),
            model: String::new(),
            name: "".into(),
            thinking: Thinking::default(),
            off: Off::default(),
            asks_for_thoughts: false,
            sampling: true,
            caches: false,
            output_max: None,
            context: None,
            thought_so_far: "Your reasoning on this so far, which ran out of time:".to_owned(),
            answer_now:
                "Do not go on reasoning. Take the next step or give the final answer now, from what you \
                         have."
                    .to_owned(),
        }
    }
}

/// Messages of one model.
#[derive(Debug)]
pub struct Messages {
    settings: Settings,
}

/// One model of an upstream that speaks Anthropic's Messages.
pub type Anthropic = Remote<Messages>;

impl Anthropic {
    /// The model, not asked anything yet.
    ///
    /// # Errors
    /// When there can be no client with these settings.
    pub fn new(connections: &Connections, settings: Settings) -> Result<Anthropic, SettingsError> {
        let mut client = client::Settings { auth: Auth::Header("x-api-key"), ..settings.client.clone() };
        let version = if settings.sampling { VERSION_WITH_SAMPLING } else { VERSION };
        client.headers.push(("anthropic-version", version.to_owned()));
        Remote::over(connections, client, Messages { settings })
    }
}

impl Provider for Messages {
    fn write(&self, call: &Call) -> Result<Sent, Failure> {
        Ok(Sent { path: "messages".into(), body: request::body(&self.settings, call)? })
    }

    fn count(&self, request: &Arc<Request>) -> Option<(Sent, &'static str)> {
        let body = request::counted(&self.settings, request).ok()?;
        Some((Sent { path: "messages/count_tokens".into(), body }, "/input_tokens"))
    }

    /// It begins its stream before it thinks.
    fn silence(&self, call: &Call) -> Silence {
        if call.thinks_unseen() { Silence::Thinks } else { Silence::Usual }
    }

    fn reader(&self, call: &Call) -> Box<dyn Reader> {
        let reader = events::Reader::new(self.settings.maker());
        // Adaptive models show summaries, and are billed for what they thought. Cut in the stream, they are cut by what
        // they show: there is nothing else.
        match self.settings.thinking == Thinking::Adaptive && call.class == Class::Effort {
            true => Box::new(Summaries(reader)),
            false => Box::new(reader),
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
