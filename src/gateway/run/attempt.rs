//! One attempt at an offer on one target.

use crate::execute::{ARRIVED_MAX, EventSender};
use crate::gateway::RequestUpdate;
use crate::gateway::request::RequestReservation;
use stint_backend::fleet::Permit;
use stint_types::catalog::Offer;

use super::attempt_result::AttemptResult;
use super::choices::{jobs, meters, run_choices};
use super::growth::meter_and_grow;
use super::offer_attempt::OfferAttempt;
use super::running_request::RunningRequest;
use super::voting::{vote, votes};

/// Runs every choice of an offer at once on one target, until all have ended, one has failed, or the caller is gone.
pub(super) async fn run_offer(
    running: RunningRequest<'_>,
    permit: &Permit,
    offer: &Offer,
    attempt: &mut OfferAttempt,
    reservation: &mut RequestReservation,
) -> AttemptResult {
    let RunningRequest { context, updates } = running;
    if votes(offer) {
        return vote(running, permit, offer, attempt, reservation).await;
    }
    let OfferAttempt { progress, growth } = attempt;
    let jobs = jobs(context, permit, offer, &context.request);
    let meters = meters(progress);
    tokio::select! {
        biased;
        result = run_choices(&jobs, progress, updates) => result,
        () = disconnected(updates) => AttemptResult::HungUp,
        never = meter_and_grow(context, offer, &meters, growth.as_mut(), reservation) => match never {},
    }
}

/// Until the caller is gone, and the choices have had the time to see that themselves.
async fn disconnected(updates: &EventSender<RequestUpdate>) {
    updates.closed().await;
    tokio::time::sleep(2 * ARRIVED_MAX).await;
}
