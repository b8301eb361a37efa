//! Requests for another call, when an answer ended only for lack of money.
//!
//! A choice states what the call needs. The gateway reserves what it may cost, and replies with the tokens that are paid
//! for.

use tokio::sync::{mpsc, oneshot};

use stint_types::catalog::SolutionStopReason;
use stint_types::units::Tokens;

/// How many requests may wait at once: each choice has one at most.
const PENDING_MAX: usize = 64;

/// What another call needs to go on with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContinuationNeed {
    /// The most that it reads: prompt, thought and the answer so far.
    pub read: Tokens,
    /// How long the answer was allowed to be until now.
    pub limit: Tokens,
    /// How long it may be at most, whatever the money.
    pub max: Tokens,
}

/// A choice that waits for the money of another call.
#[derive(Debug)]
pub struct ContinuationRequest {
    /// What for.
    pub need: ContinuationNeed,
    answer: oneshot::Sender<Result<Tokens, SolutionStopReason>>,
}

/// Where choices say what they need. Clones share it.
#[derive(Debug, Clone)]
pub struct ContinuationSender(mpsc::Sender<ContinuationRequest>);

/// A channel for requests to continue an answer.
pub fn continuation_channel() -> (ContinuationSender, mpsc::Receiver<ContinuationRequest>) {
    let (sender, requests) = mpsc::channel(PENDING_MAX);
    (ContinuationSender(sender), requests)
}

impl ContinuationRequest {
    /// So many more tokens of the answer are paid for, or why none are.
    pub fn respond(self, granted: Result<Tokens, SolutionStopReason>) {
        // A choice that is gone needs no answer.
        let _ = self.answer.send(granted);
    }
}

impl ContinuationSender {
    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// Why no more is paid for.
    pub(super) async fn request(&self, need: ContinuationNeed) -> Result<Tokens, SolutionStopReason> {
        let (answer, answered) = oneshot::channel();
        // A gateway that no longer listens has no more money.
        self.0.send(ContinuationRequest { need, answer }).await.map_err(|_| SolutionStopReason::Money)?;
        answered.await.unwrap_or(Err(SolutionStopReason::Money))
    }
}
