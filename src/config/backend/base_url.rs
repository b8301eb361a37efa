//! Where an upstream's API begins: as its operator writes it, with or without the version that its kind expects.

use std::net::IpAddr;

use reqwest::Url;

use crate::config::reader::Section;

use super::host::{host_of, is_host, is_provider};
use super::kind::BackendKind;

/// What no API begins with.
const ENDPOINTS: [&str; 7] =
    ["/chat/completions", "/completions", "/responses", "/messages", "/embeddings", "/models", "/api/chat"];

/// Names and addresses by which clouds tell a machine its own secrets, beside all that are of one link (RFC 3927, RFC 4291).
const METADATA_HOSTS: [&str; 5] =
    ["metadata.google.internal", "metadata", "instance-data", "168.63.129.16", "fd00:ec2::254"];

/// The address as the kind wants it; what is wrong with it is noted.
pub(super) fn base_url(section: &Section<'_>, kind: BackendKind, stated: &str) -> String {
    check_url(section, "base_url", Some(stated));
    if Url::parse(stated).is_ok_and(|url| url.host_str().is_some_and(tells_secrets)) {
        let remedy = "write the address of the model's server";
        section.reject("base_url", "leads to where a cloud tells a machine its own secrets", remedy);
    }
    if Url::parse(stated).is_ok_and(|url| travels_in_the_open(&url)) {
        let what = "plain http to a provider: the key and all prompts travel unencrypted";
        section.warn("base_url", what, "write https://");
    }
    let bare = stated.trim_end_matches('/');
    if let Some(endpoint) = ENDPOINTS.iter().find(|endpoint| bare.ends_with(*endpoint)) {
        let base = bare.trim_end_matches(endpoint);
        let remedy = format!("write where its API begins: \"{base}\"");
        section.reject("base_url", format!("ends with the endpoint {endpoint}"), remedy);
    }
    with_version(kind, bare)
}

/// Whether a host is one at which a machine asks about itself. A name that only resolves to one is not seen here.
fn tells_secrets(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches([']', '.']);
    let is_link_local = match bare.parse() {
        Ok(IpAddr::V4(address)) => address.is_link_local(),
        Ok(IpAddr::V6(address)) => match address.to_ipv4_mapped() {
            Some(mapped) => mapped.is_link_local(),
            None => address.is_unicast_link_local(),
        },
        Err(_) => false,
    };
    is_link_local || METADATA_HOSTS.contains(&bare)
}

/// Whether what is sent to a provider can be read on the way. Other hosts may be near under any name.
fn travels_in_the_open(url: &Url) -> bool {
    url.scheme() == "http" && is_provider(url.host_str())
}

/// With the version where a kind that wants one is given a bare host, and without it where a kind wants none.
fn with_version(kind: BackendKind, bare: &str) -> String {
    let is_host_alone = Url::parse(bare).is_ok_and(|url| url.path() == "/");
    // Regions have hosts below it.
    let is_openai = is_host(host_of(bare).as_deref(), "api.openai.com");
    match kind {
        BackendKind::LlamaCpp | BackendKind::DeepSeek => bare.strip_suffix("/v1").unwrap_or(bare).to_owned(),
        BackendKind::Gemini if is_host_alone => format!("{bare}/v1beta"),
        // Others who speak this API may begin it at their root.
        BackendKind::OpenAi | BackendKind::Responses if is_host_alone && is_openai => format!("{bare}/v1"),
        BackendKind::Vllm
        | BackendKind::Sglang
        | BackendKind::Ollama
        | BackendKind::Anthropic
        | BackendKind::Mistral
        | BackendKind::Xai
            if is_host_alone =>
        {
            format!("{bare}/v1")
        }
        BackendKind::Local
        | BackendKind::OpenAi
        | BackendKind::DashScope
        | BackendKind::OpenRouter
        | BackendKind::Vllm
        | BackendKind::Sglang
        | BackendKind::Ollama
        | BackendKind::Anthropic
        | BackendKind::Gemini
        | BackendKind::Mistral
        | BackendKind::Xai
        | BackendKind::Responses => bare.to_owned(),
    }
}

/// An address that may stand in a file.
pub(super) fn check_url(section: &Section<'_>, key: &str, url: Option<&str>) {
    let remedy = "write it like \"https://api.example.com/v1\"";
    let what = match url.map(Url::parse) {
        None => return,
        Some(Err(error)) => format!("not a URL: {error}"),
        Some(Ok(url)) if !matches!(url.scheme(), "http" | "https") => "neither http nor https".to_owned(),
        Some(Ok(url)) if !url.username().is_empty() || url.password().is_some() => {
            "has a password in it".to_owned()
        }
        Some(Ok(url)) if url.query().is_some() || url.fragment().is_some() => {
            "has more than a path".to_owned()
        }
        Some(Ok(_)) => return,
    };
    section.reject(key, what, remedy);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IN-18: networks of one's own are usual, for that is where one's engines are. What tells secrets is no engine.
    #[test]
    fn where_a_machine_asks_about_itself_is_no_upstream() {
        let check = |url: &str, expected| {
            let url = Url::parse(url).unwrap();
            assert_eq!(tells_secrets(url.host_str().unwrap()), expected, "{url}");
        };
        for url in [
            "http://169.254.169.254/v1",
            "http://2852039166/v1",
            "http://0xa9.0xfe.0xa9.0xfe/v1",
            "http://169.254.170.2",
            "http://[fe80::1]/v1",
            "http://[::ffff:169.254.169.254]/v1",
            "http://[fd00:ec2::254]/v1",
            "http://METADATA.google.internal./v1",
        ] {
            check(url, true);
        }
        for url in [
            "http://127.0.0.1:8000",
            "http://10.0.0.7/v1",
            "http://gpu:8000",
            "http://[::1]:8000",
            "http://[fd00::7]/v1",
        ] {
            check(url, false);
        }
    }

    #[test]
    fn a_version_is_added_or_left_out_as_the_kind_wants_it() {
        let check = |kind, stated: &str, expected: &str| assert_eq!(with_version(kind, stated), expected);
        check(BackendKind::Vllm, "http://gpu:8000", "http://gpu:8000/v1");
        check(BackendKind::Vllm, "http://gpu:8000/v1", "http://gpu:8000/v1");
        check(BackendKind::Vllm, "http://proxy/gpu", "http://proxy/gpu");
        check(BackendKind::Anthropic, "https://api.anthropic.com", "https://api.anthropic.com/v1");
        check(BackendKind::Gemini, "https://host", "https://host/v1beta");
        check(BackendKind::LlamaCpp, "http://gpu:8080/v1", "http://gpu:8080");
        check(BackendKind::OpenAi, "http://gpu:8000", "http://gpu:8000");
        for kind in [BackendKind::OpenAi, BackendKind::Responses] {
            check(kind, "https://api.openai.com", "https://api.openai.com/v1");
            check(kind, "https://api.openai.com/v1", "https://api.openai.com/v1");
            check(kind, "https://eu.api.openai.com", "https://eu.api.openai.com/v1");
        }
    }

    #[test]
    fn plain_http_to_a_provider_is_doubted() {
        let check = |url: &str, expected| {
            assert_eq!(travels_in_the_open(&Url::parse(url).unwrap()), expected, "{url}");
        };
        for url in ["http://api.openai.com/v1", "http://openrouter.ai/api/v1"] {
            check(url, true);
        }
        for url in ["https://api.openai.com/v1", "http://127.0.0.1:8000", "http://gpu.acme.com:8000"] {
            check(url, false);
        }
    }
}
