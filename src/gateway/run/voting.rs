//! Makes several answers to one choice, and computes what the delivered one is charged.

use std::sync::Arc;

use crate::execute::{ChoiceError, ChoiceProgress, Meter, VotingConfig, sample_choices};
use crate::gateway::request::{RequestContext, RequestReservation};
use stint_backend::fleet::Permit;
use stint_types::catalog::{AnswerComparison, ChoiceUsage, Offer, Route, Vote};
use stint_types::chat::Request;

use super::attempt_result::AttemptResult;
use super::choices::jobs;
use super::growth::meter_and_grow;
use super::judge::question;
use super::offer_attempt::OfferAttempt;
use super::running_request::RunningRequest;

/// How many calls of an offer run side by side.
pub(super) fn calls(route: &Route, offer: &Offer, choices: u32) -> u32 {
    let at_once = route.vote.as_ref().map_or(1, |vote| vote.policy.concurrency);
    choices * offer.samples.clamp(1, at_once.max(1))
}

/// What a verifier may say: a score, or nothing.
pub(crate) const VERDICTS: [&str; 2] = ["scored", "none"];

/// True if the answers of an offer are looked at before one is delivered.
pub(super) fn votes(offer: &Offer) -> bool {
    offer.samples > 1 || offer.escalate.is_some()
}

/// Makes every choice of an offer as often as it takes to decide about it. Nothing is shown of it yet.
pub(super) async fn vote(
    running: RunningRequest<'_>,
    permit: &Permit,
    offer: &Offer,
    attempt: &mut OfferAttempt,
    reservation: &mut RequestReservation,
) -> AttemptResult {
    let OfferAttempt { progress, growth } = attempt;
    let vote = vote_of(running.context, offer);
    let jobs = jobs(running.context, permit, offer, &with_vote_temperature(running.context, &vote));
    let meters: Vec<Meter> = progress.iter().map(|sample| sample.meter.clone()).collect();
    let (question, metrics) = (question(&running.context.request), &running.context.parts().metrics.votes);
    let verifier = running.context.state.verifiers.of_route(&running.context.policy.name);
    let voting = VotingConfig {
        compare: &vote.compare,
        majority: offer.escalate.is_some(),
        concurrency: vote.policy.concurrency,
        worth: running.context.policy.worth.as_dollars() * running.context.market.worth_factor,
        price: &|spent| {
            running.context.market.shadow_price.max(0.0)
                * running.context.cost(offer, std::slice::from_ref(spent)).as_dollars()
        },
        cost_per_second: running.context.policy.cost_per_second.as_dollars(),
        stop_probability: vote.policy.stop_probability,
        verifier: verifier.map(|verifier| (verifier, question.as_str())),
        on_verdict: &|verdict, seconds| {
            metrics.verifier_seconds.observe(seconds);
            let outcome = VERDICTS[usize::from(verdict.is_err())];
            metrics.verdicts.with_label_values(&[outcome]).inc();
            if let Err(error) = verdict {
                tracing::warn!(request = %running.context.id, error = error as &dyn std::error::Error, "no verdict");
            }
        },
    };
    let result = tokio::select! {
        biased;
        () = running.updates.closed() => AttemptResult::HungUp,
        ended = sample_choices(&voting, &jobs, progress, offer.samples) => match ended {
            Ok(sampled) => AttemptResult::Sampled(sampled),
            Err(ChoiceError::Disconnected) => AttemptResult::HungUp,
            Err(ChoiceError::Failed(failure)) => AttemptResult::Failed(failure),
        },
        never = meter_and_grow(running.context, offer, &meters, growth.as_mut(), reservation) => match never {},
    };
    for sample in progress.iter_mut() {
        (sample.first, sample.first_answer) = (None, None);
    }
    if !matches!(result, AttemptResult::Sampled(_)) {
        progress.retain(|sample| !sample.spent().calls.is_empty());
    }
    result
}

/// The route's vote; one that compares whole answers where a cascade has none.
pub(super) fn vote_of(context: &RequestContext, offer: &Offer) -> Vote {
    context
        .policy
        .vote
        .clone()
        .unwrap_or_else(|| Vote::with_default_assumptions(offer.samples, AnswerComparison::Exact))
}

/// The request with the vote's temperature, where the caller stated none.
fn with_vote_temperature(context: &RequestContext, vote: &Vote) -> Arc<Request> {
    let Some(temperature) =
        vote.policy.temperature.filter(|_| context.request.sampling.temperature.is_none())
    else {
        return context.request.clone();
    };
    let mut request = Request::clone(&context.request);
    request.sampling.temperature = Some(temperature);
    Arc::new(request)
}

/// What one choice took: the sample that is delivered, and all others beside it.
pub(super) fn sum_samples(samples: &[ChoiceProgress], delivered: u32) -> ChoiceUsage {
    let at = usize::try_from(delivered).unwrap_or(usize::MAX);
    let mut spent = samples.get(at).map(ChoiceProgress::spent).unwrap_or_default();
    for (_, other) in samples.iter().enumerate().filter(|(other, _)| *other != at) {
        spent.absorb(&other.spent());
    }
    spent
}
