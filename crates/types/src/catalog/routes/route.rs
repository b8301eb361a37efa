//! A route: the operator's own name for a choice among models, and what success, money and time are worth to it.

use std::sync::Arc;

use crate::units::{Chance, Money};

use super::opinion::{DifficultyProbe, VerifierSettings};
use super::recipe::{Canary, Recipe};
use super::rollout::{RolloutMode, TrafficSplit};
use super::turns::TurnRule;
use super::vote::Vote;

/// An operator's own name for a choice among models.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// The name that callers use in place of a model's.
    pub name: Arc<str>,
    /// The models it may choose; all where empty.
    pub models: Vec<Arc<str>>,
    /// What the settings below stand for together, where the operator named that.
    pub recipe: Option<Recipe>,
    /// The model that is tried on a share of its conversations.
    pub canary: Option<Canary>,
    /// The success that the cheapest offer must reach at preference 0.
    pub success_floor: Chance,
    /// What a right answer is worth.
    pub worth: Money,
    /// Whether nobody said so, so that one to a question that takes much work is worth more.
    pub worth_by_task: bool,
    /// What a second of waiting costs.
    pub cost_per_second: Money,
    /// Whether what it decides holds.
    pub enforce: RolloutMode,
    /// The parts of its traffic that go by other routes' rules.
    pub traffic_splits: Vec<TrafficSplit>,
    /// The share of right answers that pacing steers for, where the operator set that rather than a worth.
    pub success_target: Option<Chance>,
    /// The share of requests that are spread evenly over its models, so that what looks worse goes on being tried; the
    /// others follow draws from what is believed about each. 0 explores nothing.
    pub explore: Chance,
    /// Whether now and then a model is tried that looks worse, within bounds, where nothing is drawn by `explore`.
    pub trials: Option<TrialBounds>,
    /// The share of requests whose thinking is held only by what the caller and the allowance allow, so that the
    /// lengths that are learned from do not sink with our own cuts.
    pub uncapped: Chance,
    /// Several answers to one choice, where they can be compared.
    pub vote: Option<Vote>,
    /// Whether a dearer model may be asked where a cheaper one's answers do not agree; only beside `vote`.
    pub cascade: bool,
    /// Whether votes and cascades may be made for a caller who streams, whose stream then starts with the answer chosen.
    pub buffers_streams: bool,
    /// Who checks the answers of a vote or a cascade, in place of counting them.
    pub verifier: Option<VerifierSettings>,
    /// The model that is asked to choose among the answers of a vote.
    pub judge: Option<Arc<str>>,
    /// The model whose drafts are bought where the text does not tell how hard a question is.
    pub probe: Option<DifficultyProbe>,
    /// Whether agents see what is left of their budgets, where the gateway shows it at all.
    pub tracker: bool,
    /// How many turns a run of an agent may take.
    pub turns: TurnRule,
}

/// How many requests may try a model that looks worse, and what they may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialBounds {
    /// The largest share of requests.
    pub requests: Chance,
    /// The largest share of what is spent.
    pub spend: Chance,
}

impl TrialBounds {
    /// Those of `auto` where nobody wrote that route: little enough that nobody misses it, and enough for a replay to conclude
    /// from some thousands of requests.
    pub fn usual() -> TrialBounds {
        TrialBounds { requests: Chance::new(0.02), spend: Chance::new(0.01) }
    }
}

impl Route {
    /// A route to every model; a right answer is worth 30 cents or more, and waiting for it costs 1.80 dollars an hour.
    pub fn with_defaults(name: &str) -> Route {
        Route {
            name: name.into(),
            models: Vec::new(),
            recipe: None,
            canary: None,
            success_floor: Chance::new(0.8),
            worth: Money(300_000_000),
            worth_by_task: true,
            cost_per_second: Money(500_000),
            enforce: RolloutMode::On,
            traffic_splits: Vec::new(),
            success_target: None,
            explore: Chance::new(0.0),
            trials: None,
            uncapped: Chance::new(0.0),
            vote: None,
            cascade: false,
            buffers_streams: false,
            verifier: None,
            judge: None,
            probe: None,
            tracker: true,
            turns: TurnRule::Free,
        }
    }
}
