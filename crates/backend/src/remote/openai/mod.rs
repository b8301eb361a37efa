//! OpenAI's chat completions, as OpenAI and most others serve them.
//!
//! What such an upstream can be asked for is its [`Dialect`]'s: whole answers always, a budget that it holds
//! itself (`native`), a thought and then the rest of the turn (`continue`), or a thought and then a new turn
//! without one (`turn`).

mod chunk;
mod completions;
pub(super) mod conversation;
mod details;
mod dialect;
mod events;
mod implicit_thought;
mod known_dialects;
mod request;
mod settings;
#[cfg(test)]
mod tests;
mod usage;

use crate::{BackendCall, Failure, Turns};
use stint_types::chat::{CompletionKind, EmbeddingRequest};

use super::{Connections, EventReader, Provider, RemoteBackend, SettingsError, UpstreamRequest, wire};

use implicit_thought::ImplicitThought;

pub use dialect::{
    BudgetMember, Dialect, EffortMember, LimitMember, MemberWord, ResumeMethod, ThinkingSwitch,
    ThoughtReplay, UsageMember,
};
pub use settings::{NEW_TURN_PROMPT, Settings};

/// Chat completions of one model.
#[derive(Debug)]
pub struct ChatCompletions {
    settings: Settings,
    opening: ImplicitThought,
}

impl ChatCompletions {
    /// How such a model is spoken to; `client` is not looked at.
    pub(super) fn new(settings: Settings) -> ChatCompletions {
        ChatCompletions { settings, opening: ImplicitThought::default() }
    }
}

/// One model of an upstream that speaks OpenAI's chat completions.
pub type OpenAiBackend = RemoteBackend<ChatCompletions>;

impl OpenAiBackend {
    /// The model, not asked anything yet.
    pub fn new(connections: &Connections, settings: Settings) -> Result<OpenAiBackend, SettingsError> {
        RemoteBackend::with_provider(connections, settings.client.clone(), ChatCompletions::new(settings))
    }
}

impl Provider for ChatCompletions {
    fn write_request(&self, call: &BackendCall) -> Result<UpstreamRequest, Failure> {
        request::write(&self.settings, call)
    }

    fn embed(&self, ask: &EmbeddingRequest) -> Result<UpstreamRequest, Failure> {
        let path = self.settings.dialect.sibling_path("embeddings");
        Ok(UpstreamRequest { path: path.into(), body: wire::embedding(ask, Some(&self.settings.model)) })
    }

    fn turns(&self) -> Turns {
        let dialect = &self.settings.dialect;
        match dialect.effort {
            _ if dialect.turns_off() => Turns::Always,
            EffortMember::Never => Turns::Never,
            EffortMember::ReasoningEffort | EffortMember::Reasoning => Turns::ByWord,
        }
    }

    fn reader(&self, call: &BackendCall) -> Box<dyn EventReader> {
        match call.request.kind {
            CompletionKind::Chat => {
                Box::new(events::OpenAiChatReader::new(&self.settings, call, &self.opening))
            }
            CompletionKind::Text => Box::new(completions::OpenAiCompletionReader::default()),
        }
    }
}
