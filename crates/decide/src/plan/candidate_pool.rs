//! Every way to serve a request, priced, as plain numbers: an offer in full is only made of the few that are taken.

use stint_types::catalog::{Capability, Model, Service, Vote, VoteForecast, VoteOdds};
use stint_types::units::{Chance, Tokens};

use super::eligible_model::{EligibleModel, PricedCandidate, eligible_models, meets_deadline, weighted_cost};
use super::expectation::rounded;
use super::reason::{BudgetReason, BudgetReasons};
use super::refusal::PlanRefusal;
use super::request::PlanRequest;

/// To so many models a cascade may lead: those of most value by themselves.
const ESCALATION_TARGETS_MAX: usize = 3;

/// First steps of a cascade are answered so often at most where nobody verifies them.
const CASCADE_SAMPLES_MAX: u32 = 3;

/// How often a verifier is assumed to be right about an answer.
const VERIFIER_RIGHT: f64 = 0.9;

/// Models and candidates, in the order of their models; votes and cascades come last.
#[derive(Debug)]
pub(super) struct CandidatePool<'a> {
    pub models: Vec<EligibleModel<'a>>,
    pub candidates: Vec<PricedCandidate>,
}

impl<'a> CandidatePool<'a> {
    /// All ways; calls `refused` with each model that cannot serve, and why.
    pub(super) fn of(
        request: &PlanRequest<'a>,
        refused: impl FnMut(&Model, PlanRefusal),
    ) -> CandidatePool<'a> {
        let models = eligible_models(request, refused);
        let most = models.iter().map(|eligible: &EligibleModel| eligible.budgets.as_slice().len()).sum();
        let mut candidates = Vec::with_capacity(most);
        for (at, eligible) in models.iter().enumerate() {
            eligible.price_budgets(request, at, |candidate| candidates.push(candidate));
        }
        let mut pool = CandidatePool { models, candidates };
        if let Some(vote) = vote(request) {
            pool.add_votes(request, vote);
        }
        pool
    }

    /// What limits a candidate's thinking.
    pub(super) fn reason(&self, candidate: &PricedCandidate) -> BudgetReason<'a> {
        let ceiling = self.models[candidate.model_index].budgets.ceiling;
        if candidate.thinking == ceiling.most { ceiling.by } else { BudgetReason::Value }
    }

    /// What limits the budgets of one that was taken.
    pub(super) fn reasons(
        &self,
        candidate: &PricedCandidate,
        thinking: BudgetReason<'a>,
    ) -> BudgetReasons<'a> {
        let answer = self.models[candidate.model_index].answer_reason(candidate.thinking, &candidate.answer);
        BudgetReasons { thinking, answer }
    }

    /// A model's longest thought, where the caller left it open.
    pub(super) fn longest(&self, request: &PlanRequest, model_index: usize) -> Option<PricedCandidate> {
        let own = &self.models[model_index];
        let most = own.budgets.ceiling.most;
        (!own.budgets.fixed && most > Tokens::ZERO)
            .then(|| own.price_single(request, model_index, most))
            .flatten()
    }

    fn add_votes(&mut self, request: &PlanRequest, vote: &Vote) {
        let singles = self.candidates.len();
        for at in 0..singles {
            let one = self.candidates[at];
            for odds in vote.odds().iter().filter(|odds| is_odd_vote(odds)) {
                let voted = self.models[one.model_index].price_vote(request, &one, odds);
                self.candidates.extend(voted.filter(|voted| voted.success > one.success));
            }
        }
        if request.route.cascade {
            self.add_cascades(request, vote, singles);
        }
    }

    fn add_cascades(&mut self, request: &PlanRequest, vote: &Vote, singles: usize) {
        let seconds = self.escalation_targets(request, singles);
        for at in 0..singles {
            let one = self.candidates[at].success();
            for second in seconds.into_iter().flatten() {
                for step in first_steps(request, vote, one) {
                    self.candidates.extend(self.price_cascade(request, vote, step, (at, second)));
                }
            }
        }
    }

    /// What a cascade may go on with: the best offers of the models whose best are worth most.
    fn escalation_targets(
        &self,
        request: &PlanRequest,
        singles: usize,
    ) -> [Option<usize>; ESCALATION_TARGETS_MAX] {
        let worth = worth(request);
        let mut seconds = [None; ESCALATION_TARGETS_MAX];
        for place in 0..ESCALATION_TARGETS_MAX {
            let taken = |model_index: usize| {
                seconds.iter().flatten().any(|&at: &usize| self.candidates[at].model_index == model_index)
            };
            let left = (0..singles).filter(|&at| !taken(self.candidates[at].model_index));
            let best = left
                .max_by(|&a, &b| self.candidates[a].value(worth).total_cmp(&self.candidates[b].value(worth)));
            seconds[place] = best;
        }
        seconds
    }

    /// Answers of one model and, where more than half of them do not agree or the only one is not accepted, one of another. What
    /// the second reaches then is less than it does otherwise, since what one model is torn about is hard for others too: of
    /// different models half of [`VoteAssumptions::correlation`](stint_types::catalog::VoteAssumptions) is assumed, as the
    /// correlation between agreement and a right second answer.
    fn price_cascade(
        &self,
        request: &PlanRequest,
        vote: &Vote,
        FirstStep { samples, forecast }: FirstStep,
        (first, second): (usize, usize),
    ) -> Option<PricedCandidate> {
        let (one, next) = (self.candidates[first], self.candidates[second]);
        let eligible = &self.models[one.model_index];
        if one.model_index == next.model_index || next.success <= one.success || next.dollars <= one.dollars {
            return None;
        }
        let VoteForecast { agreed, agreed_right, asked_agreeing: asked, .. } = forecast;
        let on = 1.0 - agreed;
        let alike = vote.assumptions.correlation.get() / 2.0;
        let lost = alike * (agreed / on.max(1e-9) * next.success * (1.0 - next.success)).sqrt();
        let success = rounded(agreed_right + on * (next.success - lost).max(0.0));
        let slowest = one.seconds * f64::from(samples - samples / 2) + next.seconds;
        let last = &self.models[next.model_index];
        let worst = eligible.terms.worst_case(one.thinking, one.answer.opening) * samples
            + last.terms.worst_case(next.thinking, next.answer.opening);
        let fits = eligible.caps.fits(worst) && last.caps.fits(worst) && meets_deadline(request, slowest);
        if !fits || success <= one.success {
            return None;
        }
        let dollars = one.dollars * asked + on * next.dollars;
        let seconds = one.seconds * (asked - f64::from(samples / 2)) + on * next.seconds;
        let held = one.held * f64::from(samples) + next.held;
        let weighted_cost = weighted_cost(request, dollars + held, seconds);
        Some(PricedCandidate {
            samples,
            escalation: Some(second),
            success,
            dollars,
            seconds,
            weighted_cost,
            ..one
        })
    }
}

/// The first step of a cascade.
#[derive(Debug, Clone, Copy)]
struct FirstStep {
    samples: u32,
    /// What is expected of it; what is accepted counts as agreed.
    forecast: VoteForecast,
}

/// The first steps that a cascade may begin with, where one answer is right with that chance: one that is verified, else
/// several that may agree.
fn first_steps(request: &PlanRequest, vote: &Vote, one: Chance) -> impl Iterator<Item = FirstStep> {
    let is_verified = request.route.verifier.is_some();
    let alone = is_verified.then(|| FirstStep { samples: 1, forecast: verified(one) });
    let sizes =
        vote.odds().iter().take_while(move |odds| odds.samples <= CASCADE_SAMPLES_MAX && !is_verified);
    let several = sizes.map(move |odds| FirstStep { samples: odds.samples, forecast: odds.forecast(one) });
    alone.into_iter().chain(several)
}

/// What comes of one answer that a verifier looks at.
fn verified(one: Chance) -> VoteForecast {
    let agreed_right = one.get() * VERIFIER_RIGHT;
    let agreed = agreed_right + (1.0 - one.get()) * (1.0 - VERIFIER_RIGHT);
    VoteForecast { right: one.get(), asked: 1.0, agreed, agreed_right, asked_agreeing: 1.0 }
}

/// What a right answer is worth to the route now, in dollars.
pub(super) fn worth(request: &PlanRequest) -> f64 {
    request.route.worth.as_dollars() * request.market.worth_factor.max(0.0)
}

/// An odd number: a vote of one more gains nothing but a tie.
pub(super) fn is_odd_vote(odds: &VoteOdds) -> bool {
    odds.samples % 2 == 1
}

/// The route's vote, where answers of this request can be compared and one of them be chosen before it is sent: not
/// among several choices, of which the caller wants each; not where tools may be called.
fn vote<'a>(request: &PlanRequest<'a>) -> Option<&'a Vote> {
    let vote = request.route.vote.as_ref()?;
    let held = !request.streams || request.route.buffers_streams;
    let calls = request.needs.capabilities.contains(&Capability::Tools);
    (held && request.choices <= 1 && !calls && request.needs.service == Service::Chat).then_some(vote)
}
