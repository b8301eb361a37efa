//! What was measured of one model on its operator's own tasks: how often it is right, by how far it may think.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::catalog::{LogNormal, MeasuredLengths, ModelDemand};
use crate::units::{Chance, Tokens};

/// How a model differs on the measured tasks from what was predicted of it: its levels, its lengths, and how its success
/// rises with a thought. Which requests are harder than others the prediction goes on telling.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredCurve {
    /// What the logit of success after a thought is more than predicted.
    pub done_shift: f64,
    /// The same without a thought.
    pub blind_shift: f64,
    /// How unsure the success after a thought is: the standard deviation.
    pub spread: f64,
    /// What the logarithm of a thought's length is more than predicted.
    pub thought_shift: f64,
    /// The standard deviation of that logarithm about the prediction.
    pub sigma: f64,
    /// How many times as long as predicted its answers are.
    pub solution_factor: f64,
    /// How late success rises with a cut thought's share (see [`ModelDemand::rise`]).
    pub bend: f64,
    /// How early it has risen.
    pub saturation: f64,
}

/// What was measured under one thinking budget.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurvePoint {
    /// The thinking budget.
    pub budget: Tokens,
    /// How many answers were judged.
    pub answers: u32,
    /// How many of them were right.
    pub right: u32,
    /// The ends of the 95 % interval of the share that is right.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// How many tokens were thought on average.
    pub thought: f64,
    /// The share of thoughts that were cut.
    pub cut: f64,
    /// What an answer cost on average, in dollars.
    pub cost_usd: f64,
}

/// A measurement, as a file keeps it: `stint curve` writes it, and `curve` of a model names it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurveRecord {
    /// Whose it is.
    pub model: Arc<str>,
    /// When it was measured.
    pub measured: String,
    /// On how many tasks.
    pub tasks: u32,
    /// What follows from it.
    pub curve: MeasuredCurve,
    /// What was measured, by rising budgets.
    #[serde(rename = "point")]
    pub points: Vec<CurvePoint>,
}

impl MeasuredCurve {
    /// Corrects a prediction by it.
    pub fn apply(&self, demand: &mut ModelDemand) {
        demand.done = shifted(demand.done, self.done_shift);
        demand.blind = shifted(demand.blind, self.blind_shift);
        demand.spread = self.spread;
        let mu = (demand.thinking.mu + self.thought_shift).max(0.0);
        demand.thinking = LogNormal { mu, sigma: self.sigma };
        demand.solution = Tokens::round((demand.solution.as_f64() * self.solution_factor).max(1.0));
        (demand.bend, demand.saturation) = (self.bend, self.saturation);
        demand.measured = MeasuredLengths { thinking: true, solution: true };
    }

    /// True if all its numbers can be meant.
    pub fn is_sound(&self) -> bool {
        let shifts = [self.done_shift, self.blind_shift, self.thought_shift];
        shifts.iter().all(|shift| (-20.0..=20.0).contains(shift))
            && (0.0..=0.5).contains(&self.spread)
            && (0.01..=5.0).contains(&self.sigma)
            && (1e-3..=1e3).contains(&self.solution_factor)
            && (0.1..=20.0).contains(&self.bend)
            && (0.05..=50.0).contains(&self.saturation)
    }
}

/// A chance whose logit is so much more; what is impossible or certain stays so.
fn shifted(chance: Chance, shift: f64) -> Chance {
    let odds = chance.get() * shift.exp();
    Chance::new(odds / (odds + 1.0 - chance.get()))
}
