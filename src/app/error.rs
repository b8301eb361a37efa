//! Why a server cannot be built, and why a model cannot be served.

use std::error::Error;
use std::io;
use std::sync::Arc;

use crate::guardrail::GuardrailsError;
use crate::http::tls::TlsError;
use crate::oidc::TokenVerifierError;
use crate::traces::CollectorError;
use stint_backend::remote::SettingsError;
use stint_decide::estimate;
#[cfg(feature = "local")]
use stint_engine::EngineError;
use stint_gguf::GgufError;
use stint_ledger::LedgerError;
use stint_prompt::PromptError;
use stint_sessions::idempotency::IdempotencyStoreError;
use stint_storage::StorageError;
use stint_types::metrics::MetricsError;
use stint_types::tenant::KeyChangeError;

/// Why a server cannot be built from its settings.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The first key cannot be had.
    #[error("no first key")]
    FirstKey(#[source] io::Error),
    /// The keys contradict each other, or cannot be read.
    #[error("the keys cannot be used")]
    Keys(#[from] KeyChangeError),
    /// The collector of traces cannot be spoken to.
    #[error(transparent)]
    Traces(#[from] CollectorError),
    /// The series contradict each other.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// The journal cannot be opened.
    #[error("the ledger's journal cannot be opened")]
    Storage(#[from] StorageError),
    /// What idempotency keys stand for cannot be read.
    #[error("the records of idempotency keys cannot be opened")]
    Idempotency(#[from] IdempotencyStoreError),
    /// The books cannot be opened.
    #[error("the ledger cannot be opened")]
    Ledger(#[from] LedgerError),
    /// A model cannot be served.
    #[error("the model {0} cannot be served")]
    Model(Arc<str>, #[source] ModelError),
    /// The shipped calibration cannot be read.
    #[error("the shipped calibration cannot be read")]
    Calibration(#[source] estimate::ShippedError),
    /// The signals that end it cannot be received.
    #[error("signals cannot be received")]
    Signals(#[source] io::Error),
    /// A listener cannot speak TLS.
    #[error("a listener's certificate cannot be used")]
    Certificate(#[source] TlsError),
    /// The webhook's client cannot be made.
    #[error("alerts cannot be sent")]
    Alerts(#[source] reqwest::Error),
    /// Tokens of issuers cannot be checked.
    #[error("tokens of issuers cannot be taken")]
    Tokens(#[from] TokenVerifierError),
    /// Guardrails cannot be called.
    #[error(transparent)]
    Guardrails(#[from] GuardrailsError),
    /// An address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] io::Error),
}

/// Why a model cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// Its file cannot be read.
    #[error(transparent)]
    File(#[from] GgufError),
    /// The engine cannot run it.
    #[cfg(feature = "local")]
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// This build has no engine.
    #[cfg(not(feature = "local"))]
    #[error(
        "this stint was built without local models: build it with the feature `local`, or serve the model elsewhere"
    )]
    NoEngine,
    /// Its tokenizer or template cannot be used.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// It is said to call tools, and nothing tells how it writes calls.
    #[error(
        "`capabilities` has \"tools\", and its chat template shows no way of calling them that can be read: set `tool_syntax` to how \
         the model writes its calls, or take \"tools\" out of `capabilities`"
    )]
    ToolSyntaxUnknown,
    /// Its upstream cannot be set up.
    #[error(transparent)]
    Upstream(#[from] SettingsError),
    /// Its engine's load cannot be asked for.
    #[error("no HTTP client can be made that asks the engine for its load")]
    Poll(#[source] reqwest::Error),
    /// The system gives no random numbers.
    #[error("no random numbers: {0}")]
    Randomness(getrandom::Error),
}

/// An error with all its causes, in one line.
pub(super) fn error_chain(error: &dyn Error) -> String {
    new_causes(error).iter().fold(error.to_string(), |chain, cause| format!("{chain}: {cause}"))
}

/// The causes of an error, without those that say nothing new: libraries end their own words with those of their causes.
pub(super) fn new_causes(error: &dyn Error) -> Vec<String> {
    let mut last = error.to_string();
    let mut causes = Vec::new();
    for cause in std::iter::successors(error.source(), |&cause| cause.source()) {
        let told = cause.to_string();
        if !last.ends_with(&told) {
            causes.push(told.clone());
        }
        last = told;
    }
    causes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Told(&'static str, #[source] Option<Box<Told>>);

    #[test]
    fn a_cause_that_says_nothing_new_is_left_out() {
        let full = || Told("the disk is full", None);
        let database = Told("error of the database: the disk is full", Some(Box::new(full())));
        let ledger = Told("the ledger cannot be opened", Some(Box::new(database)));
        assert_eq!(new_causes(&ledger), ["error of the database: the disk is full"]);
        assert_eq!(
            error_chain(&ledger),
            "the ledger cannot be opened: error of the database: the disk is full"
        );
        let other = Told("it cannot be opened", Some(Box::new(full())));
        assert_eq!(new_causes(&other), ["the disk is full"]);
    }
}
