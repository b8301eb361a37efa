//! OpenAI's chat completions, as OpenAI and most others serve them.
//!
//! Such an upstream has one limit for thought and answer and, at best, a word for how hard to think. So it
//! makes whole answers only ([`Part::Total`]).

mod events;
mod request;
mod text;

use super::client;
use super::{Provider, Reader, Remote, Sent, SettingsError, no_words, wire};
use crate::backend::{Call, Failure, Part};
use crate::chat::{Embedding, Form};

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

/// Chat completions of one model.
#[derive(Debug)]
pub struct ChatCompletions {
    settings: Settings,
}

/// One model of an upstream that speaks OpenAI's chat completions.
pub type OpenAi = Remote<ChatCompletions>;

impl OpenAi {
    /// The model, not asked anything yet.
    pub fn new(settings: Settings) -> Result<OpenAi, SettingsError> {
        Remote::over(settings.client.clone(), ChatCompletions { settings })
    }
}

impl Provider for ChatCompletions {
    fn write(&self, call: &Call) -> Result<Sent, Failure> {
        let Part::Total { effort, tokens } = &call.part else {
            return Err(no_words("this model only makes whole answers"));
        };
        if let Some(text) = call.request.raw() {
            let body = text::body(&self.settings.model, call, &text, *tokens);
            return Ok(Sent { path: "completions".into(), body });
        }
        let body = request::body(&self.settings, call, effort.as_deref(), *tokens);
        Ok(Sent { path: "chat/completions".into(), body })
    }

    fn embed(&self, ask: &Embedding) -> Result<Sent, Failure> {
        Ok(Sent { path: "embeddings".into(), body: wire::embedding(ask, Some(&self.settings.model)) })
    }

    fn reader(&self, call: &Call) -> Box<dyn Reader> {
        match call.request.form {
            Form::Chat => Box::new(events::Reader::new(&self.settings)),
            Form::Text => Box::new(text::Reader::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::backend::remote::golden;
    use crate::backend::{Backend, Fault};
    use crate::units::Tokens;

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
            let provider = ChatCompletions { settings: settings(fixture) };
            provider.write(&golden::call(fixture, golden::part(fixture))).unwrap().body
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
        let call = golden::call(&json!({}), Part::Thought { thinking: Tokens(1), solution: Tokens(8) });
        let failure = upstream.generate(call).await.err().unwrap();
        assert_eq!((failure.fault, failure.unsent), (Fault::Caller, true));
    }
}
