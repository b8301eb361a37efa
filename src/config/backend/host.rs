//! The hosts of addresses, and which provider each belongs to.

use reqwest::Url;

/// Hosts of those who serve models for money, behind OpenAI's API.
const PROVIDER_HOSTS: &[&str] = &[
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
    "meta.ai",
    "volces.com",
    "siliconflow.com",
    "siliconflow.cn",
    "vercel.sh",
    "venice.ai",
];

/// The host of an address.
pub(super) fn host_of(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host_str().map(str::to_ascii_lowercase)
}

/// Whether somebody who serves models for money is known to be at that host.
pub(super) fn is_provider(at: Option<&str>) -> bool {
    PROVIDER_HOSTS.iter().any(|provider| is_host(at, provider))
}

/// Whether an upstream is at that host, or below it.
pub(super) fn is_host(at: Option<&str>, host: &str) -> bool {
    at.unwrap_or_default().strip_suffix(host).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_about_itself_and_what_is_below_it() {
        assert!(is_host(Some("api.openai.com"), "openai.com"));
        assert!(is_host(Some("openai.com"), "openai.com"));
        assert!(!is_host(Some("notopenai.com"), "openai.com"));
        assert!(!is_host(Some("openai.com.evil.example"), "openai.com"));
        assert!(!is_host(None, "openai.com"));
    }
}
