//! One outcome, with what was predicted of it.

use std::sync::Arc;

use stint_types::catalog::{ModelDemand, RequestTraits, SolutionStopReason, TaskClass, ThinkingStopReason};
use stint_types::units::{Chance, Tokens};

/// What came of one choice of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct OutcomeSample {
    /// Who did it.
    pub model: Arc<str>,
    /// The kind of work.
    pub class: TaskClass,
    /// What the prior predicted of that model, before any correction.
    pub predicted: ModelDemand,
    /// What the request looked like.
    pub request: RequestTraits,
    /// The thinking budget that was held; zero where there was to be no thought.
    pub budget: Tokens,
    /// How long it thought.
    pub thinking: Tokens,
    /// How long it usually thinks at the word of effort that was sent, in what it thinks at its usual one: 1 where none was sent.
    pub effort: f64,
    /// How its thought ended: a cut one only says that it would have been longer.
    pub ended: ThinkingStopReason,
    /// How long its answer was; zero where it did not begin.
    pub solution: Tokens,
    /// How its answer ended: one at its limit only says that it would have been longer.
    pub solution_ended: SolutionStopReason,
    /// How good it was, where somebody or something judged it.
    pub success: Option<Chance>,
    /// What the judgement counts, as a share of a sure one: above zero.
    pub weight: f64,
    /// What it counts in the alarm that the model has changed; less where the same source has judged much already.
    pub alarm: f64,
}

impl OutcomeSample {
    /// How long the thought would have been at the model's usual effort, in tokens; 0 where nothing tells.
    pub(super) fn usual_thinking(&self) -> f64 {
        if self.effort > 0.0 { self.thinking.as_f64() / self.effort } else { 0.0 }
    }
}
