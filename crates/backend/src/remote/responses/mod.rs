//! OpenAI's Responses, as an upstream.
//!
//! Thoughts are hidden, one limit holds them and the answer, and a word says how hard to think (class `effort`). What
//! is shown of a thought is a summary. Nothing is stored there; reasoning items come encrypted, are handed out as they
//! are, and go back in front of the calls and texts that followed them.
//!
//! What it cannot do: penalties, seeds, stop texts (`execute` sees to those), sound.

mod custom_tools;
mod events;
mod input;
mod letter_places;
mod reasoning;
mod request;
mod settings;
mod sources;

use crate::{BackendCall, Failure, GenerationPart, UnsupportedFeature};

use super::call_ids::CallIds;
use super::{
    Connections, EventReader, Provider, RemoteBackend, SettingsError, SilencePolicy, UpstreamRequest,
};

pub use request::LIMIT_MIN;
pub use settings::Settings;

/// Responses of one model.
#[derive(Debug)]
pub struct OpenAiResponses {
    settings: Settings,
}

/// One model of an upstream that speaks OpenAI's Responses.
pub type OpenAiResponsesBackend = RemoteBackend<OpenAiResponses>;

impl OpenAiResponsesBackend {
    /// The model, not asked anything yet.
    ///
    /// # Errors
    /// When there can be no client with these settings.
    pub fn new(
        connections: &Connections,
        settings: Settings,
    ) -> Result<OpenAiResponsesBackend, SettingsError> {
        RemoteBackend::with_provider(connections, settings.client.clone(), OpenAiResponses::new(settings))
    }
}

impl OpenAiResponses {
    /// How such a model is spoken to; `client` is only asked who signs.
    pub(super) fn new(settings: Settings) -> OpenAiResponses {
        OpenAiResponses { settings }
    }
}

impl Provider for OpenAiResponses {
    fn write_request(&self, call: &BackendCall) -> Result<UpstreamRequest, Failure> {
        let GenerationPart::Total { effort, tokens } = &call.part else {
            return Err(Failure::incapable(
                UnsupportedFeature::Thinking,
                "this model only makes whole answers",
            ));
        };
        let body = request::body(&self.settings, call, effort.as_deref(), *tokens)?;
        Ok(UpstreamRequest::new("responses", body))
    }

    /// It begins its stream before it thinks.
    fn silence_policy(&self, call: &BackendCall) -> SilencePolicy {
        if call.hides_thinking() { SilencePolicy::ThinksInStream } else { SilencePolicy::Streams }
    }

    fn reader(&self, call: &BackendCall) -> Box<dyn EventReader> {
        Box::new(events::OpenAiResponsesReader::new(self.settings.signer(), CallIds::new(call)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::remote::golden;
    use stint_types::catalog::ConversationRules;

    fn settings(fixture: &Value) -> Settings {
        let flag = |name: &str| fixture["settings"][name].as_bool().unwrap_or(true);
        Settings {
            model: "upstream-model".to_owned(),
            name: "m".into(),
            can_reason: flag("reasons"),
            summaries: flag("summaries"),
            rules: ConversationRules {
                allowed_tools: fixture["settings"]["allowed_tools"] == true,
                cache_breakpoints: fixture["settings"]["cache_breakpoints"] == true,
                ..ConversationRules::default()
            },
            ..Settings::default()
        }
    }

    #[test]
    fn requests_are_written_as_the_fixtures_say() {
        golden::check("responses", "request", |fixture| {
            let provider = OpenAiResponses { settings: settings(fixture) };
            golden::sent(&provider, &golden::call(fixture, golden::part(fixture)))
        });
    }

    #[test]
    fn streams_are_read_as_the_fixtures_say() {
        golden::check("responses", "stream", |fixture| {
            let reader = events::OpenAiResponsesReader::new(golden::signer("m"), CallIds::with_seed(7));
            golden::pieces(reader, &fixture["events"])
        });
    }
}
