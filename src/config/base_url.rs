//! Where an upstream's API begins: as its operator writes it, with or without the version that its kind expects.

use reqwest::Url;

use super::backend::check_url;
use super::kind::Kind;
use super::mistake::Wrong;
use super::reader::Section;

/// What no API begins with.
const ENDPOINTS: [&str; 7] =
    ["/chat/completions", "/completions", "/responses", "/messages", "/embeddings", "/models", "/api/chat"];

/// The address as the kind wants it; what is wrong with it is noted.
pub(super) fn base_url(section: &Section<'_>, kind: Kind, stated: &str) -> String {
    check_url(section, "base_url", Some(stated));
    let bare = stated.trim_end_matches('/');
    if let Some(endpoint) = ENDPOINTS.iter().find(|endpoint| bare.ends_with(*endpoint)) {
        let base = bare.trim_end_matches(endpoint);
        let remedy = format!("write where its API begins: \"{base}\"");
        section.wrong("base_url", Wrong::new(format!("ends with the endpoint {endpoint}"), remedy));
    }
    versioned(kind, bare)
}

/// With the version where a kind that wants one is given a bare host, and without it where a kind wants none.
fn versioned(kind: Kind, bare: &str) -> String {
    let is_host_alone = Url::parse(bare).is_ok_and(|url| url.path() == "/");
    match kind {
        Kind::LlamaCpp | Kind::DeepSeek => bare.strip_suffix("/v1").unwrap_or(bare).to_owned(),
        Kind::Gemini if is_host_alone => format!("{bare}/v1beta"),
        Kind::Vllm | Kind::Sglang | Kind::Ollama | Kind::Anthropic | Kind::Mistral | Kind::Xai
            if is_host_alone =>
        {
            format!("{bare}/v1")
        }
        _ => bare.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_added_or_left_out_as_the_kind_wants_it() {
        let check = |kind, stated: &str, expected: &str| assert_eq!(versioned(kind, stated), expected);
        check(Kind::Vllm, "http://gpu:8000", "http://gpu:8000/v1");
        check(Kind::Vllm, "http://gpu:8000/v1", "http://gpu:8000/v1");
        check(Kind::Vllm, "http://proxy/gpu", "http://proxy/gpu");
        check(Kind::Anthropic, "https://api.anthropic.com", "https://api.anthropic.com/v1");
        check(Kind::Gemini, "https://host", "https://host/v1beta");
        check(Kind::LlamaCpp, "http://gpu:8080/v1", "http://gpu:8080");
        check(Kind::OpenAi, "http://gpu:8000", "http://gpu:8000");
    }
}
