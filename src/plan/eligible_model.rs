//! A model that can serve a request, and the price of each way in which it alone would.

use crate::catalog::{LimitedBy, Model, VoteForecast, VoteOdds};
use crate::units::{Chance, Tokens};

use super::answer_limit::{AnswerLimit, MONEY_PART};
use super::bounds::{self, TokenBounds};
use super::budgets::ThinkingBudgets;
use super::reason::BudgetReason;
use super::refusal::PlanRefusal;
use super::request::PlanRequest;
use super::spend_caps::SpendCaps;
use super::terms::{Expectation, ModelTerms, rounded};

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

/// λ·cost + ν·time, in dollars.
pub(super) fn weighted_cost(ask: &PlanRequest, dollars: f64, seconds: f64) -> f64 {
    ask.market.shadow_price.max(0.0) * dollars + ask.route.cost_per_second.as_dollars() * seconds
}

pub(super) fn meets_deadline(ask: &PlanRequest, seconds: f64) -> bool {
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
