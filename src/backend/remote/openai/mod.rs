//! OpenAI's chat completions, as OpenAI and most others serve them.
//!
//! Such an upstream has one limit for thought and answer and, at best, a word for how hard to think. So it
//! makes whole answers only ([`Part::Total`]).

mod events;
mod request;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::client::{self, Client};
use super::{SettingsError, generation};
use crate::backend::pace::Pace;
use crate::backend::{Backend, Call, Failure, Fault, Generation, Part};
use crate::catalog::Conditions;
use crate::chat::Request;
use crate::prompt;
use crate::units::Tokens;

/// The member that limits everything written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LimitMember {
    /// `max_completion_tokens`.
    #[default]
    MaxCompletionTokens,
    /// `max_tokens`, which older servers know.
    MaxTokens,
}

/// How one model is spoken to.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How the upstream is reached.
    pub client: client::Settings,
    /// What the upstream calls the model.
    pub model: String,
    /// The member that limits everything written.
    pub limit: LimitMember,
    /// The tag that begins a thought inside the content.
    pub start_tag: String,
    /// The tag that closes a thought inside the content.
    pub end_tag: String,
    /// True where the chat template opens the thought, so that the content shows only its end.
    pub starts_in_thinking: bool,
    /// True where thoughts that the caller sends back are passed on (some want them back with tools).
    pub thoughts_back: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            client: client::Settings::default(),
            model: String::new(),
            limit: LimitMember::default(),
            start_tag: "<think>".to_owned(),
            end_tag: "</think>".to_owned(),
            starts_in_thinking: false,
            thoughts_back: false,
        }
    }
}

/// One model of an upstream that speaks OpenAI's chat completions.
#[derive(Debug)]
pub struct OpenAi {
    client: Client,
    settings: Settings,
    pace: Pace,
}

impl OpenAi {
    /// The model, not asked anything yet.
    pub fn new(settings: Settings) -> Result<OpenAi, SettingsError> {
        let client = Client::new(settings.client.clone())?;
        Ok(OpenAi { client, settings, pace: Pace::default() })
    }

    async fn begin(&self, call: Call) -> Result<Generation, Failure> {
        let Part::Total { effort, tokens } = &call.part else {
            return Err(Failure::new(Fault::Caller, "this model only makes whole answers").unsent());
        };
        let body = request::body(&self.settings, &call, effort.as_deref(), *tokens);
        let lap = self.pace.start();
        let events = self.client.stream("chat/completions", &body).await?;
        let reader = events::Reader::new(&self.settings);
        Ok(generation(events, reader, lap, self.pace.clone(), std::collections::VecDeque::new()))
    }
}

impl Backend for OpenAi {
    fn generate(&self, call: Call) -> BoxFuture<'_, Result<Generation, Failure>> {
        async move { self.begin(call).await.inspect_err(|failure| self.pace.failed(failure)) }.boxed()
    }

    fn prompt_tokens(&self, request: &Request) -> Tokens {
        prompt::bound::prompt_tokens(request)
    }

    fn conditions(&self) -> Conditions {
        self.pace.conditions()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::backend::remote::golden;

    fn settings(fixture: &Value) -> Settings {
        let flag = |name: &str| fixture["settings"][name].as_bool().unwrap_or(false);
        Settings {
            model: "upstream-model".to_owned(),
            limit: if flag("max_tokens") { LimitMember::MaxTokens } else { LimitMember::MaxCompletionTokens },
            starts_in_thinking: flag("starts_in_thinking"),
            thoughts_back: flag("thoughts_back"),
            ..Settings::default()
        }
    }

    #[test]
    fn requests_are_written_as_the_fixtures_say() {
        golden::check("openai", "request", |fixture| {
            let effort = fixture["effort"].as_str().map(str::to_owned);
            let tokens = golden::tokens(&fixture["tokens"]);
            let call = golden::call(fixture, Part::Total { effort: effort.clone(), tokens });
            request::body(&settings(fixture), &call, effort.as_deref(), tokens)
        });
    }

    #[test]
    fn streams_are_read_as_the_fixtures_say() {
        golden::check("openai", "stream", |fixture| {
            golden::pieces(events::Reader::new(&settings(fixture)), &fixture["events"])
        });
    }

    #[tokio::test]
    async fn a_part_that_it_cannot_make_is_refused_before_anything_is_sent() {
        let settings = Settings {
            client: client::Settings {
                base_url: "http://127.0.0.1:9/v1".to_owned(),
                ..client::Settings::default()
            },
            ..Settings::default()
        };
        let upstream = OpenAi::new(settings).unwrap();
        let call = golden::call(&json!({}), Part::Thought { thinking: Tokens(1) });
        let failure = upstream.generate(call).await.err().unwrap();
        assert_eq!((failure.fault, failure.unsent), (Fault::Caller, true));
    }
}
