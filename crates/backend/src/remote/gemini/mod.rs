//! Gemini's own `generateContent`.
//!
//! A thought gets a budget (Gemini 2.5, class `native`) or a level (Gemini 3 and later, class `effort`). The API shows only
//! summaries of it, and reports its length. It treats the budget as a target, so the whole is limited to a little more than
//! both budgets, and the thinking tokens are counted. Signatures of thoughts come on parts of the answer and go back on the
//! same parts.
//!
//! Not possible: images by URL, `logit_bias`, continuing a message of the assistant.

mod contents;
mod events;
mod request;
mod settings;
mod signature;

use std::sync::Arc;

use serde_json::json;

use crate::{BackendCall, Failure};
use stint_types::chat::Request;

use super::call_ids::CallIds;
use super::user_turn;
use super::{
    Auth, Connections, EventReader, Provider, RemoteBackend, SettingsError, SilencePolicy, UpstreamRequest,
};

pub use settings::{GeminiThinking, PLACEHOLDER_SIGNATURE, Settings};

/// `generateContent` of one model.
#[derive(Debug)]
pub struct GenerateContent {
    settings: Settings,
}

/// One model of an upstream that speaks Gemini's own API.
pub type GeminiBackend = RemoteBackend<GenerateContent>;

impl GeminiBackend {
    /// The model, not asked anything yet.
    ///
    /// # Errors
    /// When there can be no client with these settings.
    pub fn new(connections: &Connections, settings: Settings) -> Result<GeminiBackend, SettingsError> {
        let client = super::Settings { auth: Auth::Header("x-goog-api-key"), ..settings.client.clone() };
        RemoteBackend::with_provider(connections, client, GenerateContent { settings })
    }
}

impl Provider for GenerateContent {
    fn write_request(&self, call: &BackendCall) -> Result<UpstreamRequest, Failure> {
        let path = format!("models/{}:streamGenerateContent?alt=sse", self.settings.model);
        Ok(UpstreamRequest::new(path, request::body(&self.settings, &user_turn::ensured_in(call))?))
    }

    fn count_request(&self, request: &Arc<Request>) -> Option<(UpstreamRequest, &'static str)> {
        let model = format!("models/{}", self.settings.model);
        let call = BackendCall::for_counting(&user_turn::ensured(request));
        let mut asked = request::body(&self.settings, &call).ok()?;
        let members = asked.as_object_mut()?;
        members.retain(|name, _| ["systemInstruction", "contents", "tools", "toolConfig"].contains(&&**name));
        members.insert("model".to_owned(), model.clone().into());
        let body = json!({ "generateContentRequest": asked });
        Some((UpstreamRequest::new(format!("{model}:countTokens"), body), "/totalTokens"))
    }

    /// It thinks unseen under a budget, too: it shows only summaries.
    fn silence_policy(&self, call: &BackendCall) -> SilencePolicy {
        if call.hidden { SilencePolicy::ThinksBeforeHeaders } else { SilencePolicy::Streams }
    }

    fn reader(&self, call: &BackendCall) -> Box<dyn EventReader> {
        Box::new(events::GeminiReader::new(self.settings.signer(), CallIds::new(call)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::remote::golden;

    fn settings(fixture: &Value) -> Settings {
        let settings = &fixture["settings"];
        Settings {
            model: settings["model"].as_str().unwrap_or("upstream-model").to_owned(),
            name: "m".into(),
            thinking: match settings["thinking"].as_str() {
                Some("never") => GeminiThinking::Never,
                Some("level") => GeminiThinking::Level,
                _ => GeminiThinking::Budget,
            },
            summaries: settings["summaries"] != false,
            placeholder_signature: settings["stand_in"].as_str().map(str::to_owned),
            ..Settings::default()
        }
    }

    #[test]
    fn requests_are_written_as_the_fixtures_say() {
        golden::check("gemini", "request", |fixture| {
            let provider = GenerateContent { settings: settings(fixture) };
            golden::sent(&provider, &golden::call(fixture, golden::part(fixture)))
        });
    }

    #[test]
    fn streams_are_read_as_the_fixtures_say() {
        golden::check("gemini", "stream", |fixture| {
            golden::pieces(
                events::GeminiReader::new(golden::signer("m"), CallIds::with_seed(7)),
                &fixture["events"],
            )
        });
    }

    #[test]
    fn a_prompt_is_counted_by_the_request_that_would_be_sent() {
        let provider = GenerateContent { settings: settings(&Value::Null) };
        let hello = stint_types::chat::Message::text(stint_types::chat::Role::User, "hi");
        let (sent, at) = provider.count_request(&Arc::new(Request::new("m", vec![hello]))).unwrap();
        assert_eq!((&*sent.path, at), ("models/upstream-model:countTokens", "/totalTokens"));
        let asked = sent.body["generateContentRequest"].as_object().unwrap();
        assert_eq!(asked.keys().collect::<Vec<_>>(), ["contents", "model"]);
    }

    #[test]
    fn the_models_name_is_in_the_path() {
        let provider = GenerateContent { settings: settings(&Value::Null) };
        let fixture = serde_json::json!({
            "messages": [{ "role": "user", "content": ["hi"] }],
            "part": { "kind": "whole", "thinking": 0, "solution": 8 },
        });
        let sent = provider.write_request(&golden::call(&fixture, golden::part(&fixture))).unwrap();
        assert_eq!(sent.path, "models/upstream-model:streamGenerateContent?alt=sse");
    }
}
