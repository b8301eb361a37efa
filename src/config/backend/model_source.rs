//! Where a model's answers come from: the local engine, or an upstream and how it is spoken to.

use std::path::PathBuf;
use std::time::Duration;

use stint_backend::local;
use stint_backend::remote::{self, anthropic, gemini, llamacpp, openai, responses};

use super::deployment::Deployment;

/// Where a model's answers come from.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelSource {
    /// The model that ships with the binary, in the local engine.
    Embedded(LocalModelSettings),
    /// A GGUF file, in the local engine.
    File(PathBuf, LocalModelSettings),
    /// An upstream that speaks OpenAI's chat completions.
    OpenAi(openai::Settings),
    /// A vLLM server, over its raw completions too.
    Vllm(openai::Settings),
    /// A llama.cpp server, over its own `/completion`.
    LlamaCpp(llamacpp::Settings),
    /// An upstream that speaks Anthropic's Messages.
    Anthropic(anthropic::Settings),
    /// An upstream that speaks Gemini's own API.
    Gemini(gemini::Settings),
    /// An upstream that speaks OpenAI's Responses.
    Responses(responses::Settings),
}

/// How a local model marks its thoughts, and how it is spoken to.
#[derive(Debug, Clone, PartialEq)]
pub struct LocalModelSettings {
    /// The tag that opens a thought.
    pub start_tag: String,
    /// The tag that closes it.
    pub end_tag: String,
    /// Whether the operator states them: then they hold, whatever the file's template mentions.
    pub tags_are_stated: bool,
    /// What closes a cut thought, and how tokens are drawn.
    pub settings: local::Settings,
    /// Whether `capabilities` says that it calls tools.
    pub calls_tools: bool,
    /// Whether it is loaded at the start; at the first request otherwise.
    pub load_on_startup: bool,
    /// How long it stays loaded when nobody uses it; for good without it.
    pub keep_alive: Option<Duration>,
}

impl ModelSource {
    /// Whether it is there from the start on for good; false for a local model that is loaded later or let go.
    pub fn stays_loaded(&self) -> bool {
        match self {
            ModelSource::File(_, local) => local.load_on_startup && local.keep_alive.is_none(),
            _ => true,
        }
    }

    /// The same, as it is reached and called there.
    #[must_use]
    pub fn at_deployment(&self, deployment: &Deployment) -> ModelSource {
        let mut source = self.clone();
        if let Some(client) = source.client_mut() {
            let images = client.images;
            client.clone_from(&deployment.client);
            client.images = images;
        }
        if let Some((model, upstream)) = source.model_mut().zip(deployment.upstream.as_ref()) {
            model.clone_from(upstream);
        }
        source
    }

    /// How its upstream is reached, where it has one.
    pub(super) fn client_mut(&mut self) -> Option<&mut remote::Settings> {
        match self {
            ModelSource::Embedded(_) | ModelSource::File(..) => None,
            ModelSource::OpenAi(settings) | ModelSource::Vllm(settings) => Some(&mut settings.client),
            ModelSource::LlamaCpp(settings) => Some(&mut settings.client),
            ModelSource::Anthropic(settings) => Some(&mut settings.client),
            ModelSource::Gemini(settings) => Some(&mut settings.client),
            ModelSource::Responses(settings) => Some(&mut settings.client),
        }
    }

    /// What its upstream calls the model, where requests must name it.
    pub(super) fn model_mut(&mut self) -> Option<&mut String> {
        match self {
            ModelSource::OpenAi(settings) | ModelSource::Vllm(settings) => Some(&mut settings.model),
            ModelSource::Anthropic(settings) => Some(&mut settings.model),
            ModelSource::Gemini(settings) => Some(&mut settings.model),
            ModelSource::Responses(settings) => Some(&mut settings.model),
            ModelSource::Embedded(_) | ModelSource::File(..) | ModelSource::LlamaCpp(_) => None,
        }
    }

    /// How its chat completions are spoken to, where it has some.
    pub(super) fn chat_mut(&mut self) -> Option<&mut openai::Settings> {
        match self {
            ModelSource::OpenAi(settings) | ModelSource::Vllm(settings) => Some(settings),
            _ => None,
        }
    }
}
