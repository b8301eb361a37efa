//! `DecisionContext`: what was decided about a request, as far as only its end needs it.

use std::sync::Arc;

use crate::gateway::feedback::QuestionFingerprint;
use crate::gateway::state::TrialUse;
use stint_ledger::LimitStatus;
use stint_types::catalog::{Demand, Recipe, Stakes};
use stint_types::units::{Money, Timestamp};

use super::observed_plan::ObservedPlan;

/// What a decision rests on. `admit` leaves it for `finish`.
#[derive(Debug)]
pub(crate) struct DecisionContext {
    /// When it was decided.
    pub(crate) at: Timestamp,
    /// By whose rules, in a word.
    pub(crate) policy: Arc<str>,
    /// What the prior predicted, before anything learned online.
    pub(crate) prior: Demand,
    /// What success, time and money count for.
    pub(crate) stakes: Stakes,
    /// The question, to be known again.
    pub(crate) question: Option<QuestionFingerprint>,
    /// What would have been decided, where that is only watched.
    pub(crate) observed: Option<ObservedPlan>,
    /// The limits whose pace it is held to.
    pub(crate) paced: Vec<LimitStatus>,
    /// What it was expected to cost.
    pub(crate) expected: Money,
    /// Whether it tries a model that looks worse.
    pub(crate) trial: TrialUse,
}

/// The policy of conversations that try a route's new model, as the decision log has it.
pub(crate) fn canary_policy(route: &str) -> String {
    format!("{route}:{}", Recipe::Canary.as_str())
}
