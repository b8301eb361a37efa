//! What was decided about a request, as far as only its end needs it.

use std::sync::Arc;

use crate::catalog::{Demand, Stakes};
use crate::gateway::feedback::QuestionFingerprint;
use crate::ledger::LimitStatus;
use crate::units::{Money, Timestamp};

use super::observed_plan::ObservedPlan;

/// What a decision rests on. `admit` leaves it for `finish`.
#[derive(Debug)]
pub(in crate::gateway) struct DecisionContext {
    /// When it was decided.
    pub(in crate::gateway) at: Timestamp,
    /// By whose rules, in a word.
    pub(in crate::gateway) policy: Arc<str>,
    /// What the prior predicted, before anything learned online.
    pub(in crate::gateway) prior: Demand,
    /// What success, time and money count for.
    pub(in crate::gateway) stakes: Stakes,
    /// The question, to be known again.
    pub(in crate::gateway) question: Option<QuestionFingerprint>,
    /// What would have been decided, where that is only watched.
    pub(in crate::gateway) observed: Option<ObservedPlan>,
    /// The limits whose pace it is held to.
    pub(in crate::gateway) paced: Vec<LimitStatus>,
    /// What it was expected to cost.
    pub(in crate::gateway) expected: Money,
}
