//! What budgets on one model's terms are expected to reach and to take, and how long that is.

use stint_types::catalog::{EnforcementClass, ModelConditions, TruncatedMoments};
use stint_types::units::Tokens;

use super::terms::{DollarPrices, ModelTerms};

/// What is set aside for a thought keeps others from that money for a while, and counts for this share of it.
const HELD_SHARE: f64 = 0.01;

/// How fast a model is taken to be under a deadline before it was measured. A cautious guess: 0.8 s until it begins, 5,000 tokens
/// of prompt a second, 40 written.
const UNMEASURED: ModelConditions =
    ModelConditions { queue: 0.8, queue_least: 0.8, prefill: 0.000_2, token: 0.025, healthy: true };

/// What a pair of budgets is expected to reach and to take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expectation {
    /// The chance of a right answer.
    pub success: f64,
    /// For all choices, in dollars.
    pub dollars: f64,
    /// To the whole answer; choices run side by side.
    pub seconds: f64,
    /// The same by a guess, for a model that was never measured: for people, since it decides nothing.
    pub seconds_guess: Option<f64>,
}

/// What a cut costs beyond the thought: in tokens read and written again.
struct CutCost {
    read: f64,
    written: f64,
}

impl ModelTerms<'_> {
    /// What becomes of thoughts under several budgets.
    pub(super) fn truncated_at_each<const N: usize>(&self, budgets: &[Tokens; N]) -> [TruncatedMoments; N] {
        self.demand.thinking.truncated_at_each(&budgets.map(Tokens::as_f64), self.mean)
    }

    /// What budgets of `t` and `s` are expected to reach and to take, given what becomes of thoughts under `t`. With F the
    /// distribution of the thought's length, each choice reads `prompt + c·what a cut reads again` and writes
    /// `E[min(L, t)] + E[S] + c·what a cut writes`, where c, the share of thoughts that is cut, is mostly `1 − F(t)`. Cost is
    /// that at list prices, time that at the measured speeds after the queue. What the provider has in its cache is read at the
    /// price for that, and in no time: so a switch to another model is charged the cache that it loses.
    pub(super) fn expectation(&self, t: Tokens, s: Tokens, moments: &TruncatedMoments) -> Expectation {
        let solution = self.demand.solution.min(s).as_f64();
        let cut = self.cut_cost(t, solution);
        let share = self.cut_share(t + s, moments);
        let (prompt, cached) = (self.demand.prompt_expected().as_f64(), self.cached.as_f64());
        let read = prompt + share * cut.read;
        let written = moments.within + solution + share * cut.written;
        let DollarPrices { call, input, output, saved } = self.dollars;
        // Of a text that goes on, any part is what was asked for.
        let whole = if self.is_raw() { 1.0 } else { self.demand.answer_fits(s) };
        let seconds = |pace: ModelConditions| {
            let ModelConditions { queue, prefill, token, .. } = pace;
            queue + prefill * (read - cached) + token * written
        };
        Expectation {
            success: rounded(whole * self.demand.success_truncated(t, moments).get()),
            dollars: f64::from(self.choices) * (call + input * read - saved * cached + output * written),
            seconds: seconds(self.conditions),
            seconds_guess: if self.is_measured() { None } else { Some(seconds(UNMEASURED)) },
        }
    }

    /// What it counts for to set a thought of `t` aside: a small part of what it would cost.
    pub(super) fn held_dollars(&self, t: Tokens) -> f64 {
        HELD_SHARE * f64::from(self.choices) * self.dollars.output * t.as_f64()
    }

    /// What the prompt and a usual answer cost at list prices: by which models are called dearer.
    pub(super) fn list_dollars(&self) -> f64 {
        self.dollars.input * self.demand.prompt_expected().as_f64()
            + self.dollars.output * self.demand.solution.as_f64()
    }

    /// The time that budgets of `t` and `s` take when they are used up, hand-off included.
    pub(super) fn seconds_at_most(&self, t: Tokens, s: Tokens) -> f64 {
        self.seconds_to_first_token()
            + self.seconds_per_thought() * t.as_f64()
            + self.safe_pace().token * (self.overhead(t) + s).as_f64()
    }

    /// True if it was ever seen how fast the model writes.
    pub(super) fn is_measured(&self) -> bool {
        self.conditions.token > 0.0
    }

    /// How much sooner it would begin if all before it gave up their thoughts.
    pub(super) fn seconds_behind_thoughts(&self) -> f64 {
        (self.conditions.queue - self.conditions.queue_least).max(0.0)
    }

    /// How fast it is taken to be where that must not be too fast.
    fn safe_pace(&self) -> ModelConditions {
        if self.is_measured() { self.conditions } else { UNMEASURED }
    }

    /// Queue and prefill; twice the prefill where a cut reads the prompt again.
    fn seconds_to_first_token(&self) -> f64 {
        let reads = if self.reads_again() { 2.0 } else { 1.0 };
        let pace = self.safe_pace();
        pace.queue + reads * pace.prefill * self.demand.prompt_expected().as_f64()
    }

    /// For a token of thought: writing it, and reading it again after a cut.
    pub(super) fn seconds_per_thought(&self) -> f64 {
        let pace = self.safe_pace();
        pace.token + if self.reads_again() { pace.prefill } else { 0.0 }
    }

    fn reads_again(&self) -> bool {
        self.thinks() && self.class.is_resumed()
    }

    /// How many thoughts are cut. A word of effort makes a thought as long as it is, so only what fills the limit of thought and
    /// answer together is asked for again.
    fn cut_share(&self, together: Tokens, moments: &TruncatedMoments) -> f64 {
        match self.class {
            _ if !self.thinks() => 0.0,
            EnforcementClass::Effort => 1.0 - self.demand.thinking.cdf(together.as_f64()),
            _ => 1.0 - moments.finished,
        }
    }

    fn cut_cost(&self, t: Tokens, solution: f64) -> CutCost {
        let (prompt, overhead) = (self.demand.prompt_expected().as_f64(), self.overhead(t).as_f64());
        match self.class {
            EnforcementClass::Continue | EnforcementClass::Turn if t > Tokens::ZERO => {
                CutCost { read: prompt + t.as_f64() + overhead, written: overhead }
            }
            EnforcementClass::Native if t > Tokens::ZERO => CutCost { read: 0.0, written: overhead },
            EnforcementClass::Inline => CutCost { read: 0.0, written: overhead },
            EnforcementClass::Continue | EnforcementClass::Native => {
                CutCost { read: self.closing_overhead().as_f64(), written: 0.0 }
            }
            EnforcementClass::Turn => CutCost { read: 0.0, written: 0.0 },
            EnforcementClass::Effort if t == Tokens::ZERO => CutCost { read: 0.0, written: 0.0 },
            EnforcementClass::Effort => CutCost { read: prompt, written: solution },
        }
    }
}

/// Success to a ten-thousandth: finer differences are noise, and should not buy tokens.
pub(super) fn rounded(success: f64) -> f64 {
    Tokens::round(success * 1e4).as_f64() / 1e4
}
