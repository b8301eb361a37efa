//! Anthropic's Messages.
//!
//! A thought is either given a budget, which the provider holds (class `native`), or is as long as an effort makes it
//! (class `effort`); both show it while it runs, so it can be cut and the answer asked for in a new turn (class
//! `turn`). What the provider signs of a thought is handed out whole and goes back as it was, to the same model only.
//!
//! What it cannot do: biases, sound. Only models that need not think go on with an assistant's message. Penalties and seeds are
//! left out, and JSON without a schema is asked for in words. While a model thinks, it takes no temperature, and no tool can be
//! forced on it; a forced tool goes without the thought.

mod additions;
mod answer_form;
mod assistant_turn;
mod caching;
mod conversation;
mod distinct_ids;
mod events;
mod member_room;
mod output_config;
mod placed_thought;
mod request;
mod schema;
mod settings;
mod turns;

use std::sync::Arc;

use serde_json::Value;

use crate::{BackendCall, Failure, GenerationPart};
use stint_types::catalog::EnforcementClass;
use stint_types::chat::Request;

use super::call_ids::CallIds;
use super::summary_reader::SummaryReader;
use super::unfenced::UnfencedReader;
use super::user_turn;
use super::{
    Auth, Connections, EventReader, Provider, RemoteBackend, SettingsError, SilencePolicy, UpstreamRequest,
};

use answer_form::ClaudeForm;
pub(super) use settings::VERSION_HEADER;
pub use settings::{AnthropicThinking, AnthropicThinkingOff, BUDGET_MIN, Settings};

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
        let mut client = super::Settings { auth: Auth::Header("x-api-key"), ..settings.client.clone() };
        client.headers.push((VERSION_HEADER, settings.version(None).to_owned()));
        RemoteBackend::with_provider(connections, client, AnthropicMessages { settings })
    }
}

impl AnthropicMessages {
    /// True if the answer begins here and is asked for as JSON in words alone, so that it may have a fence around it.
    fn may_fence(&self, call: &BackendCall) -> bool {
        let goes_on = matches!(&call.part, GenerationPart::Solution { answer, .. } if !answer.is_empty());
        !goes_on && matches!(ClaudeForm::of(&self.settings, &call.request), Ok(ClaudeForm::Asked(_)))
    }

    fn upstream_request(&self, path: &'static str, body: Value, request: &Request) -> UpstreamRequest {
        let headers = self.settings.headers(&request.vendor_headers, &request::betas(&body));
        UpstreamRequest { headers, ..UpstreamRequest::new(path, body) }
    }
}

impl Provider for AnthropicMessages {
    fn write_request(&self, call: &BackendCall) -> Result<UpstreamRequest, Failure> {
        let call = &user_turn::ensured_in(call);
        Ok(self.upstream_request("messages", request::body(&self.settings, call)?, &call.request))
    }

    fn thinking_ruled_out(&self, request: &Request) -> Option<&'static str> {
        request::thinking_ruled_out(&self.settings, request)
    }

    fn count_request(&self, request: &Arc<Request>) -> Option<(UpstreamRequest, &'static str)> {
        let request = &user_turn::ensured(request);
        let body = request::count_body(&self.settings, request).ok()?;
        Some((self.upstream_request("messages/count_tokens", body, request), "/input_tokens"))
    }

    /// They may have 128 bytes.
    fn takes_long_tool_names(&self) -> bool {
        true
    }

    fn takes_anthropic_tools(&self) -> bool {
        true
    }

    /// It begins its stream before it thinks.
    fn silence_policy(&self, call: &BackendCall) -> SilencePolicy {
        if call.hides_thinking() { SilencePolicy::ThinksInStream } else { SilencePolicy::Streams }
    }

    fn reader(&self, call: &BackendCall) -> Box<dyn EventReader> {
        let reader = events::AnthropicReader::new(self.settings.signer(), CallIds::new(call));
        // Adaptive models show summaries, and are billed for what they thought. Cut in the stream, they are cut by what
        // they show: there is nothing else.
        let is_summed_up =
            self.settings.thinking == AnthropicThinking::Adaptive && call.class == EnforcementClass::Effort;
        let reader: Box<dyn EventReader> =
            if is_summed_up { Box::new(SummaryReader(reader)) } else { Box::new(reader) };
        if self.may_fence(call) { Box::new(UnfencedReader::new(reader)) } else { reader }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
