//! Whether an upstream can be reached, and takes our key: one question that costs nothing.

use std::time::Duration;

use serde_json::Value;

use crate::Failure;
use stint_types::chat::VendorHeaders;

use super::client::UpstreamClient;
use super::{Auth, Connections, Settings, SettingsError};

/// The API that an upstream speaks, as far as it lists its models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelListApi {
    /// OpenAI's, which most have taken over.
    OpenAi,
    /// The same, below the root that a llama.cpp server is reached at.
    LlamaCpp,
    /// Anthropic's.
    Anthropic,
    /// Gemini's own.
    Gemini,
}

/// An upstream that can be asked for its models.
#[derive(Debug)]
pub struct ModelLister {
    client: UpstreamClient,
    api: ModelListApi,
}

impl ModelLister {
    /// The upstream, not asked yet. It has so long to connect, and to answer.
    ///
    /// # Errors
    /// When there can be no client with these settings.
    pub fn new(
        connections: &Connections,
        settings: &Settings,
        listing: ModelListApi,
        patience: Duration,
    ) -> Result<ModelLister, SettingsError> {
        let mut settings = Settings { connect: patience, total: patience, ..settings.clone() };
        match listing {
            ModelListApi::OpenAi | ModelListApi::LlamaCpp => {}
            ModelListApi::Anthropic => {
                settings.auth = Auth::Header("x-api-key");
                settings.headers.push((
                    super::anthropic::VERSION_HEADER,
                    VendorHeaders::VERSION_WITH_SAMPLING.to_owned(),
                ));
            }
            ModelListApi::Gemini => settings.auth = Auth::Header("x-goog-api-key"),
        }
        Ok(ModelLister { client: UpstreamClient::new(connections, settings)?, api: listing })
    }

    /// The names of its models; none where it answers and lists none.
    ///
    /// # Errors
    /// When it cannot be reached, or refuses us.
    pub async fn models(&self) -> Result<Vec<String>, Failure> {
        let path = match self.api {
            ModelListApi::OpenAi => "models",
            ModelListApi::LlamaCpp => "v1/models",
            ModelListApi::Anthropic => "models?limit=1000",
            ModelListApi::Gemini => "models?pageSize=1000",
        };
        Ok(names(&self.client.get(path).await?))
    }

    /// Whether a vLLM server counts tokens for us, beside its `/v1`.
    ///
    /// # Errors
    /// When it cannot be reached, or fails.
    pub async fn offers_tokenize(&self, model: &str) -> Result<bool, Failure> {
        let asked = super::vllm::tokenize_request(model, "x");
        Ok(self.client.json_if_offered(asked).await?.is_some())
    }
}

fn names(answer: &Value) -> Vec<String> {
    let list = answer.get("data").or_else(|| answer.get("models")).and_then(Value::as_array);
    let name = |model: &Value| {
        let name = model.get("id").or_else(|| model.get("name"))?.as_str()?;
        Some(name.strip_prefix("models/").unwrap_or(name).to_owned())
    };
    list.into_iter().flatten().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Fault;
    use crate::remote::upstream::{TestUpstream, answer, json as answered};

    async fn asked(path: &'static str, listing: ModelListApi, says: Value) -> Vec<String> {
        let upstream = TestUpstream::start(vec![(path, answered(&says))]).await;
        let settings = Settings { base_url: upstream.address.clone(), ..Settings::default() };
        let reach =
            ModelLister::new(&Connections::default(), &settings, listing, Duration::from_secs(5)).unwrap();
        reach.models().await.unwrap()
    }

    #[tokio::test]
    async fn every_api_is_asked_for_its_models_where_it_has_them() {
        let openai = json!({ "data": [{ "id": "gpt-5" }, { "id": "gpt-5-mini" }] });
        assert_eq!(asked("/models", ModelListApi::OpenAi, openai).await, ["gpt-5", "gpt-5-mini"]);
        let gemini = json!({ "models": [{ "name": "models/gemini-2.5-pro" }] });
        assert_eq!(asked("/models?pageSize=1000", ModelListApi::Gemini, gemini).await, ["gemini-2.5-pro"]);
        assert_eq!(asked("/v1/models", ModelListApi::LlamaCpp, json!({})).await, [""; 0]);
    }

    #[tokio::test]
    async fn a_key_that_is_refused_is_told_as_that() {
        let refused = answer("401 Unauthorized", "content-type: application/json\r\n", "{}");
        let upstream = TestUpstream::start(vec![("/models", refused)]).await;
        let settings = Settings { base_url: upstream.address.clone(), ..Settings::default() };
        let reach = ModelLister::new(
            &Connections::default(),
            &settings,
            ModelListApi::OpenAi,
            Duration::from_secs(5),
        );
        assert_eq!(reach.unwrap().models().await.unwrap_err().fault, Fault::Credential);
    }
}
