//! What a choice has taken while it runs, and how much more it may: bounded by the time that passed, and by what is covered.

use tokio::time::Instant;

use crate::backend::{OutputStats, Piece};
use crate::catalog::{ChoiceUsage, SolutionStopReason};
use crate::units::Tokens;

use super::driver::{ChoiceJob, ChoiceProgress, DeadlineResult};
use super::reserved_output::{ReservedOutput, ReservedOutputShare};

impl ChoiceProgress {
    /// The same, of whose answer only so much may be written as is covered; `beside` is what is set aside besides.
    #[must_use]
    pub fn with_reserved_output(mut self, cover: &ReservedOutput, beside: Tokens) -> ChoiceProgress {
        self.reserved = Some(ReservedOutputShare::of(cover, beside));
        self
    }

    /// What the choice has taken so far, the running part included; ask at any moment. Of what is hidden, that is no more than
    /// can have been written in the time that passed.
    pub fn spent(&self) -> ChoiceUsage {
        self.phases.spent_within(self.unseen_max())
    }

    /// What its running part can have written unseen.
    fn unseen_max(&self) -> Option<Tokens> {
        self.part_began.map(|(began, writing)| writing.max_tokens_in(began.elapsed()))
    }

    /// A part is called for.
    pub(super) fn begin_part(&mut self, writing: OutputStats) {
        self.part_began = Some((Instant::now(), writing));
        self.phases.set_output_stats(writing);
    }

    /// The running part is broken off: no more is booked of what it hid than it can have written.
    pub(super) fn break_off_part(&mut self) {
        if let Some(most) = self.unseen_max() {
            self.phases.set_unseen_max(most);
        }
    }

    /// True where so many tokens beyond what is written are covered by what is set aside.
    pub(super) fn reserve_output(&mut self, more: Tokens) -> bool {
        let ChoiceProgress { reserved: share, phases, .. } = self;
        share.as_mut().is_none_or(|share| share.use_up_to(phases.written() + more))
    }
}

/// Waits until this piece, or whatever comes next, is covered by what is set aside. Where that does not come about, the
/// answer ends with what was shown.
pub(super) async fn await_reserved(
    job: &ChoiceJob,
    progress: &mut ChoiceProgress,
    piece: Option<&Piece>,
) -> DeadlineResult<()> {
    if progress.reserved.is_none() {
        return DeadlineResult::Done(());
    }
    let more = piece.map_or(Tokens(1), |piece| progress.phases.estimate_tokens(piece));
    // What says nothing is no more to be paid for.
    if more == Tokens::ZERO || progress.reserve_output(more) {
        return DeadlineResult::Done(());
    }
    let Some(share) = &progress.reserved else { return DeadlineResult::Done(()) };
    let ended = match tokio::time::timeout_at(job.deadline, share.wait_reserved()).await {
        Ok(Ok(())) => return DeadlineResult::Done(()),
        Ok(Err(ended)) => ended,
        Err(_) => SolutionStopReason::Deadline,
    };
    progress.break_off_part();
    DeadlineResult::Expired(progress.phases.exhaust(piece, ended))
}
