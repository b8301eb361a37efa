//! The hosts of addresses, and which provider each belongs to.

use std::net::{IpAddr, Ipv4Addr};

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

/// Hosts that know the limit of an answer as `max_tokens` alone. What `DeepSeek` and Z.ai are sent as `max_completion_tokens` they leave
/// out without a word, so that nothing holds the answer.
const MAX_TOKENS_HOSTS: &[&str] =
    &["deepseek.com", "z.ai", "bigmodel.cn", "together.xyz", "together.ai", "nvidia.com"];

/// The ends of names that no public server has.
const PRIVATE_DOMAINS: &[&str] = &["localhost", "local", "internal", "lan", "home.arpa"];

/// Whether that host is of a network of one's own: an address or a name that nobody else can have. A name of one word is that of
/// a container or of a machine nearby.
pub(super) fn is_private(at: Option<&str>) -> bool {
    let Some(host) = at else { return false };
    match host.trim_matches(['[', ']']).parse() {
        Ok(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local() || is_shared(ip),
        Ok(IpAddr::V6(ip)) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
        Err(_) => !host.contains('.') || PRIVATE_DOMAINS.iter().any(|domain| is_host(at, domain)),
    }
}

/// 100.64.0.0/10, as virtual private networks use it.
fn is_shared(ip: Ipv4Addr) -> bool {
    ip.octets()[0] == 100 && ip.octets()[1] & 0xc0 == 64
}

/// The host of an address.
pub(super) fn host_of(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host_str().map(str::to_ascii_lowercase)
}

/// Whether somebody who serves models for money is known to be at that host.
pub(super) fn is_provider(at: Option<&str>) -> bool {
    PROVIDER_HOSTS.iter().any(|provider| is_host(at, provider))
}

/// Whether the limit of an answer is called `max_tokens` there.
pub(super) fn limits_by_max_tokens(at: Option<&str>) -> bool {
    MAX_TOKENS_HOSTS.iter().any(|host| is_host(at, host))
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

    #[test]
    fn what_nobody_else_can_have_is_of_ones_own_network() {
        for host in
            ["127.0.0.1", "10.0.0.9", "192.168.1.20", "100.101.2.3", "[::1]", "[fd00::1]", "localhost"]
        {
            assert!(is_private(Some(host)), "{host}");
        }
        for host in ["gpu-box", "gpu.lan", "llm.internal", "host.docker.internal", "mac.local"] {
            assert!(is_private(Some(host)), "{host}");
        }
        for host in ["api.openai.com", "8.8.8.8", "100.200.1.1", "[2001:db8::1]", "local.example.com"] {
            assert!(!is_private(Some(host)), "{host}");
        }
        assert!(!is_private(None));
    }
}
