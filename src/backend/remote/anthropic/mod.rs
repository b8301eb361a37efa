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
use super::summary_reader::SummaryReader;
use super::{
    Auth, Connections, EventReader, Provider, RemoteBackend, SettingsError, SilencePolicy, UpstreamRequest,
};
use crate::backend::{BackendCall, Failure};
use crate::catalog::EnforcementClass;
use crate::chat::{Request, ThoughtSigner};
use crate::units::Tokens;

/// The version of the API in which `temperature`, `top_p` and `top_k` are no more.
const VERSION: &str = "2026-10-21";
/// The one before it, which is the only one that some others than Anthropic know.
pub(super) const VERSION_WITH_SAMPLING: &str = "2023-06-01";

/// How a model is told to think.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AnthropicThinking {
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
pub enum AnthropicThinkingOff {
    /// By saying nothing.
    #[default]
    Omitted,
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
    pub thinking: AnthropicThinking,
    /// How it is told not to.
    pub thinking_off: AnthropicThinkingOff,
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
    fn maker(&self) -> ThoughtSigner {
        ThoughtSigner { model: self.name.clone(), domain: self.client.origin() }
    }

    /// Whether it goes on with the beginning of an answer. Models that think as much as they see fit refuse one ("does not support
    /// assistant message prefill").
    pub fn goes_on(&self) -> bool {
        self.thinking != AnthropicThinking::Adaptive && self.thinking_off != AnthropicThinkingOff::Never
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            client: client::Settings::default(),
            model: String::new(),
            name: "".into(),
            thinking: AnthropicThinking::default(),
            thinking_off: AnthropicThinkingOff::default(),
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
pub struct AnthropicMessages {
    settings: Settings,
}

/// One model of an upstream that speaks Anthropic's Messages.
pub type AnthropicBackend = RemoteBackend<AnthropicMessages>;

impl AnthropicBackend {
    /// The model, not asked anything yet.
    ///
    /// # Errors
    /// When there can be no client with these settings.
    pub fn new(connections: &Connections, settings: Settings) -> Result<AnthropicBackend, SettingsError> {
        let mut client = client::Settings { auth: Auth::Header("x-api-key"), ..settings.client.clone() };
        let version = if settings.sampling { VERSION_WITH_SAMPLING } else { VERSION };
        client.headers.push(("anthropic-version", version.to_owned()));
        RemoteBackend::with_provider(connections, client, AnthropicMessages { settings })
    }
}

impl Provider for AnthropicMessages {
    fn write_request(&self, call: &BackendCall) -> Result<UpstreamRequest, Failure> {
        Ok(UpstreamRequest { path: "messages".into(), body: request::body(&self.settings, call)? })
    }

    fn count_request(&self, request: &Arc<Request>) -> Option<(UpstreamRequest, &'static str)> {
        let body = request::count_body(&self.settings, request).ok()?;
        Some((UpstreamRequest { path: "messages/count_tokens".into(), body }, "/input_tokens"))
    }

    /// It begins its stream before it thinks.
    fn silence_policy(&self, call: &BackendCall) -> SilencePolicy {
        if call.hides_thinking() { SilencePolicy::ThinksInStream } else { SilencePolicy::Streams }
    }

    fn reader(&self, call: &BackendCall) -> Box<dyn EventReader> {
        let reader = events::AnthropicReader::new(self.settings.maker());
        // Adaptive models show summaries, and are billed for what they thought. Cut in the stream, they are cut by what
        // they show: there is nothing else.
        match self.settings.thinking == AnthropicThinking::Adaptive && call.class == EnforcementClass::Effort
        {
            true => Box::new(SummaryReader(reader)),
            false => Box::new(reader),
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
