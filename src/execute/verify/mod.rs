//! The operator's verifier: a program or an HTTP address that scores an answer.
//!
//! It gets `{"question": …, "answer": …}` and replies `{"score": …}`, 0 to 1. Its time, the length of its reply and how
//! many run at once are bounded. A failure gives no verdict, never a bad one. Sampling asks it about each answer.

mod command;
mod error;
#[cfg(test)]
mod tests;
mod url;

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use stint_types::catalog::{self, Checker};
use stint_types::units::Chance;

pub use error::VerifierError;

/// A verifier. Clones share its permits.
#[derive(Debug, Clone)]
pub struct Verifier {
    settings: catalog::VerifierSettings,
    transport: VerifierTransport,
    permits: Arc<Semaphore>,
}

#[derive(Debug, Clone)]
enum VerifierTransport {
    Command(Vec<String>),
    Url(reqwest::Client, String),
    Unavailable,
}

impl Verifier {
    /// A verifier that nobody was asked yet.
    pub fn new(settings: catalog::VerifierSettings) -> Verifier {
        let transport = match &settings.by {
            Checker::Command(words) => VerifierTransport::Command(words.clone()),
            Checker::Url(address) => match url::client() {
                Ok(client) => VerifierTransport::Url(client, address.clone()),
                Err(error) => {
                    tracing::error!(%error, "no HTTP client can be made: the verifier gives no verdicts");
                    VerifierTransport::Unavailable
                }
            },
        };
        let permits = Arc::new(Semaphore::new(settings.concurrency));
        Verifier { settings, transport, permits }
    }

    /// The score from which on an answer is good enough.
    pub fn floor(&self) -> Chance {
        self.settings.floor
    }

    /// Scores an answer. Dropping the future ends the check.
    ///
    /// # Errors
    /// When there is no verdict.
    pub async fn score(&self, question: &str, answer: &str) -> Result<Chance, VerifierError> {
        let asked = json!({ "question": question, "answer": answer }).to_string();
        let score = tokio::time::timeout(self.settings.timeout, self.call(asked)).await;
        parse_score(&score.map_err(|_| VerifierError::Timeout)??)
    }

    async fn call(&self, asked: String) -> Result<Vec<u8>, VerifierError> {
        // Nobody closes the semaphore.
        let _permit = self.permits.acquire().await.map_err(|_| VerifierError::Timeout)?;
        match &self.transport {
            VerifierTransport::Command(words) => command::call(words, asked).await,
            VerifierTransport::Url(client, address) => url::call(client, address, asked).await,
            VerifierTransport::Unavailable => Err(VerifierError::Malformed),
        }
    }
}

fn parse_score(reply: &[u8]) -> Result<Chance, VerifierError> {
    let reply: Value = serde_json::from_slice(reply).map_err(|_| VerifierError::Malformed)?;
    let score = reply["score"].as_f64().filter(|score| (0.0..=1.0).contains(score));
    score.map(Chance::new).ok_or(VerifierError::Malformed)
}
