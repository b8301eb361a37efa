//! Every way to serve a request, priced, as plain numbers: an offer in full is only made of the few that are taken.

use crate::catalog::{Capability, LimitedBy, Model, Service, Vote, VoteForecast, VoteOdds};
use crate::units::{Chance, Tokens};

use super::answer_limit::{AnswerLimit, MONEY_PART};
use super::bounds::{self, TokenBounds};
use super::budgets::ThinkingBudgets;
use super::explain::{BudgetReason, BudgetReasons};
use super::spend_caps::SpendCaps;
use super::terms::{Expectation, ModelTerms, rounded};
use super::{PlanRefusal, PlanRequest};

/// To so many models a cascade may lead: those of most value by themselves.
const ESCALATION_TARGETS_MAX: usize = 3;
/// First steps of a cascade are answered so often at most.
const CASCADE_SAMPLES_MAX: u32 = 3;

/// One model that can serve.
#[derive(Debug, Clone, Copy)]
pub(super) struct EligibleModel<'a> {
    pub terms: ModelTerms<'a>,
    pub bounds: TokenBounds<'a>,
    pub budgets: ThinkingBudgets<'a>,
    pub caps: SpendCaps<'a>,
}

/// One way to serve, priced.
#[derive(Debug, Clone, Copy)]
pub(super) struct PricedCandidate {
    /// Which of the models that can serve.
    pub model_index: usize,
    pub thinking: Tokens,
    /// How far its answer may go.
    pub answer: AnswerLimit,
    /// How many answers at most.
    pub samples: u32,
    /// Which candidate a cascade goes on with.
    pub escalation: Option<usize>,
    pub success: f64,
    pub dollars: f64,
    pub seconds: f64,
    /// λ·cost + ν·time, in dollars.
    pub weighted_cost: f64,
}

/// Models and candidates; those of one model stand together, but for votes and cascades, which come last.
#[derive(Debug)]
pub(super) struct CandidatePool<'a> {
    pub models: Vec<EligibleModel<'a>>,
    pub candidates: Vec<PricedCandidate>,
}

impl<'a> EligibleModel<'a> {
    fn of(ask: &PlanRequest<'a>, model: &'a Model) -> Result<EligibleModel<'a>, PlanRefusal> {
        let terms = ModelTerms::of(ask, model)?;
        let bounds = TokenBounds::of(ask, &terms)?;
        let purse = SpendCaps::all(ask, &model.name);
        let budgets = ThinkingBudgets::of(ask, &terms, &bounds, &purse)?;
        Ok(EligibleModel { terms, bounds, budgets, caps: purse })
    }

    /// One answer under a thinking budget, where that can be reserved.
    pub(super) fn price_single(
        &self,
        ask: &PlanRequest,
        serving: usize,
        thinking: Tokens,
    ) -> Option<PricedCandidate> {
        let answer = AnswerLimit::of(&self.terms, &self.bounds, &self.caps, thinking);
        if !self.fits_caps(thinking, answer.opening, 1) {
            return None;
        }
        let Expectation { success, dollars, seconds } = self.terms.expectation(thinking, answer.most);
        let burden = weighted_cost(ask, dollars, seconds);
        let (samples, second) = (1, None);
        Some(PricedCandidate {
            model_index: serving,
            thinking,
            answer,
            samples,
            escalation: second,
            success,
            dollars,
            seconds,
            weighted_cost: burden,
        })
    }

    /// What keeps an answer from going as far as caller, operator and model allow.
    pub(super) fn answer_reason(&self, thinking: Tokens, answer: &AnswerLimit) -> Option<BudgetReason<'a>> {
        if answer.by != LimitedBy::Money {
            return None;
        }
        let longer = self.terms.worst_case(thinking, answer.most + Tokens(1));
        self.caps.reason(longer).or_else(|| self.caps.part(MONEY_PART).reason(longer))
    }

    /// A vote among answers like one, where that can be reserved and is there in time.
    pub(super) fn price_vote(
        &self,
        ask: &PlanRequest,
        one: &PricedCandidate,
        odds: &VoteOdds,
    ) -> Option<PricedCandidate> {
        let samples = odds.samples;
        let VoteForecast { right, asked, .. } = odds.forecast(one.success());
        let slowest = one.seconds * f64::from(samples - samples / 2);
        if !self.fits_caps(one.thinking, one.answer.opening, samples) || !meets_deadline(ask, slowest) {
            return None;
        }
        // A majority's worth of answers is made side by side, the others one after another.
        let (dollars, seconds) = (one.dollars * asked, one.seconds * (asked - f64::from(samples / 2)));
        let burden = weighted_cost(ask, dollars, seconds);
        Some(PricedCandidate {
            samples,
            success: rounded(right),
            dollars,
            seconds,
            weighted_cost: burden,
            ..*one
        })
    }

    fn fits_caps(&self, thinking: Tokens, opening: Tokens, samples: u32) -> bool {
        self.caps.is_unlimited() || self.caps.fits(self.terms.worst_case(thinking, opening) * samples)
    }
}

impl PricedCandidate {
    pub(super) fn success(&self) -> Chance {
        Chance::new(self.success)
    }

    /// worth·success − λ·cost − ν·time.
    pub(super) fn value(&self, worth: f64) -> f64 {
        worth * self.success - self.weighted_cost
    }
}

impl<'a> CandidatePool<'a> {
    /// All ways; `refused` is told of each model that can do nothing, and why.
    pub(super) fn of(ask: &PlanRequest<'a>, refused: impl FnMut(&Model, PlanRefusal)) -> CandidatePool<'a> {
        let servings = eligible_models(ask, refused);
        let most = servings.iter().map(|serving: &EligibleModel| serving.budgets.as_slice().len()).sum();
        let mut candidates = Vec::with_capacity(most);
        for (at, serving) in servings.iter().enumerate() {
            candidates
                .extend(serving.budgets.as_slice().iter().filter_map(|&t| serving.price_single(ask, at, t)));
        }
        let mut board = CandidatePool { models: servings, candidates };
        if let Some(vote) = vote(ask) {
            board.add_votes(ask, vote);
        }
        board
    }

    /// What limits a candidate's thinking.
    pub(super) fn reason(&self, candidate: &PricedCandidate) -> BudgetReason<'a> {
        let ceiling = self.models[candidate.model_index].budgets.ceiling;
        if candidate.thinking == ceiling.most { ceiling.by } else { BudgetReason::Value }
    }

    /// What limits the budgets of one that was taken.
    pub(super) fn reasons(
        &self,
        (candidate, thinking): &(PricedCandidate, BudgetReason<'a>),
    ) -> BudgetReasons<'a> {
        let answer = self.models[candidate.model_index].answer_reason(candidate.thinking, &candidate.answer);
        BudgetReasons { thinking: *thinking, answer }
    }

    /// A model's longest thought, where the caller left it open.
    pub(super) fn longest(&self, ask: &PlanRequest, serving: usize) -> Option<PricedCandidate> {
        let own = &self.models[serving];
        let most = own.budgets.ceiling.most;
        (!own.budgets.fixed && most > Tokens::ZERO).then(|| own.price_single(ask, serving, most)).flatten()
    }

    fn add_votes(&mut self, ask: &PlanRequest, vote: &Vote) {
        let singles = self.candidates.len();
        for at in 0..singles {
            let one = self.candidates[at];
            for odds in vote.odds().iter().filter(|odds| is_odd_vote(odds)) {
                let voted = self.models[one.model_index].price_vote(ask, &one, odds);
                self.candidates.extend(voted.filter(|voted| voted.success > one.success));
            }
        }
        if ask.route.cascade {
            self.add_cascades(ask, vote, singles);
        }
    }

    fn add_cascades(&mut self, ask: &PlanRequest, vote: &Vote, singles: usize) {
        let seconds = self.escalation_targets(ask, singles);
        for at in 0..singles {
            for second in seconds.into_iter().flatten() {
                for odds in vote.odds().iter().take_while(|odds| odds.samples <= CASCADE_SAMPLES_MAX) {
                    self.candidates.extend(self.price_cascade(ask, vote, odds, (at, second)));
                }
            }
        }
    }

    /// What a cascade may go on with: the best offers of the models whose best are worth most.
    fn escalation_targets(
        &self,
        ask: &PlanRequest,
        singles: usize,
    ) -> [Option<usize>; ESCALATION_TARGETS_MAX] {
        let worth = worth(ask);
        let mut seconds = [None; ESCALATION_TARGETS_MAX];
        for place in 0..ESCALATION_TARGETS_MAX {
            let taken = |serving: usize| {
                seconds.iter().flatten().any(|&at: &usize| self.candidates[at].model_index == serving)
            };
            let left = (0..singles).filter(|&at| !taken(self.candidates[at].model_index));
            let best = left
                .max_by(|&a, &b| self.candidates[a].value(worth).total_cmp(&self.candidates[b].value(worth)));
            seconds[place] = best;
        }
        seconds
    }

    /// Answers of one model and, where more than half of them do not agree, one of another. What the second reaches
    /// then is less than it does otherwise, since what one model is torn about is hard for others too: of different
    /// models half of [`Scatter::alike`](crate::catalog::Scatter) is assumed, as the correlation between agreement and a
    /// right second answer.
    fn price_cascade(
        &self,
        ask: &PlanRequest,
        vote: &Vote,
        odds: &VoteOdds,
        (first, second): (usize, usize),
    ) -> Option<PricedCandidate> {
        let (one, next) = (self.candidates[first], self.candidates[second]);
        let serving = &self.models[one.model_index];
        if one.model_index == next.model_index || next.success <= one.success || next.dollars <= one.dollars {
            return None;
        }
        let samples = odds.samples;
        let VoteForecast { agreed, agreed_right, asked_agreeing: asked, .. } = odds.forecast(one.success());
        let on = 1.0 - agreed;
        let alike = vote.assumptions.correlation.get() / 2.0;
        let lost = alike * (agreed / on.max(1e-9) * next.success * (1.0 - next.success)).sqrt();
        let success = rounded(agreed_right + on * (next.success - lost).max(0.0));
        let slowest = one.seconds * f64::from(samples - samples / 2) + next.seconds;
        let last = &self.models[next.model_index];
        let worst = serving.terms.worst_case(one.thinking, one.answer.opening) * samples
            + last.terms.worst_case(next.thinking, next.answer.opening);
        let fits = serving.caps.fits(worst) && last.caps.fits(worst) && meets_deadline(ask, slowest);
        if !fits || success <= one.success {
            return None;
        }
        let dollars = one.dollars * asked + on * next.dollars;
        let seconds = one.seconds * (asked - f64::from(samples / 2)) + on * next.seconds;
        let burden = weighted_cost(ask, dollars, seconds);
        Some(PricedCandidate {
            samples,
            escalation: Some(second),
            success,
            dollars,
            seconds,
            weighted_cost: burden,
            ..one
        })
    }
}

/// What a right answer is worth to the route now, in dollars.
pub(super) fn worth(ask: &PlanRequest) -> f64 {
    ask.route.worth.as_dollars() * ask.market.worth_factor.max(0.0)
}

/// An odd number: a vote of one more gains nothing but a tie.
pub(super) fn is_odd_vote(odds: &VoteOdds) -> bool {
    odds.samples % 2 == 1
}

fn weighted_cost(ask: &PlanRequest, dollars: f64, seconds: f64) -> f64 {
    ask.market.shadow_price.max(0.0) * dollars + ask.route.cost_per_second.as_dollars() * seconds
}

fn meets_deadline(ask: &PlanRequest, seconds: f64) -> bool {
    bounds::deadline(ask).is_none_or(|left| seconds <= left.as_secs_f64())
}

/// The models that can serve; `refused` is told of each that cannot, and why.
pub(super) fn eligible_models<'a>(
    ask: &PlanRequest<'a>,
    mut refused: impl FnMut(&Model, PlanRefusal),
) -> Vec<EligibleModel<'a>> {
    let mut servings = Vec::with_capacity(ask.models.len());
    for model in ask.models {
        match EligibleModel::of(ask, model) {
            Ok(serving) => servings.push(serving),
            Err(refusal) => refused(model, refusal),
        }
    }
    if servings.iter().any(|serving: &EligibleModel| serving.bounds.fits) {
        servings.retain(|serving| serving.bounds.fits);
    }
    keep_sticky_model(ask, &mut servings);
    servings
}

/// An episode that nothing went wrong with leaves its model for no dearer one.
fn keep_sticky_model(ask: &PlanRequest, servings: &mut Vec<EligibleModel>) {
    let Some(sticky) = ask.sticky.filter(|sticky| !sticky.has_problems) else { return };
    let own = servings.iter().find(|serving| *serving.terms.model.name == *sticky.model);
    let Some(most) = own.map(|own| own.terms.list_dollars()) else { return };
    servings
        .retain(|serving| *serving.terms.model.name == *sticky.model || serving.terms.list_dollars() <= most);
}

/// The route's vote, where answers of this request can be compared and one of them be chosen before it is sent: not
/// among several choices, of which the caller wants each; not where tools may be called.
fn vote<'a>(ask: &PlanRequest<'a>) -> Option<&'a Vote> {
    let vote = ask.route.vote.as_ref()?;
    let held = !ask.streams || ask.route.buffers_streams;
    let calls = ask.needs.capabilities.contains(&Capability::Tools);
    (held && ask.choices <= 1 && !calls && ask.needs.service == Service::Chat).then_some(vote)
}
