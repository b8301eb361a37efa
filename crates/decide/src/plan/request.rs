//! What is asked of a plan: a demand, the models, what they cost now, what may be spent, and what the caller stated.

use stint_types::catalog::{Allowance, Demand, Market, Model, Needs, Route, TrialBounds};
use stint_types::chat::Budget;
use stint_types::units::{Chance, Tokens};

/// What share of answers a first reservation covers where the operator says nothing of it.
pub const OPENING_QUANTILE: f64 = 0.99;

/// All that a plan depends on.
#[derive(Debug, Clone, Copy)]
pub struct PlanRequest<'a> {
    /// How hard the request is.
    pub demand: &'a Demand,
    /// The models that the route may choose; of equals the first is taken.
    pub models: &'a [&'a Model],
    /// What success and time are worth.
    pub route: &'a Route,
    /// What things cost now.
    pub market: &'a Market,
    /// What the caller may still spend.
    pub allowance: &'a Allowance,
    /// What the caller stated.
    pub budget: &'a Budget,
    /// What the model must be able to do.
    pub needs: &'a Needs,
    /// How many answers are wanted.
    pub choices: u32,
    /// True if the caller is sent the answer as it is written, which one that is still to be chosen cannot be.
    pub streams: bool,
    /// The model that the episode is with, if it is with one.
    pub sticky: Option<StickyModel<'a>>,
    /// Where a model is to be drawn rather than taken by its mean.
    pub explore: Option<Exploration>,
    /// What share of answers the first reservation of one is to cover, where money is limited.
    pub opening_quantile: Chance,
}

/// The model that the last turns of an episode were served by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StickyModel<'a> {
    /// Its name.
    pub model: &'a str,
    /// How much of the prompt its provider still has in its cache: any other model reads that without a cache, at its
    /// full price.
    pub cached: Tokens,
    /// Whether something went wrong with it (errors, stalls, failed checks): without that no dearer model is offered.
    pub has_problems: bool,
}

/// How a model is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exploration {
    /// What the draw is made from: of equal seeds, equal draws.
    pub seed: u64,
    /// By which rule.
    pub rule: DrawRule,
}

/// By which rule a model is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DrawRule {
    /// By what is believed about each, doubt included; this share of requests is spread evenly over all models.
    Beliefs(Chance),
    /// The best is taken, but for few trials of the others.
    Trials(TrialShare),
}

/// How much may be tried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialShare {
    /// With these chances: no more requests than that, and no more of what a request is expected to cost.
    pub bounds: TrialBounds,
    /// What a trial may cost at most, in dollars.
    pub dollars_max: f64,
}
