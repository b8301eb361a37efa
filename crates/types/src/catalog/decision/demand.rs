//! `Demand`: how hard a request looks.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::units::{Chance, Difficulty, Tokens};

use super::length::{LogNormal, TruncatedMoments};
use super::request_traits::RequestTraits;

/// What kind of work a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskClass {
    /// Numbers and proofs.
    Math,
    /// Programs.
    Code,
    /// Finding something in a given text.
    Extraction,
    /// One option of several.
    MultipleChoice,
    /// A run with tools.
    Agentic,
    /// Everything else.
    Chat,
}

impl TaskClass {
    /// The word in metrics and `/v1/plan`.
    pub fn as_str(self) -> &'static str {
        match self {
            TaskClass::Math => "math",
            TaskClass::Code => "code",
            TaskClass::Extraction => "extraction",
            TaskClass::MultipleChoice => "multiple_choice",
            TaskClass::Agentic => "agentic",
            TaskClass::Chat => "chat",
        }
    }
}

/// What one model is expected to need and to reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelDemand {
    /// How long it would think.
    pub thinking: LogNormal,
    /// How long its answer would be, on average.
    pub solution: Tokens,
    /// An upper bound of the prompt's tokens for this model.
    pub prompt: Tokens,
    /// The chance of a right answer after a finished thought.
    pub done: Chance,
    /// The chance of a right answer without any thought.
    pub blind: Chance,
    /// How late a cut thought's chance begins to rise from `blind` towards `done` (see [`ModelDemand::rise`]).
    pub bend: f64,
    /// How early it has risen (see [`ModelDemand::rise`]). Older records have none: their curve was `share^bend`.
    #[serde(default = "unsaturated")]
    pub saturation: f64,
    /// How unsure `done` is: the standard deviation of what is believed about it; 0 where nothing is explored.
    pub spread: f64,
    /// The fewest tokens that the prompt can have; `prompt` itself where it was counted with the model's tokenizer.
    #[serde(default)]
    pub prompt_least: Tokens,
    /// About how many tokens the prompt has, by what the model's upstream reported of others; zero where nobody said so.
    #[serde(default)]
    pub prompt_usual: Tokens,
    /// Which of these lengths were measured on this model.
    #[serde(default)]
    pub measured: MeasuredLengths,
    /// How far its longest thoughts and answers lie beyond what is predicted of them.
    #[serde(default, skip_serializing_if = "LengthTails::is_usual")]
    pub tails: LengthTails,
}

/// What outcomes say of predicted 99th percentiles: 1 where they hold.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LengthTails {
    /// How many times as far from the median as predicted one thought in a hundred is, in ln L.
    pub thought: f64,
    /// How many times as long as predicted one answer in a hundred is.
    pub answer: f64,
}

impl Default for LengthTails {
    fn default() -> LengthTails {
        LengthTails { thought: 1.0, answer: 1.0 }
    }
}

impl LengthTails {
    /// True where nothing is corrected.
    fn is_usual(&self) -> bool {
        *self == LengthTails::default()
    }
}

/// Which lengths of a model rest on what it wrote, rather than on what other models did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredLengths {
    /// Those of its thoughts.
    pub thinking: bool,
    /// Those of its answers.
    pub solution: bool,
}

impl ModelDemand {
    /// How much of what a whole thought gains is left where that `share` of it was thought: 1 − (1 − share^bend)^saturation
    /// (the distribution function of Kumaraswamy, *A generalized probability density function for double-bounded random
    /// processes*, 1980). With a bend of 1 the first tokens gain `saturation` times their share, and never more.
    pub fn rise(&self, share: f64) -> f64 {
        let share = share.clamp(f64::MIN_POSITIVE, 1.0);
        // The usual model has no bend, which saves a logarithm.
        let bent = if is_same(self.bend, 1.0) { share } else { share.powf(self.bend) };
        // Chances are told to a ten-thousandth: `ln_1p` and `exp_m1` would be finer, and take twice as long.
        1.0 - (self.saturation * (1.0 - bent).ln()).exp()
    }

    /// How fast [`rise`](ModelDemand::rise) changes with ln saturation.
    pub fn rise_by_saturation(&self, share: f64) -> f64 {
        let left = (-share.clamp(0.0, 1.0 - 1e-9).powf(self.bend)).ln_1p();
        -self.saturation * left * (self.saturation * left).exp()
    }

    /// `p_cut`, the chance of a right answer after a thought that was cut at `t`: `blind + (done − blind)·
    /// rise(r)`, where r = t / E[L | L > t] is how much of the thought there was, as far as one can tell.
    pub fn success_if_cut(&self, t: f64) -> f64 {
        self.success_if_cut_of(t, self.thinking.mean_beyond(t))
    }

    fn success_if_cut_of(&self, t: f64, whole: f64) -> f64 {
        self.blind.get() + (self.done.get() - self.blind.get()) * self.rise(t / whole.max(1.0))
    }

    /// The chance of a right answer with a thinking budget of `t`: F(t)·done + (1 − F(t))·cut(t).
    pub fn success(&self, t: Tokens) -> Chance {
        if t == Tokens::ZERO {
            return self.blind;
        }
        self.success_truncated(t, &self.thinking.truncated_at(t.as_f64(), self.thinking.mean()))
    }

    /// The same, where what becomes of the thoughts is known already.
    pub fn success_truncated(&self, t: Tokens, held: &TruncatedMoments) -> Chance {
        if t == Tokens::ZERO {
            return self.blind;
        }
        let cut = self.success_if_cut_of(t.as_f64(), held.beyond);
        Chance::new(held.finished * self.done.get() + (1.0 - held.finished) * cut)
    }

    /// What an answer usually takes, with room: twice its expected length, and a little.
    pub fn solution_usual(&self) -> Tokens {
        self.solution_trusted() * 2 + SOLUTION_SLACK
    }

    /// The expected length of an answer where room is made for it: one that was never measured is not trusted to be short.
    fn solution_trusted(&self) -> Tokens {
        if self.measured.solution { self.solution } else { self.solution.max(UNMEASURED_LEAST) }
    }

    /// The length that so large a share of its answers stays within: wide where answers of this model were never measured.
    /// What outcomes say of the 99th percentile counts the less, the nearer the share is to a half.
    pub fn solution_within(&self, share: Chance) -> Tokens {
        let spread = if self.measured.solution { &MEASURED_QUANTILES } else { &PRIOR_QUANTILES };
        let corrected = tail_correction(self.tails.answer, share.get());
        let within = self.solution_trusted().as_f64() * quantile_multiple(spread, share.get());
        Tokens::round(within * corrected) + SOLUTION_SLACK
    }

    /// The chance that a limit leaves its answer whole, as far as its length can be foretold. Callers who state a limit know
    /// what they ask for, so one about as long as the expected answer is taken for enough.
    pub fn answer_fits(&self, limit: Tokens) -> f64 {
        let ample = (limit + LIMIT_SLACK) * LIMIT_TRUST;
        if ample >= self.solution * LIMIT_AMPLE {
            return 1.0;
        }
        1.0 / (1.0 + (self.solution.as_f64() / ample.as_f64()).powf(LIMIT_STEEP))
    }

    /// The length that one thought in ten passes.
    pub fn thinking_p90(&self) -> f64 {
        self.thinking.quantile(Z90 * (1.0 + (self.tails.thought - 1.0) * Z90 / Z99))
    }

    /// The length that one thought in a hundred passes.
    pub fn thinking_p99(&self) -> f64 {
        self.thinking.quantile(Z99 * self.tails.thought)
    }

    /// How many tokens the prompt is expected to have: for choices and forecasts, where the bound is for what is set aside.
    pub fn prompt_expected(&self) -> Tokens {
        if self.prompt_usual == Tokens::ZERO {
            self.prompt
        } else {
            self.prompt_usual.clamp(self.prompt_least.min(self.prompt), self.prompt)
        }
    }

    /// What the prompt hardly exceeds, where only its bytes are known: hardly any text has less than two bytes to a token.
    pub fn prompt_likely(&self) -> Tokens {
        Tokens(self.prompt.0 / 2).max(self.prompt_least)
    }
}

/// The saturation of a curve that is a power of the share.
fn unsaturated() -> f64 {
    1.0
}

/// The percentile that outcomes correct.
const TAIL_SHARE: f64 = 0.99;
/// The standard normal's 90th percentile.
const Z90: f64 = 1.281_551_565_544_600_4;
/// The standard normal's 99th percentile.
const Z99: f64 = 2.326_347_874_040_840_8;

/// What an answer may take beyond any multiple of its expected length: of one that is a number or two, the words around it.
const SOLUTION_SLACK: Tokens = Tokens(16);

/// A limit on the answer counts for so many tokens more, and for so many times as much then: judgements.
const LIMIT_SLACK: Tokens = Tokens(32);
const LIMIT_TRUST: u64 = 3;
/// From so many times the expected answer on it cuts nothing.
const LIMIT_AMPLE: u64 = 8;
/// How fast the chance falls with the limit: a logistic curve of its logarithm as wide as answers are spread about what is
/// foretold of them.
const LIMIT_STEEP: f64 = 2.4;

/// No less is expected of an answer of which only its question is known, when room is made for it.
const UNMEASURED_LEAST: Tokens = Tokens(250);

/// A quantile of lengths, and how many times the expected length it is.
type Quantile = (f64, f64);

/// The spread of answers whose mean length is known for the model and the kind of work. Fitted on 241,000 answers of 2,171
/// prompts to about 400 models (public evaluations: `AlpacaEval`, `WildBench`, four Japanese sets, riddles, programs), each divided
/// by the mean of its model within its set. The sets' 99th percentiles are 1.9 to 5.5 times the mean, those of programs 5.1.
const MEASURED_QUANTILES: [Quantile; 5] = [(0.5, 0.9), (0.9, 1.9), (0.95, 2.5), (0.99, 5.0), (0.999, 12.0)];

/// The same where nothing is known but what the prior expects of any model, about 400 tokens: the same answers, three in ten of
/// them programs, by the engineering set alone whose models are of 2025 and later. The older sets are of shorter answers than
/// today's.
const PRIOR_QUANTILES: [Quantile; 5] = [(0.5, 1.3), (0.9, 9.0), (0.95, 14.0), (0.99, 30.0), (0.999, 65.0)];

/// By how much an answer is longer that so large a share stays within, where the 99th percentile is `answer` times as long.
fn tail_correction(answer: f64, share: f64) -> f64 {
    if is_same(answer, 1.0) {
        return 1.0;
    }
    let out = (2.0 * (1.0 - share)).ln() / (2.0 * (1.0 - TAIL_SHARE)).ln();
    answer.powf(out.clamp(0.0, 1.0))
}

/// True of what was written as the same number.
fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() < f64::EPSILON
}

/// Between two quantiles, straight in the logarithms of the multiple and of the share beyond; the last one's beyond that.
fn quantile_multiple(spread: &[Quantile], share: f64) -> f64 {
    let above = spread.iter().position(|(quantile, _)| share <= *quantile);
    match above {
        None => spread.last().map_or(1.0, |(_, times)| *times),
        Some(0) => spread[0].1,
        // The usual share is one of the table, which saves several logarithms and a power.
        Some(at) if is_same(share, spread[at].0) => spread[at].1,
        Some(at) => {
            let ((low, less), (high, more)) = (spread[at - 1], spread[at]);
            let beyond = |quantile: f64| (1.0 - quantile).ln();
            let along = (beyond(share) - beyond(low)) / (beyond(high) - beyond(low));
            less * (more / less).powf(along)
        }
    }
}

/// The estimate for one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// What kind of work it is.
    pub class: TaskClass,
    /// A summary for people and metrics.
    pub difficulty: Difficulty,
    /// How sure the estimate is, 0 (a guess) to 1.
    pub confidence: Chance,
    /// What it looks like, whichever models could serve it.
    pub request: RequestTraits,
    /// What each model would need.
    pub models: BTreeMap<Arc<str>, ModelDemand>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(measured: bool, solution: u64) -> ModelDemand {
        ModelDemand {
            thinking: LogNormal { mu: 5.0, sigma: 0.5 },
            solution: Tokens(solution),
            prompt: Tokens(1),
            done: Chance::new(0.5),
            blind: Chance::new(0.5),
            bend: 1.0,
            saturation: 1.0,
            spread: 0.0,
            prompt_least: Tokens(1),
            prompt_usual: Tokens::ZERO,
            measured: MeasuredLengths { thinking: measured, solution: measured },
            tails: LengthTails::default(),
        }
    }

    fn check(measured: bool, solution: u64, share: f64, expected: u64) {
        let demand = demand(measured, solution);
        assert_eq!(demand.solution_within(Chance::new(share)), Tokens(expected), "{share} of {solution}");
    }

    #[test]
    fn one_answer_in_a_hundred_is_longer_than_several_times_the_expected_length() {
        check(true, 400, 0.99, 2016);
        check(false, 400, 0.99, 12_016);
        check(true, 3, 0.99, 31);
    }

    #[test]
    fn what_outcomes_say_of_the_longest_moves_the_ends_and_leaves_the_middle() {
        let usual = demand(true, 400);
        let far = ModelDemand { tails: LengthTails { thought: 1.5, answer: 2.0 }, ..usual.clone() };
        assert_eq!(far.solution_within(Chance::new(0.99)), Tokens(4016));
        assert_eq!(far.solution_within(Chance::new(0.5)), usual.solution_within(Chance::new(0.5)));
        let beyond = |length: f64, of: &ModelDemand| (length / of.thinking.median()).ln();
        assert!((beyond(far.thinking_p99(), &far) - 1.5 * beyond(usual.thinking_p99(), &usual)).abs() < 1e-9);
        assert!(far.thinking_p90() > usual.thinking_p90() && far.thinking_p90() < far.thinking_p99());
        let text = serde_json::to_string(&usual).unwrap();
        assert!(!text.contains("tails") && serde_json::from_str::<ModelDemand>(&text).unwrap() == usual);
    }

    fn check_rise(bend: f64, saturation: f64, share: f64, expected: f64) {
        let demand = ModelDemand { bend, saturation, ..demand(true, 10) };
        assert!((demand.rise(share) - expected).abs() < 1e-3, "{} of {share}", demand.rise(share));
        let step = 1e-5;
        let more = ModelDemand { saturation: saturation * (1.0 + step), ..demand.clone() };
        let slope = (more.rise(share) - demand.rise(share)) / step;
        assert!((demand.rise_by_saturation(share) - slope).abs() < 1e-3, "{slope} at {share}");
    }

    #[test]
    fn a_fifth_of_a_thought_keeps_more_than_half_of_its_gain_and_a_thousandth_of_it_hardly_anything() {
        check_rise(1.0, 4.0, 0.2, 0.59);
        check_rise(1.0, 4.0, 0.001, 0.004);
        check_rise(1.0, 4.0, 0.0, 0.0);
        check_rise(1.0, 4.0, 1.0, 1.0);
    }

    #[test]
    fn a_curve_without_saturation_is_the_power_of_the_share_that_it_was_in_older_records() {
        check_rise(2.25, 1.0, 0.5, 0.5_f64.powf(2.25));
        check_rise(0.45, 1.0, 0.2, 0.2_f64.powf(0.45));
        let mut record = serde_json::to_value(demand(true, 10)).unwrap();
        record.as_object_mut().unwrap().remove("saturation");
        assert_eq!(serde_json::from_value::<ModelDemand>(record).unwrap(), demand(true, 10));
    }

    #[test]
    fn a_higher_quantile_never_is_a_shorter_answer() {
        check(true, 1000, 0.1, 916);
        check(true, 1000, 0.9, 1916);
        check(true, 1000, 0.97, 3131);
        check(true, 1000, 0.995, 6524);
        check(true, 1000, 1.0, 12_016);
    }
}
