//! A model that can serve a request, and the price of each way in which it alone would.

use stint_types::catalog::{LimitedBy, Model, TruncatedMoments, VoteForecast, VoteOdds};
use stint_types::units::{Chance, Tokens};

use super::answer_limit::{AnswerLimit, MONEY_PART};
use super::bounds::{self, TokenBounds};
use super::budgets::ThinkingBudgets;
use super::expectation::{Expectation, rounded};
use super::reason::BudgetReason;
use super::refusal::PlanRefusal;
use super::request::PlanRequest;
use super::spend_caps::SpendCaps;
use super::terms::ModelTerms;

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
    /// The candidate that a cascade escalates to.
    pub escalation: Option<usize>,
    pub success: f64,
    pub dollars: f64,
    pub seconds: f64,
    /// What setting its thought aside counts for, in dollars; of one answer.
    pub held: f64,
    /// λ·cost + ν·time, in dollars, what is held included.
    pub weighted_cost: f64,
}

impl<'a> EligibleModel<'a> {
    fn of(request: &PlanRequest<'a>, model: &'a Model) -> Result<EligibleModel<'a>, PlanRefusal> {
        let terms = ModelTerms::of(request, model)?;
        EligibleModel::on(request, terms).or_else(|refusal| match (&refusal, terms.under_one_limit()) {
            (
                PlanRefusal::BudgetTooSmall { member, .. } | PlanRefusal::AlwaysThinks { member, .. },
                Some(terms),
            ) if *member == request.budget.members.total => EligibleModel::on(request, terms),
            _ => Err(refusal),
        })
    }

    fn on(request: &PlanRequest<'a>, terms: ModelTerms<'a>) -> Result<EligibleModel<'a>, PlanRefusal> {
        let model = terms.model;
        let bounds = TokenBounds::of(request, &terms)?;
        let caps = SpendCaps::all(request, &model.name);
        let budgets = ThinkingBudgets::of(request, &terms, &bounds, &caps)?;
        Ok(EligibleModel { terms, bounds, budgets, caps })
    }

    /// One answer under a thinking budget, where that can be reserved.
    pub(super) fn price_single(
        &self,
        request: &PlanRequest,
        model_index: usize,
        thinking: Tokens,
    ) -> Option<PricedCandidate> {
        let [moments] = self.terms.truncated_at_each(&[thinking]);
        self.price_truncated(request, model_index, thinking, &moments)
    }

    /// One answer under each of the model's thinking budgets that can be reserved.
    pub(super) fn price_budgets(
        &self,
        request: &PlanRequest,
        model_index: usize,
        mut priced: impl FnMut(PricedCandidate),
    ) {
        let budgets = self.budgets.as_slice();
        if let [one] = *budgets {
            return self.price_single(request, model_index, one).into_iter().for_each(priced);
        }
        let moments = self.terms.truncated_at_each(self.budgets.padded());
        for (&thinking, moments) in budgets.iter().zip(&moments) {
            if let Some(candidate) = self.price_truncated(request, model_index, thinking, moments) {
                priced(candidate);
            }
        }
    }

    #[inline(always)]
    fn price_truncated(
        &self,
        request: &PlanRequest,
        model_index: usize,
        thinking: Tokens,
        moments: &TruncatedMoments,
    ) -> Option<PricedCandidate> {
        let answer = AnswerLimit::of(&self.terms, &self.bounds, &self.caps, thinking);
        if !self.fits_caps(thinking, answer.opening, 1) {
            return None;
        }
        let Expectation { success, dollars, seconds, .. } =
            self.terms.expectation(thinking, answer.most, moments);
        let held = self.terms.held_dollars(thinking);
        let weighted_cost = weighted_cost(request, dollars + held, seconds);
        Some(PricedCandidate {
            model_index,
            thinking,
            answer,
            samples: 1,
            escalation: None,
            success,
            dollars,
            seconds,
            held,
            weighted_cost,
        })
    }

    /// How long a candidate's answers are guessed to take, where the model was never measured.
    pub(super) fn seconds_guess(&self, candidate: &PricedCandidate) -> Option<f64> {
        if self.terms.is_measured() {
            return None;
        }
        let [moments] = self.terms.truncated_at_each(&[candidate.thinking]);
        let one = self.terms.expectation(candidate.thinking, candidate.answer.most, &moments);
        // A majority's worth of answers is made side by side, the others one after another.
        one.seconds_guess.map(|one| one * f64::from(candidate.samples - candidate.samples / 2))
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
        request: &PlanRequest,
        one: &PricedCandidate,
        odds: &VoteOdds,
    ) -> Option<PricedCandidate> {
        let samples = odds.samples;
        let VoteForecast { right, asked, .. } = odds.forecast(one.success());
        let slowest = one.seconds * f64::from(samples - samples / 2);
        if !self.fits_caps(one.thinking, one.answer.opening, samples) || !meets_deadline(request, slowest) {
            return None;
        }
        // A majority's worth of answers is made side by side, the others one after another.
        let (dollars, seconds) = (one.dollars * asked, one.seconds * (asked - f64::from(samples / 2)));
        let held = one.held * f64::from(samples);
        let weighted_cost = weighted_cost(request, dollars + held, seconds);
        Some(PricedCandidate { samples, success: rounded(right), dollars, seconds, weighted_cost, ..*one })
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

/// λ·cost + ν·time, in dollars; what is held counts into the cost.
pub(super) fn weighted_cost(request: &PlanRequest, dollars: f64, seconds: f64) -> f64 {
    request.market.shadow_price.max(0.0) * dollars + request.route.cost_per_second.as_dollars() * seconds
}

pub(super) fn meets_deadline(request: &PlanRequest, seconds: f64) -> bool {
    bounds::deadline(request).is_none_or(|left| seconds <= left.as_secs_f64())
}

/// The models that can serve; calls `refused` with each that cannot, and why.
pub(super) fn eligible_models<'a>(
    request: &PlanRequest<'a>,
    mut refused: impl FnMut(&Model, PlanRefusal),
) -> Vec<EligibleModel<'a>> {
    let mut models = Vec::with_capacity(request.models.len());
    for model in request.models {
        match EligibleModel::of(request, model) {
            Ok(eligible) => models.push(eligible),
            Err(refusal) => refused(model, refusal),
        }
    }
    if models.iter().any(|eligible: &EligibleModel| eligible.bounds.fits) {
        models.retain(|eligible| eligible.bounds.fits);
    }
    if models.iter().any(|eligible| eligible.bounds.in_time) {
        models.retain(|eligible| eligible.bounds.in_time);
    }
    let obeys =
        |eligible: &EligibleModel| !matches!(eligible.budgets.ceiling.by, BudgetReason::LeastEffort(_));
    if models.iter().any(obeys) {
        models.retain(obeys);
    }
    keep_sticky_model(request, &mut models);
    models
}

/// An episode that nothing went wrong with leaves its model for no dearer one.
fn keep_sticky_model(request: &PlanRequest, models: &mut Vec<EligibleModel>) {
    let Some(sticky) = request.sticky.filter(|sticky| !sticky.has_problems) else { return };
    let own = models.iter().find(|eligible| *eligible.terms.model.name == *sticky.model);
    let Some(most) = own.map(|own| own.terms.list_dollars()) else { return };
    models.retain(|eligible| {
        *eligible.terms.model.name == *sticky.model || eligible.terms.list_dollars() <= most
    });
}
