//! An operator's verifier: a program or an address that scores an answer.
//!
//! It is given `{"question": …, "answer": …}` and says `{"score": …}`, 0 to 1. Its time, what it says and how many of it run
//! at once are bounded; whatever goes wrong is no verdict, never a bad one.

mod command;
#[cfg(test)]
mod tests;
mod url;

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::catalog::{self, Checker};
use crate::units::Chance;

/// The most bytes that a verifier may say.
const REPLY_MAX: usize = 64 << 10;

/// A verifier. Clones share its places.
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

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub enum VerifierError {
    /// It took too long.
    #[error("the verifier did not answer in time; make it faster, or raise its timeout")]
    Timeout,
    /// The program could not be run or its answer not be read.
    #[error("the verifier's program failed; run it by hand with a question on its standard input")]
    Program(#[source] std::io::Error),
    /// The program ended with an error.
    #[error(
        "the verifier's program ended with an error; run it by hand with a question on its standard input"
    )]
    Ended,
    /// The address could not be asked.
    #[error("the verifier's address could not be asked")]
    Unreachable(#[source] reqwest::Error),
    /// The address answered with an error.
    #[error("the verifier's address answered {0}; it must answer 200")]
    Status(u16),
    /// It said too much.
    #[error("the verifier said more than 64 KiB; it must say one JSON object")]
    TooLong,
    /// It said something else.
    #[error("the verifier must say a JSON object with a score of 0 to 1")]
    Malformed,
}

impl Verifier {
    /// A verifier that nobody was asked yet.
    pub fn new(settings: catalog::VerifierSettings) -> Verifier {
        let asking = match &settings.by {
            Checker::Command(words) => VerifierTransport::Command(words.clone()),
            Checker::Url(address) => match url::client() {
                Ok(client) => VerifierTransport::Url(client, address.clone()),
                Err(error) => {
                    tracing::error!(%error, "no HTTP client can be made: the verifier gives no verdicts");
                    VerifierTransport::Unavailable
                }
            },
        };
        let places = Arc::new(Semaphore::new(settings.concurrency));
        Verifier { settings, transport: asking, permits: places }
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
        let _place = self.permits.acquire().await.map_err(|_| VerifierError::Timeout)?;
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
