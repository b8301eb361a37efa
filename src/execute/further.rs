//! How a choice comes by another call, where money alone ended its answer.
//!
//! What the call reads and may write is set aside before it is sent. Whoever runs the choices does that, and answers.

use tokio::sync::{mpsc, oneshot};

use crate::backend::Piece;
use crate::catalog::SolutionEnded;
use crate::units::Tokens;

use super::run::{Job, Progress};

/// More wishes than this need not wait at once: each choice has one.
const WISHES_MAX: usize = 64;

/// What another call needs to go on with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// The most that it reads: prompt, thought and the answer so far.
    pub read: Tokens,
    /// How long the answer was allowed to be until now.
    pub limit: Tokens,
    /// How long it may be at most, whatever the money.
    pub most: Tokens,
}

/// A choice that waits for the money of another call.
#[derive(Debug)]
pub struct Wish {
    /// What for.
    pub need: Need,
    answer: oneshot::Sender<Result<Tokens, SolutionEnded>>,
}

/// Where choices say what they need. Clones share it.
#[derive(Debug, Clone)]
pub struct Wishes(mpsc::Sender<Wish>);

/// A place for wishes, and where they come out.
pub fn wishes() -> (Wishes, mpsc::Receiver<Wish>) {
    let (wishes, came) = mpsc::channel(WISHES_MAX);
    (Wishes(wishes), came)
}

impl Wish {
    /// So many more tokens of the answer are paid for, or why none are.
    pub fn answer(self, granted: Result<Tokens, SolutionEnded>) {
        // Whoever has left needs no answer.
        let _ = self.answer.send(granted);
    }
}

impl Wishes {
    async fn wish(&self, need: Need) -> Result<Tokens, SolutionEnded> {
        let (answer, answered) = oneshot::channel();
        // Where nobody listens any more there is no more money.
        self.0.send(Wish { need, answer }).await.map_err(|_| SolutionEnded::Money)?;
        answered.await.unwrap_or(Err(SolutionEnded::Money))
    }
}

impl Progress {
    /// The same, whose answer may be gone on with in another call, where it is paid for.
    #[must_use]
    pub fn wishing(mut self, wishes: &Wishes) -> Progress {
        self.wishes = Some(wishes.clone());
        self
    }
}

/// Where this piece is the end that money alone sets to an answer, waits for what another call costs.
pub(super) async fn wish(job: &Job, progress: &mut Progress, piece: &Piece) {
    let Some(wishes) = &progress.wishes else { return };
    let Some(need) = progress.phases.needs_more(piece) else { return };
    let granted = tokio::time::timeout_at(job.deadline, wishes.wish(need)).await;
    progress.phases.granted(granted.unwrap_or(Err(SolutionEnded::Deadline)));
}
