//! What kind of server answers at an address, and which models it has.

use reqwest::{Client, Response};
use serde_json::Value;

/// The longest list that is read.
const LIST_MAX: usize = 4 << 20;

/// A server of models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundServer {
    /// As `kind` has it in the configuration.
    pub(super) kind: &'static str,
    pub(super) base: String,
    pub(super) models: Vec<String>,
}

/// Why there is none that can be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum LookError {
    #[error("it does not answer")]
    Silent(#[from] reqwest::Error),
    #[error("it lists no models under /v1/models")]
    NoList,
    #[error("it is a stint itself")]
    Stint,
}

/// Asks for the list of models, and tells the kind by who says that they own them.
pub(super) async fn look(client: &Client, base: &str) -> Result<FoundServer, LookError> {
    let base = base.trim_end_matches('/');
    let base = base.strip_suffix("/v1").unwrap_or(base).to_owned();
    let answer = client.get(format!("{base}/v1/models")).send().await?;
    let list = json(answer.error_for_status().map_err(|_| LookError::NoList)?).await?;
    let entries = list["data"].as_array().ok_or(LookError::NoList)?;
    // A name that could steer a terminal is no name.
    let names = entries.iter().filter_map(|entry| entry["id"].as_str());
    let models: Vec<String> =
        names.filter(|name| !name.contains(char::is_control)).map(str::to_owned).collect();
    if models.is_empty() {
        return Err(LookError::NoList);
    }
    let owner = entries.first().and_then(|entry| entry["owned_by"].as_str()).unwrap_or_default();
    let kind = match owner {
        "stint" => return Err(LookError::Stint),
        "llamacpp" => "llamacpp",
        "vllm" => "vllm",
        "sglang" => "sglang",
        _ if is_ollama(client, &base).await => "ollama",
        _ => "openai",
    };
    Ok(FoundServer { kind, base, models })
}

/// Ollama names no owner of its own, but has an API of its own.
async fn is_ollama(client: &Client, base: &str) -> bool {
    let answer = client.get(format!("{base}/api/version")).send().await;
    let Ok(answer) = answer.and_then(Response::error_for_status) else { return false };
    json(answer).await.is_ok_and(|version| version["version"].is_string())
}

/// What an answer says, where it is no longer than a list may be.
async fn json(mut answer: Response) -> Result<Value, LookError> {
    let mut text = Vec::new();
    while let Some(part) = answer.chunk().await? {
        text.extend_from_slice(&part);
        if text.len() > LIST_MAX {
            return Err(LookError::NoList);
        }
    }
    serde_json::from_slice(&text).map_err(|_| LookError::NoList)
}
