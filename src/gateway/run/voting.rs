//! Several answers to one choice: what a route and a request allow of it, how they are made, and what the one that is
//! delivered is charged for.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::backend::fleet::Permit;
use crate::catalog::{AnswerComparison, ChoiceUsage, Offer, Route, Vote};
use crate::chat::{CompletionKind, Request};
use crate::execute::{ChoiceError, ChoiceProgress, Meter, VotingConfig, sample_choices};

use super::growth::ReservationGrowth;
use super::judge::question;
use super::running_request::RunningRequest;
use crate::gateway::RequestUpdate;
use crate::gateway::finish::AttemptResult;
use crate::gateway::request::reservation::RequestReservation;

/// The route as it may serve the request, and why there is no vote where it has one: answers that are always the same, or
/// that are not compared, are made once.
pub(in crate::gateway) fn allowed(route: Route, request: &Request) -> (Route, Option<&'static str>) {
    if route.vote.is_none() {
        return (route, None);
    }
    let sampling = &request.sampling;
    let calls =
        !request.tools.is_empty() && request.tool_choice.as_ref().is_none_or(|choice| choice != "none");
    let why = if sampling.temperature == Some(0.0) || sampling.top_k == Some(1) {
        "no vote, since every answer would be the same at this temperature"
    } else if request.kind == CompletionKind::Text || calls {
        "no vote, since such answers are not compared"
    } else {
        return (route, None);
    };
    (Route { vote: None, cascade: false, ..route }, Some(why))
}

/// How many calls of an offer run side by side.
pub(in crate::gateway) fn calls(route: &Route, offer: &Offer, choices: u32) -> u32 {
    let at_once = route.vote.as_ref().map_or(1, |vote| vote.policy.concurrency);
    choices * offer.samples.clamp(1, at_once.max(1))
}

/// What a verifier may say: a score, or nothing.
pub(in crate::gateway) const VERDICTS: [&str; 2] = ["scored", "none"];

impl RunningRequest {
    /// True where the answers of an offer are looked at before one is delivered.
    pub(in crate::gateway) fn votes(&self, offer: &Offer) -> bool {
        offer.samples > 1 || offer.escalate.is_some()
    }

    /// Makes every choice of an offer as often as it takes to decide about it. Nothing is shown of it yet.
    pub(in crate::gateway) async fn vote(
        &self,
        seat: &Permit,
        offer: &Offer,
        (progress, growth): (&mut Vec<ChoiceProgress>, &mut Option<ReservationGrowth>),
        books: &mut RequestReservation,
        reports: &mpsc::Sender<RequestUpdate>,
    ) -> AttemptResult {
        let vote = self.vote_of(offer);
        let jobs = self.jobs(seat, offer, &self.with_vote_temperature(&vote));
        let meters: Vec<Meter> = progress.iter().map(|sample| sample.meter.clone()).collect();
        let (question, metrics) = (question(&self.request), &self.parts.metrics.votes);
        let verifier = self.verifiers.of_route(&self.policy.name);
        let panel = VotingConfig {
            compare: &vote.compare,
            majority: offer.escalate.is_some(),
            concurrency: vote.policy.concurrency,
            worth: self.policy.worth.as_dollars() * self.market.worth_factor,
            price: &|spent| {
                self.market.shadow_price.max(0.0) * self.cost(offer, std::slice::from_ref(spent)).as_dollars()
            },
            cost_per_second: self.policy.cost_per_second.as_dollars(),
            stop_probability: vote.policy.stop_probability,
            verifier: verifier.map(|verifier| (verifier, question.as_str())),
            on_verdict: &|verdict, seconds| {
                metrics.verifier_seconds.observe(seconds);
                let outcome = VERDICTS[usize::from(verdict.is_err())];
                metrics.verdicts.with_label_values(&[outcome]).inc();
                if let Err(error) = verdict {
                    tracing::warn!(request = %self.id, error = error as &dyn std::error::Error, "no verdict");
                }
            },
        };
        let landing = tokio::select! {
            biased;
            () = reports.closed() => AttemptResult::HungUp,
            ended = sample_choices(&panel, &jobs, progress, offer.samples) => match ended {
                Ok(sampled) => AttemptResult::Sampled(sampled),
                Err(ChoiceError::Disconnected) => AttemptResult::HungUp,
                Err(ChoiceError::Failed(failure)) => AttemptResult::Failed(failure),
            },
            never = self.meter_and_grow(offer, &meters, growth.as_mut(), books) => match never {},
        };
        for sample in progress.iter_mut() {
            (sample.first, sample.first_answer) = (None, None);
        }
        if !matches!(landing, AttemptResult::Sampled(_)) {
            progress.retain(|sample| !sample.spent().calls.is_empty());
        }
        landing
    }

    /// The route's vote; one that compares whole answers where a cascade has none.
    pub(in crate::gateway) fn vote_of(&self, offer: &Offer) -> Vote {
        self.policy
            .vote
            .clone()
            .unwrap_or_else(|| Vote::with_default_assumptions(offer.samples, AnswerComparison::Exact))
    }

    /// The request with the vote's temperature, where the caller stated none.
    fn with_vote_temperature(&self, vote: &Vote) -> Arc<Request> {
        let Some(temperature) =
            vote.policy.temperature.filter(|_| self.request.sampling.temperature.is_none())
        else {
            return self.request.clone();
        };
        let mut request = Request::clone(&self.request);
        request.sampling.temperature = Some(temperature);
        Arc::new(request)
    }
}

/// What one choice took: the sample that is delivered, and all others beside it.
pub(in crate::gateway) fn sum_samples(samples: &[ChoiceProgress], delivered: u32) -> ChoiceUsage {
    let at = usize::try_from(delivered).unwrap_or(usize::MAX);
    let mut spent = samples.get(at).map(ChoiceProgress::spent).unwrap_or_default();
    for (_, other) in samples.iter().enumerate().filter(|(other, _)| *other != at) {
        spent.absorb(&other.spent());
    }
    spent
}
