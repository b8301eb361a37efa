//! The kinds of backends, and what holds for each where nothing is said.

use crate::catalog::{Capability, Class, Service};

use super::known::is_host;

/// A kind of backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
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
pub(super) const KINDS: [(&str, Kind); 14] = [
    ("openai", Kind::OpenAi),
    ("anthropic", Kind::Anthropic),
    ("gemini", Kind::Gemini),
    ("responses", Kind::Responses),
    ("llamacpp", Kind::LlamaCpp),
    ("vllm", Kind::Vllm),
    ("sglang", Kind::Sglang),
    ("ollama", Kind::Ollama),
    ("deepseek", Kind::DeepSeek),
    ("dashscope", Kind::DashScope),
    ("openrouter", Kind::OpenRouter),
    ("mistral", Kind::Mistral),
    ("xai", Kind::Xai),
    ("local", Kind::Local),
];

/// What servers of open models have.
pub(super) const OWN_CAPABILITIES: &[Capability] =
    &[Capability::Tools, Capability::Schema, Capability::Penalties, Capability::Logprobs];
/// Hosts of those who serve models for money, behind OpenAI's API.
const PROVIDERS: &[&str] = &[
    "openai.com",
    "azure.com",
    "microsoft.com",
    "anthropic.com",
    "googleapis.com",
    "amazonaws.com",
    "api.aws",
    "deepseek.com",
    "aliyuncs.com",
    "openrouter.ai",
    "mistral.ai",
    "x.ai",
    "groq.com",
    "together.xyz",
    "together.ai",
    "fireworks.ai",
    "deepinfra.com",
    "perplexity.ai",
    "cohere.ai",
    "cohere.com",
    "cerebras.ai",
    "sambanova.ai",
    "nvidia.com",
    "huggingface.co",
    "novita.ai",
    "hyperbolic.xyz",
    "baseten.co",
    "replicate.com",
    "moonshot.ai",
    "moonshot.cn",
    "z.ai",
    "bigmodel.cn",
    "minimax.io",
    "minimaxi.com",
    "volces.com",
    "siliconflow.com",
    "siliconflow.cn",
    "vercel.sh",
    "venice.ai",
];

impl Kind {
    /// The word for it in the file.
    pub(super) fn word(self) -> &'static str {
        KINDS.iter().find(|(_, known)| *known == self).map_or("", |(word, _)| word)
    }

    /// How such a backend holds a model's thinking where nothing is said of it, the strongest way first.
    pub(super) fn classes(self) -> &'static [Class] {
        match self {
            Kind::Local => &[Class::Inline],
            Kind::LlamaCpp => &[Class::Continue, Class::Native],
            Kind::Vllm | Kind::Sglang => &[Class::Continue, Class::Native, Class::Turn],
            Kind::DeepSeek | Kind::Mistral => &[Class::Continue, Class::Turn],
            Kind::DashScope | Kind::OpenRouter => &[Class::Native, Class::Turn],
            Kind::Ollama => &[Class::Turn],
            Kind::Anthropic => &[Class::Native, Class::Turn],
            Kind::Gemini => &[Class::Native],
            Kind::OpenAi | Kind::Responses | Kind::Xai => &[Class::Effort],
        }
    }

    /// How it can hold it where the operator says so.
    pub(super) fn classes_most(self) -> &'static [Class] {
        match self {
            Kind::Local => &[Class::Inline],
            Kind::LlamaCpp => self.classes(),
            Kind::Anthropic => &[Class::Native, Class::Turn, Class::Effort],
            Kind::Gemini => &[Class::Native, Class::Effort],
            Kind::Responses => &[Class::Effort],
            _ => &[Class::Continue, Class::Native, Class::Turn, Class::Effort],
        }
    }

    /// What the models of such a backend can be asked for where nothing is said of it.
    pub(super) fn services(self) -> &'static [Service] {
        match self {
            Kind::Local | Kind::LlamaCpp | Kind::Vllm | Kind::Sglang | Kind::Ollama => {
                &[Service::Chat, Service::Completions]
            }
            Kind::OpenAi
            | Kind::DeepSeek
            | Kind::DashScope
            | Kind::OpenRouter
            | Kind::Mistral
            | Kind::Xai
            | Kind::Anthropic
            | Kind::Gemini
            | Kind::Responses => &[Service::Chat],
        }
    }

    /// What they can be asked for where the operator says so.
    pub(super) fn services_most(self) -> &'static [Service] {
        match self {
            Kind::Anthropic | Kind::Gemini | Kind::Responses => &[Service::Chat],
            Kind::Local | Kind::DeepSeek => &[Service::Chat, Service::Completions],
            _ => &[Service::Chat, Service::Completions, Service::Embeddings],
        }
    }

    /// True for whoever serves for oneself: the kinds that are one's own, and what speaks OpenAI's API at a host that no
    /// provider is known to have.
    pub(super) fn is_self_hosted(self, host: Option<&str>) -> bool {
        match self {
            Kind::Local | Kind::LlamaCpp | Kind::Vllm | Kind::Sglang | Kind::Ollama => true,
            Kind::OpenAi | Kind::Responses => !PROVIDERS.iter().any(|provider| is_host(host, provider)),
            _ => false,
        }
    }

    /// The hosts at which nothing is to be had without a key.
    pub(super) fn wants_key_at(self) -> Option<&'static str> {
        match self {
            Kind::OpenAi | Kind::Responses => Some("api.openai.com"),
            Kind::DeepSeek => Some("api.deepseek.com"),
            Kind::DashScope => Some("aliyuncs.com"),
            Kind::OpenRouter => Some("openrouter.ai"),
            Kind::Mistral => Some("api.mistral.ai"),
            Kind::Xai => Some("api.x.ai"),
            Kind::Anthropic => Some("api.anthropic.com"),
            Kind::Gemini => Some("generativelanguage.googleapis.com"),
            Kind::LlamaCpp | Kind::Vllm | Kind::Sglang | Kind::Ollama | Kind::Local => None,
        }
    }

    /// Whether one name stands there for one tokenizer and one template, whoever answers. Who passes requests on may ask another
    /// each time, and what speaks a provider's API elsewhere may be such a one; a llama.cpp server says no name at all.
    pub(super) fn reads_alike_at(self, host: Option<&str>) -> bool {
        match self {
            Kind::Vllm | Kind::Sglang | Kind::Ollama => true,
            Kind::Local | Kind::LlamaCpp | Kind::OpenRouter => false,
            _ => self.wants_key_at().is_some_and(|own| is_host(host, own)),
        }
    }

    /// Whether it is a server of open models of one's own at that host, as far as that can be told. Such a one is taken to have
    /// what such servers have, until it refuses.
    pub(super) fn is_self_hosted_server(self, host: Option<&str>) -> bool {
        !matches!(self, Kind::Local | Kind::Responses) && self.is_self_hosted(host)
    }

    /// What they can do beyond text, by a server of one's own or another.
    pub(super) fn capabilities(self, is_own: bool) -> &'static [Capability] {
        match self {
            _ if is_own => OWN_CAPABILITIES,
            // DeepSeek takes no penalties while it thinks, xAI none at all, and Mistral no biases.
            Kind::Local | Kind::DeepSeek | Kind::Mistral | Kind::Xai => &[],
            Kind::Anthropic | Kind::Gemini | Kind::Responses => {
                &[Capability::Tools, Capability::Images, Capability::Schema]
            }
            _ => &[Capability::Penalties],
        }
    }

    /// Whether it is sent the marks with which callers have a prompt kept in the provider's cache.
    pub(super) fn takes_marks(self) -> bool {
        matches!(self, Kind::Anthropic | Kind::OpenRouter)
    }

    /// Whether it stops, and stops billing, when the connection is gone: who serves for oneself does.
    pub(super) fn stops_billing(self) -> bool {
        matches!(self, Kind::Local | Kind::LlamaCpp | Kind::Vllm | Kind::Sglang | Kind::Ollama)
    }

    /// Where its API is, for those that are at one place.
    pub(super) fn base_url(self) -> Option<&'static str> {
        match self {
            Kind::DeepSeek => Some("https://api.deepseek.com"),
            Kind::DashScope => Some("https://dashscope-intl.aliyuncs.com/compatible-mode/v1"),
            Kind::OpenRouter => Some("https://openrouter.ai/api/v1"),
            Kind::Mistral => Some("https://api.mistral.ai/v1"),
            Kind::Xai => Some("https://api.x.ai/v1"),
            Kind::Anthropic => Some("https://api.anthropic.com/v1"),
            Kind::Gemini => Some("https://generativelanguage.googleapis.com/v1beta"),
            Kind::OpenAi
            | Kind::Responses
            | Kind::LlamaCpp
            | Kind::Vllm
            | Kind::Sglang
            | Kind::Ollama
            | Kind::Local => None,
        }
    }
}
