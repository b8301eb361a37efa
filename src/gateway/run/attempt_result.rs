//! How one attempt at an offer ended.

use crate::execute::SamplingResult;
use stint_backend::Failure;
use stint_types::chat::FinishReason;

/// How one attempt at an offer ended.
pub(crate) enum AttemptResult {
    /// Every choice came to its end.
    Finished(Vec<FinishReason>),
    /// Every choice was sampled, perhaps several times. The caller has seen none of it yet.
    Sampled(Vec<SamplingResult>),
    /// The backend failed.
    Failed(Failure),
    /// The caller is gone.
    HungUp,
}

impl AttemptResult {
    /// The word in metrics and the journal.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            AttemptResult::Finished(_) | AttemptResult::Sampled(_) => "finished",
            AttemptResult::Failed(_) => "failed",
            AttemptResult::HungUp => "hung_up",
        }
    }

    /// What failed, in one word.
    pub(crate) fn error(&self) -> Option<&'static str> {
        match self {
            AttemptResult::Failed(failure) => Some(failure.code.unwrap_or(failure.fault.as_str())),
            AttemptResult::Finished(_) | AttemptResult::Sampled(_) | AttemptResult::HungUp => None,
        }
    }
}
