//! The kinds of backends, and the defaults of each.
//!
//! No match here has a `_`: the compiler asks for each default of a new kind.

use stint_backend::remote::responses;
use stint_types::catalog::{Capability, EnforcementClass, Service};
use stint_types::units::Tokens;

use super::host::{is_host, is_private, is_provider};

/// A kind of backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BackendKind {
    Local,
    OpenAi,
    LlamaCpp,
    DeepSeek,
    DashScope,
    OpenRouter,
    Vllm,
    Sglang,
    Mistral,
    Xai,
    Ollama,
    Anthropic,
    Gemini,
    Responses,
}

/// As they are written.
pub(super) const KINDS: [(&str, BackendKind); 14] = [
    ("openai", BackendKind::OpenAi),
    ("anthropic", BackendKind::Anthropic),
    ("gemini", BackendKind::Gemini),
    ("responses", BackendKind::Responses),
    ("llamacpp", BackendKind::LlamaCpp),
    ("vllm", BackendKind::Vllm),
    ("sglang", BackendKind::Sglang),
    ("ollama", BackendKind::Ollama),
    ("deepseek", BackendKind::DeepSeek),
    ("dashscope", BackendKind::DashScope),
    ("openrouter", BackendKind::OpenRouter),
    ("mistral", BackendKind::Mistral),
    ("xai", BackendKind::Xai),
    ("local", BackendKind::Local),
];

/// The words of all kinds.
pub(in crate::config) fn kind_words() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(word, _)| *word)
}

/// Where OpenAI's Responses are served by OpenAI and by Azure. There a deployment may have any name.
const RESPONSES_HOSTS: [&str; 4] =
    ["api.openai.com", "openai.azure.com", "services.ai.azure.com", "cognitiveservices.azure.com"];

/// What servers of open models have.
pub(super) const SELF_HOSTED_CAPABILITIES: &[Capability] =
    &[Capability::Tools, Capability::Schema, Capability::Penalties, Capability::Logprobs];

impl BackendKind {
    /// Whether it is spoken to by a provider's own API, and not by OpenAI's chat completions or a server's completions.
    pub(super) fn has_own_api(self) -> bool {
        match self {
            BackendKind::Anthropic | BackendKind::Gemini | BackendKind::Responses => true,
            BackendKind::Local
            | BackendKind::OpenAi
            | BackendKind::LlamaCpp
            | BackendKind::DeepSeek
            | BackendKind::DashScope
            | BackendKind::OpenRouter
            | BackendKind::Vllm
            | BackendKind::Sglang
            | BackendKind::Mistral
            | BackendKind::Xai
            | BackendKind::Ollama => false,
        }
    }

    /// The word for it in the file.
    pub(super) fn as_str(self) -> &'static str {
        KINDS.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
    }

    /// The default enforcement classes of such a backend, the strongest first.
    pub(super) fn default_classes(self) -> &'static [EnforcementClass] {
        match self {
            BackendKind::Local => &[EnforcementClass::Inline],
            BackendKind::LlamaCpp => &[EnforcementClass::Continue, EnforcementClass::Native],
            BackendKind::Vllm | BackendKind::Sglang => {
                &[EnforcementClass::Continue, EnforcementClass::Native, EnforcementClass::Turn]
            }
            BackendKind::DeepSeek | BackendKind::Mistral => {
                &[EnforcementClass::Continue, EnforcementClass::Turn]
            }
            BackendKind::DashScope | BackendKind::OpenRouter => {
                &[EnforcementClass::Native, EnforcementClass::Turn]
            }
            BackendKind::Ollama => &[EnforcementClass::Turn],
            BackendKind::Anthropic => &[EnforcementClass::Native, EnforcementClass::Turn],
            BackendKind::Gemini => &[EnforcementClass::Native],
            BackendKind::OpenAi | BackendKind::Responses | BackendKind::Xai => &[EnforcementClass::Effort],
        }
    }

    /// How it can hold it where the operator says so.
    pub(super) fn possible_classes(self) -> &'static [EnforcementClass] {
        match self {
            BackendKind::Local => &[EnforcementClass::Inline],
            BackendKind::LlamaCpp => self.default_classes(),
            BackendKind::Anthropic => {
                &[EnforcementClass::Native, EnforcementClass::Turn, EnforcementClass::Effort]
            }
            BackendKind::Gemini => &[EnforcementClass::Native, EnforcementClass::Effort],
            BackendKind::Responses => &[EnforcementClass::Effort],
            BackendKind::OpenAi
            | BackendKind::DeepSeek
            | BackendKind::DashScope
            | BackendKind::OpenRouter
            | BackendKind::Vllm
            | BackendKind::Sglang
            | BackendKind::Mistral
            | BackendKind::Xai
            | BackendKind::Ollama => &[
                EnforcementClass::Continue,
                EnforcementClass::Native,
                EnforcementClass::Turn,
                EnforcementClass::Effort,
            ],
        }
    }

    /// The default capabilities of the models of such a backend.
    pub(super) fn default_services(self) -> &'static [Service] {
        match self {
            BackendKind::Local
            | BackendKind::LlamaCpp
            | BackendKind::Vllm
            | BackendKind::Sglang
            | BackendKind::Ollama => &[Service::Chat, Service::Completions],
            BackendKind::OpenAi
            | BackendKind::DeepSeek
            | BackendKind::DashScope
            | BackendKind::OpenRouter
            | BackendKind::Mistral
            | BackendKind::Xai
            | BackendKind::Anthropic
            | BackendKind::Gemini
            | BackendKind::Responses => &[Service::Chat],
        }
    }

    /// What they can be asked for where the operator says so.
    pub(super) fn possible_services(self) -> &'static [Service] {
        match self {
            BackendKind::Anthropic | BackendKind::Gemini | BackendKind::Responses => &[Service::Chat],
            BackendKind::Local | BackendKind::DeepSeek => &[Service::Chat, Service::Completions],
            BackendKind::OpenAi
            | BackendKind::LlamaCpp
            | BackendKind::DashScope
            | BackendKind::OpenRouter
            | BackendKind::Vllm
            | BackendKind::Sglang
            | BackendKind::Mistral
            | BackendKind::Xai
            | BackendKind::Ollama => &[Service::Chat, Service::Completions, Service::Embeddings],
        }
    }

    /// True for one's own servers: the kinds that are one's own, and what speaks OpenAI's API at a host that no
    /// provider is known to have.
    pub(super) fn is_self_hosted(self, host: Option<&str>) -> bool {
        match self {
            BackendKind::Local
            | BackendKind::LlamaCpp
            | BackendKind::Vllm
            | BackendKind::Sglang
            | BackendKind::Ollama => true,
            BackendKind::OpenAi | BackendKind::Responses => !is_provider(host),
            BackendKind::DeepSeek
            | BackendKind::DashScope
            | BackendKind::OpenRouter
            | BackendKind::Mistral
            | BackendKind::Xai
            | BackendKind::Anthropic
            | BackendKind::Gemini => false,
        }
    }

    /// The hosts at which nothing is to be had without a key.
    pub(super) fn key_required_host(self) -> Option<&'static str> {
        match self {
            BackendKind::OpenAi | BackendKind::Responses => Some("api.openai.com"),
            BackendKind::DeepSeek => Some("api.deepseek.com"),
            BackendKind::DashScope => Some("aliyuncs.com"),
            BackendKind::OpenRouter => Some("openrouter.ai"),
            BackendKind::Mistral => Some("api.mistral.ai"),
            BackendKind::Xai => Some("api.x.ai"),
            BackendKind::Anthropic => Some("api.anthropic.com"),
            BackendKind::Gemini => Some("generativelanguage.googleapis.com"),
            BackendKind::LlamaCpp
            | BackendKind::Vllm
            | BackendKind::Sglang
            | BackendKind::Ollama
            | BackendKind::Local => None,
        }
    }

    /// Whether one name means one tokenizer and one template there. An aggregator may ask another server
    /// each time, and what speaks a provider's API elsewhere may be such a one; a llama.cpp server says no name at all.
    pub(super) fn reads_alike_at(self, host: Option<&str>) -> bool {
        match self {
            BackendKind::Vllm | BackendKind::Sglang | BackendKind::Ollama => true,
            BackendKind::Local | BackendKind::LlamaCpp | BackendKind::OpenRouter => false,
            BackendKind::OpenAi
            | BackendKind::DeepSeek
            | BackendKind::DashScope
            | BackendKind::Mistral
            | BackendKind::Xai
            | BackendKind::Anthropic
            | BackendKind::Gemini
            | BackendKind::Responses => self.key_required_host().is_some_and(|own| is_host(host, own)),
        }
    }

    /// Whether it is a server of open models of one's own at that host, as far as that is known. Such a server is taken to have
    /// what such servers have, until it refuses.
    pub(super) fn is_self_hosted_server(self, host: Option<&str>) -> bool {
        !matches!(self, BackendKind::Local | BackendKind::Responses) && self.is_self_hosted(host)
    }

    /// Whether it may need minutes for its first byte there: a server of one's own loads a model when it is asked for it, and reads
    /// a long prompt without a word.
    pub(super) fn reads_for_long(self, host: Option<&str>) -> bool {
        match self {
            BackendKind::LlamaCpp | BackendKind::Vllm | BackendKind::Sglang | BackendKind::Ollama => true,
            BackendKind::OpenAi | BackendKind::Responses => is_private(host),
            BackendKind::Local
            | BackendKind::DeepSeek
            | BackendKind::DashScope
            | BackendKind::OpenRouter
            | BackendKind::Mistral
            | BackendKind::Xai
            | BackendKind::Anthropic
            | BackendKind::Gemini => false,
        }
    }

    /// What they can do beyond text, by a server of one's own or another.
    pub(super) fn capabilities(self, is_own: bool) -> &'static [Capability] {
        match self {
            _ if is_own => SELF_HOSTED_CAPABILITIES,
            // DeepSeek takes no penalties while it thinks, xAI none at all, and Mistral no biases. All their models write JSON.
            BackendKind::DeepSeek | BackendKind::Mistral | BackendKind::Xai => &[Capability::Json],
            BackendKind::Anthropic | BackendKind::Gemini | BackendKind::Responses => {
                &[Capability::Tools, Capability::Images, Capability::Schema]
            }
            // Its sampler holds an answer to a form, and knows how likely each token was.
            BackendKind::Local => {
                &[Capability::Penalties, Capability::Json, Capability::Schema, Capability::Logprobs]
            }
            BackendKind::OpenAi
            | BackendKind::LlamaCpp
            | BackendKind::DashScope
            | BackendKind::OpenRouter
            | BackendKind::Vllm
            | BackendKind::Sglang
            | BackendKind::Ollama => &[Capability::Penalties],
        }
    }

    /// Whether a model that sees images reads PDF files there too, by the host and by what the upstream calls the model: many
    /// models are served behind another provider's API, and read none.
    pub(super) fn reads_files(self, host: Option<&str>, upstream: &str) -> bool {
        let upstream = upstream.to_ascii_lowercase();
        let has_one_of = |words: &[&str]| words.iter().any(|word| upstream.contains(*word));
        match self {
            BackendKind::Anthropic => has_one_of(&["claude"]),
            BackendKind::Gemini => has_one_of(&["gemini"]),
            BackendKind::OpenRouter => has_one_of(&["claude", "gemini", "gpt-"]),
            BackendKind::Responses => {
                RESPONSES_HOSTS.iter().any(|own| is_host(host, own)) || has_one_of(&["gpt-"])
            }
            BackendKind::OpenAi => is_host(host, "api.openai.com"),
            BackendKind::Local
            | BackendKind::LlamaCpp
            | BackendKind::DeepSeek
            | BackendKind::DashScope
            | BackendKind::Vllm
            | BackendKind::Sglang
            | BackendKind::Mistral
            | BackendKind::Xai
            | BackendKind::Ollama => false,
        }
    }

    /// Whether it is sent the marks with which callers have a prompt kept in the provider's cache.
    pub(super) fn takes_cache_control(self) -> bool {
        match self {
            BackendKind::Anthropic | BackendKind::OpenRouter => true,
            BackendKind::Local
            | BackendKind::OpenAi
            | BackendKind::LlamaCpp
            | BackendKind::DeepSeek
            | BackendKind::DashScope
            | BackendKind::Vllm
            | BackendKind::Sglang
            | BackendKind::Mistral
            | BackendKind::Xai
            | BackendKind::Ollama
            | BackendKind::Gemini
            | BackendKind::Responses => false,
        }
    }

    /// Whether it stops, and stops billing, when the connection is gone: who serves for oneself does.
    pub(super) fn stops_billing(self) -> bool {
        match self {
            BackendKind::Local
            | BackendKind::LlamaCpp
            | BackendKind::Vllm
            | BackendKind::Sglang
            | BackendKind::Ollama => true,
            BackendKind::OpenAi
            | BackendKind::DeepSeek
            | BackendKind::DashScope
            | BackendKind::OpenRouter
            | BackendKind::Mistral
            | BackendKind::Xai
            | BackendKind::Anthropic
            | BackendKind::Gemini
            | BackendKind::Responses => false,
        }
    }

    /// The least limit that it takes.
    pub(super) fn output_min(self) -> Tokens {
        match self {
            BackendKind::Responses => responses::LIMIT_MIN,
            // A thought that is closed by its first token takes a tag and a token of the answer.
            BackendKind::Local => Tokens(2),
            BackendKind::OpenAi
            | BackendKind::LlamaCpp
            | BackendKind::DeepSeek
            | BackendKind::DashScope
            | BackendKind::OpenRouter
            | BackendKind::Vllm
            | BackendKind::Sglang
            | BackendKind::Mistral
            | BackendKind::Xai
            | BackendKind::Ollama
            | BackendKind::Anthropic
            | BackendKind::Gemini => Tokens(1),
        }
    }

    /// Where its API is, for those that are at one place.
    pub(super) fn base_url(self) -> Option<&'static str> {
        match self {
            BackendKind::DeepSeek => Some("https://api.deepseek.com"),
            BackendKind::DashScope => Some("https://dashscope-intl.aliyuncs.com/compatible-mode/v1"),
            BackendKind::OpenRouter => Some("https://openrouter.ai/api/v1"),
            BackendKind::Mistral => Some("https://api.mistral.ai/v1"),
            BackendKind::Xai => Some("https://api.x.ai/v1"),
            BackendKind::Anthropic => Some("https://api.anthropic.com/v1"),
            BackendKind::Gemini => Some("https://generativelanguage.googleapis.com/v1beta"),
            BackendKind::OpenAi
            | BackendKind::Responses
            | BackendKind::LlamaCpp
            | BackendKind::Vllm
            | BackendKind::Sglang
            | BackendKind::Ollama
            | BackendKind::Local => None,
        }
    }
}
