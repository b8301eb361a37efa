//! `prompt_cache`: who shares what an upstream has cached of prompts.

use crate::config::reader::Section;
use reqwest::Url;
use stint_backend::remote;
use stint_backend::remote::prompt_cache::{
    CACHE_SALT, PROMPT_CACHE_KEY, PromptCacheRules, PromptCacheSharing,
};

use super::host::is_host;
use super::kind::BackendKind;

const WORDS: [(&str, PromptCacheSharing); 2] =
    [("account", PromptCacheSharing::Account), ("shared", PromptCacheSharing::Everyone)];

/// Takes what a section says of it, for an upstream and for each place where it is.
pub(super) fn apply<'c>(
    section: &Section<'_>,
    kind: BackendKind,
    clients: impl Iterator<Item = &'c mut remote::Settings>,
) {
    let sharing = section.word("prompt_cache", &WORDS).unwrap_or_default();
    for client in clients {
        let url = Url::parse(&client.base_url).ok();
        let host = url.as_ref().and_then(Url::host_str);
        client.prompt_cache = PromptCacheRules { sharing, member: member(kind, host) };
    }
}

/// What is sent unasked, where it is documented. Servers that speak OpenAI's chat completions may refuse what they do not know.
fn member(kind: BackendKind, host: Option<&str>) -> Option<&'static str> {
    match kind {
        BackendKind::Vllm | BackendKind::Sglang => Some(CACHE_SALT),
        BackendKind::Responses => Some(PROMPT_CACHE_KEY),
        BackendKind::OpenAi => is_host(host, "api.openai.com").then_some(PROMPT_CACHE_KEY),
        BackendKind::Local
        | BackendKind::LlamaCpp
        | BackendKind::Anthropic
        | BackendKind::Gemini
        | BackendKind::DeepSeek
        | BackendKind::DashScope
        | BackendKind::OpenRouter
        | BackendKind::Mistral
        | BackendKind::Xai
        | BackendKind::Ollama => None,
    }
}
