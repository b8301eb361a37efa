//! The driver's three waits: for the upstream, for more reserved output, and for the money of another call. None lasts
//! longer than the choice's deadline.

use std::pin::pin;
use std::task::Poll;

use futures_util::poll;
use tokio::time::Instant;

use stint_backend::Piece;
use stint_types::catalog::SolutionStopReason;
use stint_types::units::Tokens;

use super::choice::ChoiceJob;
use super::phases::ChoiceStep;
use super::progress::ChoiceProgress;

/// What came of a wait.
pub(super) enum DeadlineResult<T> {
    /// It came in time.
    Done(T),
    /// It did not, and the choice takes this step.
    Expired(ChoiceStep),
}

/// Waits for `work`, but not past the moment at which the thought must be cut or the answer must end.
pub(super) async fn before_deadline<T>(
    job: &ChoiceJob,
    progress: &mut ChoiceProgress,
    work: impl Future<Output = T>,
) -> DeadlineResult<T> {
    let is_thinking = progress.phases.is_thinking();
    let cut_at = job.cut_before.filter(|_| is_thinking).map(|before| job.deadline - before);
    let until = cut_at.unwrap_or(job.deadline);
    let mut work = pin!(work);
    // Most pieces are there already, and need no timer.
    if let Poll::Ready(result) = poll!(&mut work) {
        return DeadlineResult::Done(result);
    }
    loop {
        let look = progress.meter_schedule.next_at().min(until);
        if let Ok(result) = tokio::time::timeout_at(look, &mut work).await {
            return DeadlineResult::Done(result);
        }
        if Instant::now() >= until {
            break;
        }
        progress.update_meter_if_due();
    }
    progress.break_off_part();
    match progress.phases.cut() {
        Some(part) if cut_at.is_some() => DeadlineResult::Expired(ChoiceStep::Call(part)),
        _ => DeadlineResult::Expired(progress.phases.expire()),
    }
}

/// Waits until this piece is reserved, or, without a piece, whatever comes next. Where no more is reserved, the answer ends
/// with what was shown.
pub(super) async fn await_reserved(
    job: &ChoiceJob,
    progress: &mut ChoiceProgress,
    piece: Option<&Piece>,
) -> DeadlineResult<()> {
    if progress.reserved.is_none() {
        return DeadlineResult::Done(());
    }
    let more = piece.map_or(Tokens(1), |piece| progress.phases.estimate_tokens(piece));
    // A piece without text costs nothing.
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

/// Where this piece is the end that money alone sets to an answer, waits for what another call costs.
pub(super) async fn await_continuation(job: &ChoiceJob, progress: &mut ChoiceProgress, piece: &Piece) {
    let Some(sender) = &progress.continuations else { return };
    let Some(need) = progress.phases.continuation_need(piece) else { return };
    let granted = tokio::time::timeout_at(job.deadline, sender.request(need)).await;
    progress.phases.apply_grant(granted.unwrap_or(Err(SolutionStopReason::Deadline)));
}
