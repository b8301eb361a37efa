//! OpenAI's chat completions, as OpenAI and most others serve them.
//!
//! What such an upstream can be asked for is its [`Dialect`]'s: whole answers always, a budget that it holds
//! itself (`native`), a thought and then the rest of the turn (`continue`), or a thought and then a new turn
//! without one (`turn`). What a model of OpenAI does not take there goes to Responses at the same address.

mod call_id_form;
mod chat_members;
mod chat_scope;
mod choice_list;
mod chunk;
mod completions;
pub(super) mod conversation;
mod details;
mod dialect;
mod events;
mod implicit_thought;
mod known_dialects;
mod lenient_text;
mod members_visitor;
mod prefill;
mod rare_value;
mod reported_usage;
mod request;
mod settings;
mod streamed_calls;
#[cfg(test)]
mod tests;
mod usage;

use crate::{BackendCall, Failure, Turns};
use stint_types::chat::{CompletionKind, EmbeddingRequest, Request, ThoughtSigner};

use super::responses::{self, OpenAiResponses};
use super::{
    Connections, EventReader, Provider, RemoteBackend, SettingsError, SilencePolicy, UpstreamRequest,
    begun_answer, forced_tool, wire,
};

use implicit_thought::ImplicitThought;

pub use call_id_form::CallIdForm;
pub use chat_scope::{ChatScope, ResponsesRule};
pub use dialect::{
    BudgetMember, Dialect, EffortMember, LimitMember, MemberWord, PrefillMethod, ResumeMethod,
    ThinkingSwitch, ThoughtReplay, UsageMember,
};
pub use settings::{NEW_TURN_PROMPT, Settings};

/// Chat completions of one model.
#[derive(Debug)]
pub struct ChatCompletions {
    settings: Settings,
    /// Who signs what it says.
    signer: ThoughtSigner,
    opening: ImplicitThought,
    /// What serves the calls that chat completions do not take.
    responses: Option<OpenAiResponses>,
}

impl ChatCompletions {
    /// How such a model is spoken to; `client` is not looked at.
    pub(super) fn new(settings: Settings) -> ChatCompletions {
        let rule = &settings.responses;
        let responses = (!rule.is_unused()).then(|| {
            OpenAiResponses::new(responses::Settings {
                client: settings.client.clone(),
                model: settings.model.clone(),
                name: settings.name.clone(),
                can_reason: true,
                summaries: rule.summaries,
                rules: settings.rules,
                cache: settings.cache,
            })
        });
        let signer = settings.signer();
        ChatCompletions { settings, signer, opening: ImplicitThought::default(), responses }
    }

    /// Responses, where a call goes there.
    fn responses_for(&self, call: &BackendCall) -> Option<&OpenAiResponses> {
        self.responses.as_ref().filter(|_| self.settings.responses.applies(call))
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
    fn thinking_ruled_out(&self, request: &Request) -> Option<&'static str> {
        let is_unthought = self.settings.turns_off() && self.settings.forces_unthought(request);
        let forced = is_unthought.then_some(forced_tool::NO_THOUGHT);
        request.continues_last.then_some(begun_answer::NO_THOUGHT).or(forced)
    }

    fn write_request(&self, call: &BackendCall) -> Result<UpstreamRequest, Failure> {
        match self.responses_for(call) {
            Some(responses) => {
                let path = self.settings.dialect.sibling_path("responses");
                Ok(UpstreamRequest { path: path.into(), ..responses.write_request(call)? })
            }
            None => request::write(&self.settings, call),
        }
    }

    fn embed(&self, ask: &EmbeddingRequest) -> Result<UpstreamRequest, Failure> {
        let path = self.settings.dialect.sibling_path("embeddings");
        let mut body = wire::embedding(ask, Some(&self.settings.model), &self.settings.client.members);
        if let Some(body) = body.as_object_mut() {
            body.retain(|name, _| self.settings.takes_gateway_metadata(name));
        }
        Ok(UpstreamRequest::new(path, body))
    }

    fn turns(&self) -> Turns {
        let dialect = &self.settings.dialect;
        match dialect.effort {
            _ if self.settings.turns_off() => Turns::Always,
            EffortMember::Never => Turns::Never,
            EffortMember::ReasoningEffort | EffortMember::Reasoning => Turns::ByWord,
        }
    }

    fn takes_long_tool_names(&self) -> bool {
        self.settings.dialect.long_tool_names
    }

    fn answers_whole(&self) -> bool {
        self.responses.is_none()
    }

    fn silence_policy(&self, call: &BackendCall) -> SilencePolicy {
        match self.responses_for(call) {
            Some(responses) => responses.silence_policy(call),
            None if call.hides_thinking() => SilencePolicy::ThinksBeforeHeaders,
            None => SilencePolicy::Streams,
        }
    }

    fn reader(&self, call: &BackendCall) -> Box<dyn EventReader> {
        if let Some(responses) = self.responses_for(call) {
            return responses.reader(call);
        }
        match call.request.kind {
            CompletionKind::Chat => {
                let signer = self.signer.clone();
                Box::new(events::OpenAiChatReader::new(&self.settings, signer, call, &self.opening))
            }
            CompletionKind::Text => Box::new(completions::OpenAiCompletionReader::default()),
        }
    }
}
