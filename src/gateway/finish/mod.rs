//! The end of a request that comes from `run`: it is settled, recorded, reported to its caller, and learned from.

pub(super) mod ended_word;
mod fingerprint;
mod learn;
mod metrics;
mod model_checks;
mod record;
mod report;
mod settle;

use tokio::time::Instant;

use crate::execute::EventSender;
use stint_types::units::Money;

use super::request::refusal_labels::limit_label;
use super::request::{DecisionContext, RequestContext, RequestReservation, needs};
use super::run::{AttemptResult, RequestOutcome};
use super::{RequestRefusal, RequestStage, RequestUpdate, feedback};

/// Settles a request and reports its end.
pub(super) async fn finish(
    context: &RequestContext,
    decision: &DecisionContext,
    mut outcome: RequestOutcome<'_>,
    reservation: RequestReservation,
    updates: &EventSender<RequestUpdate>,
) {
    if !reservation.is_dispatched() {
        let refusal = match outcome.result {
            AttemptResult::Failed(failure) => Some(needs::failed(&context.request, failure)),
            AttemptResult::HungUp | AttemptResult::Finished(_) | AttemptResult::Sampled(_) => None,
        };
        return abort(context, decision, reservation, refusal, updates).await;
    }
    context.reached(RequestStage::Settling);
    let (began, dispatched_in) = (Instant::now(), reservation.dispatched_in());
    let settlement = settle::settle(context, &mut outcome, reservation, !updates.is_closed()).await;
    let record = learn::learn(context, decision, &outcome, &settlement);
    metrics::overhead(context, context.decided_in + dispatched_in + began.elapsed());
    let progress = std::mem::take(&mut outcome.progress);
    let Some(report) = report::report(context, outcome, &settlement) else { return };
    let _ = updates.send(report).await;
    context.parts().learning.record_signals(&record, feedback::of_form(&context.request, &progress));
}

/// Ends a request that sent nothing upstream: its whole reservation is released. `refusal` is `None` if the caller has
/// left.
pub(super) async fn abort(
    context: &RequestContext,
    decision: &DecisionContext,
    reservation: RequestReservation,
    refusal: Option<RequestRefusal>,
    updates: &EventSender<RequestUpdate>,
) {
    reservation.void();
    learn::record_pace(context, decision, Money::ZERO);
    let Some(refusal) = refusal else {
        return metrics::request(context, "none", ended_word::of_unheard(&context.parts().tasks));
    };
    metrics::request(context, "none", "refused");
    context.reached(RequestStage::Refused(&limit_label(&refusal)));
    let _ = updates.send(RequestUpdate::Failed(refusal)).await;
}
