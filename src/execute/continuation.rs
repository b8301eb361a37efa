//! How a choice comes by another call, where money alone ended its answer.
//!
//! What the call reads and may write is set aside before it is sent. Whoever runs the choices does that, and answers.

use tokio::sync::{mpsc, oneshot};

use crate::backend::Piece;
use crate::catalog::SolutionStopReason;
use crate::units::Tokens;

use super::driver::{ChoiceJob, ChoiceProgress};

/// More wishes than this need not wait at once: each choice has one.
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
        // Whoever has left needs no answer.
        let _ = self.answer.send(granted);
    }
}

impl ContinuationSender {
    async fn request(&self, need: ContinuationNeed) -> Result<Tokens, SolutionStopReason> {
        let (answer, answered) = oneshot::channel();
        // Where nobody listens any more there is no more money.
        self.0.send(ContinuationRequest { need, answer }).await.map_err(|_| SolutionStopReason::Money)?;
        answered.await.unwrap_or(Err(SolutionStopReason::Money))
    }
}

impl ChoiceProgress {
    /// The same, whose answer may be gone on with in another call, where it is paid for.
    #[must_use]
    pub fn with_continuations(mut self, wishes: &ContinuationSender) -> ChoiceProgress {
        self.wishes = Some(wishes.clone());
        self
    }
}

/// Where this piece is the end that money alone sets to an answer, waits for what another call costs.
pub(super) async fn await_continuation(job: &ChoiceJob, progress: &mut ChoiceProgress, piece: &Piece) {
    let Some(wishes) = &progress.wishes else { return };
    let Some(need) = progress.phases.continuation_need(piece) else { return };
    let granted = tokio::time::timeout_at(job.deadline, wishes.request(need)).await;
    progress.phases.apply_grant(granted.unwrap_or(Err(SolutionStopReason::Deadline)));
}
