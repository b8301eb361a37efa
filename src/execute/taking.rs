//! What a choice has taken while it runs, and how much more it may: bounded by the time that passed, and by what is covered.

use tokio::time::Instant;

use crate::backend::{Piece, Writing};
use crate::catalog::{SolutionEnded, Spent};
use crate::units::Tokens;

use super::cover::{Cover, Share};
use super::run::{Job, Progress, Timed};

impl Progress {
    /// The same, of whose answer only so much may be written as is covered; `beside` is what is set aside besides.
    #[must_use]
    pub fn covered_by(mut self, cover: &Cover, beside: Tokens) -> Progress {
        self.share = Some(Share::of(cover, beside));
        self
    }

    /// What the choice has taken so far, the running part included; ask at any moment. Of what is hidden, that is no more than
    /// can have been written in the time that passed.
    pub fn spent(&self) -> Spent {
        self.phases.spent_within(self.unseen_max())
    }

    /// What its running part can have written unseen.
    fn unseen_max(&self) -> Option<Tokens> {
        self.began.map(|(began, writing)| writing.most_in(began.elapsed()))
    }

    /// A part is called for.
    pub(super) fn begins(&mut self, writing: Writing) {
        self.began = Some((Instant::now(), writing));
        self.phases.writes(writing);
    }

    /// The running part is broken off: no more is booked of what it hid than it can have written.
    pub(super) fn breaks_off(&mut self) {
        if let Some(most) = self.unseen_max() {
            self.phases.unseen_at_most(most);
        }
    }

    /// True where so many tokens beyond what is written are covered by what is set aside.
    pub(super) fn holds(&mut self, more: Tokens) -> bool {
        let Progress { share, phases, .. } = self;
        share.as_mut().is_none_or(|share| share.holds(phases.written() + more))
    }
}

/// Waits until this piece, or whatever comes next, is covered by what is set aside. Where that does not come about, the
/// answer ends with what was shown.
pub(super) async fn covered(job: &Job, progress: &mut Progress, piece: Option<&Piece>) -> Timed<()> {
    if progress.share.is_none() {
        return Timed::Came(());
    }
    let more = piece.map_or(Tokens(1), |piece| progress.phases.size(piece));
    // What says nothing is no more to be paid for.
    if more == Tokens::ZERO || progress.holds(more) {
        return Timed::Came(());
    }
    let Some(share) = &progress.share else { return Timed::Came(()) };
    let ended = match tokio::time::timeout_at(job.deadline, share.covered()).await {
        Ok(Ok(())) => return Timed::Came(()),
        Ok(Err(ended)) => ended,
        Err(_) => SolutionEnded::Deadline,
    };
    progress.breaks_off();
    Timed::Late(progress.phases.run_out(piece, ended))
}
