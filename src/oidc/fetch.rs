//! Fetches an issuer's keys: by discovery, or from where they are stated to be. What an issuer sends is bounded, and not followed
//! elsewhere.

use std::time::Duration;

use reqwest::{Client, Url};
use serde_json::Value;

use crate::outbound::{self, AnswerReadError};

use super::key_set::{KeySet, KeySetError};
use super::settings::KeySource;

/// Where an issuer says where its keys are (`OpenID` Connect Discovery 1.0).
const DISCOVERY: &str = "/.well-known/openid-configuration";

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest answer.
const ANSWER_MAX: usize = 512 << 10;

/// Fetches one issuer's keys.
#[derive(Debug)]
pub(super) struct KeyFetcher {
    client: Client,
    source: KeySource,
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("the issuer cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    #[error("the issuer answers {0}")]
    Status(u16),
    #[error("the issuer's answer is longer than {ANSWER_MAX} bytes")]
    TooLong,
    #[error("the issuer's configuration names another issuer; write issuer as its own says")]
    OtherIssuer,
    #[error("the issuer's configuration names no jwks_uri with https; state jwks_url")]
    NoKeys,
    #[error("the issuer's keys cannot be read: {0}")]
    Keys(#[from] KeySetError),
}

impl KeyFetcher {
    pub(super) fn new(source: KeySource) -> Result<KeyFetcher, reqwest::Error> {
        Ok(KeyFetcher { client: outbound::client_builder().timeout(PATIENCE).build()?, source })
    }

    pub(super) async fn fetch(&self) -> Result<KeySet, FetchError> {
        let url = match &self.source.jwks_url {
            Some(url) => url.clone(),
            None => self.discover().await?,
        };
        Ok(KeySet::parse(&self.get(url).await?)?)
    }

    async fn discover(&self) -> Result<Url, FetchError> {
        let issuer = &self.source.issuer;
        let place = format!("{}{DISCOVERY}", issuer.trim_end_matches('/'));
        let answer = self.get(place.parse().map_err(|_| FetchError::NoKeys)?).await?;
        let configuration: Value = serde_json::from_slice(&answer).map_err(|_| KeySetError::NotASet)?;
        if configuration["issuer"] != issuer.as_str() {
            return Err(FetchError::OtherIssuer);
        }
        let url = configuration["jwks_uri"].as_str().and_then(|text| text.parse::<Url>().ok());
        // An issuer that is asked over TLS does not lead away from it.
        let is_secret = issuer.starts_with("https:");
        url.filter(|url| url.scheme() == "https" || !is_secret).ok_or(FetchError::NoKeys)
    }

    async fn get(&self, url: Url) -> Result<Vec<u8>, FetchError> {
        let unreachable = |error: reqwest::Error| FetchError::Unreachable(error.without_url());
        let answer = self.client.get(url).send().await.map_err(unreachable)?;
        if !answer.status().is_success() {
            return Err(FetchError::Status(answer.status().as_u16()));
        }
        outbound::read_up_to(answer, ANSWER_MAX).await.map_err(|error| match error {
            AnswerReadError::Broken(error) => unreachable(error),
            AnswerReadError::TooLong => FetchError::TooLong,
        })
    }
}
