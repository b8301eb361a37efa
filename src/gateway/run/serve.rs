//! Takes a request through its offers: attempt after attempt, then the choice among answers, then the outcome.

use tokio::time::{Instant, timeout_at};

use crate::gateway::request::{RequestContext, RequestRefusal, RequestReservation};
use crate::gateway::{RequestStage, RequestUpdate};

use super::attempt_result::AttemptResult;
use super::attempts::{Attempts, acquire, count_failure, has_written, next_attempt};
use super::cascade::conclude;
use super::hedge::attempt;
use super::offer_attempt::OfferAttempt;
use super::outcome::RequestOutcome;
use super::retry_mute_choices::retry_mute_choices;
use super::running_request::RunningRequest;
use super::trial::start_trials;

/// Runs a request to its end.
///
/// # Errors
/// Where its dispatch cannot be made durable: then nothing was sent.
pub(crate) async fn serve<'r>(
    running: RunningRequest<'r>,
    reservation: &mut RequestReservation,
) -> Result<RequestOutcome<'r>, RequestRefusal> {
    let context = running.context;
    let mut attempts = Attempts::at(&context.plan);
    let mut acquired = acquire(running, &mut attempts).await;
    let mut is_begun = false;
    loop {
        context.answering.set(&attempts.offer.model);
        let mut current = OfferAttempt::new(context, attempts.offer);
        let result = match acquired {
            Ok(permit) => {
                context.reached(RequestStage::PlaceFound);
                let is_first = !std::mem::replace(&mut is_begun, true);
                record_beginning(context, is_first, reservation).await?;
                context.reached(RequestStage::Recorded);
                let (result, permit) =
                    attempt(running, permit, &mut attempts, &mut current, reservation).await;
                let (ended, error) = (result.as_str(), result.error());
                context.reached(RequestStage::AttemptEnded { ended, error });
                if let AttemptResult::Failed(failure) = &result {
                    count_failure(context, attempts.offer, &permit, failure);
                    start_trials(context, attempts.offer, failure);
                }
                result
            }
            Err(result) => {
                current.progress.clear();
                result
            }
        };
        match next_attempt(running, &mut attempts, &result, &current.progress, reservation).await {
            Some(next) => {
                if has_written(&current.progress) {
                    // A caller who leaves now is noticed by the next attempt.
                    let _ =
                        timeout_at(context.deadline, running.updates.send(RequestUpdate::Restarted)).await;
                }
                acquired = next;
            }
            None => {
                let outcome = conclude(running, attempts.offer, result, current.progress, reservation).await;
                return Ok(retry_mute_choices(running, outcome, reservation).await);
            }
        }
    }
}

/// Makes durable what must be before anything is sent: the dispatch, and before the first what a step adds to its prompt.
async fn record_beginning(
    context: &RequestContext,
    is_first: bool,
    reservation: &mut RequestReservation,
) -> Result<(), RequestRefusal> {
    let (ledger, ticket) = (&context.parts().ledger, context.ticket.as_ref());
    let step = context.step.as_ref().filter(|_| is_first);
    step.inspect(|step| step.record_beginning(&context.account, ledger.now()));
    let dispatched = reservation.record_dispatch(ledger, ticket, context.deadline).await;
    match (&dispatched, step) {
        (Ok(()), Some(step)) => {
            step.wait_for_beginning(context.deadline.saturating_duration_since(Instant::now())).await;
        }
        (Err(refusal), step) => {
            // The ledger has already logged that its database is gone.
            tracing::debug!(request = %context.id, error = refusal as &dyn std::error::Error, "not dispatched");
            // Its caller need not wait for that.
            step.inspect(|step| drop(step.begin_take_back(&context.account, ledger.now())));
        }
        (Ok(()), None) => {}
    }
    dispatched
}
