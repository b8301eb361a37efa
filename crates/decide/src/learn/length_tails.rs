//! How far lengths really lie beyond what was predicted: a rolling correction of the predicted 99th percentiles.
//!
//! In the manner of split conformal prediction (Papadopoulos et al., *Inductive confidence machines for regression*, 2002): each
//! outcome has a score, how far it lies out in what was believed before it came. The percentile of the scores takes the place of
//! the one that the assumed distribution has. Scores are counted in bins, which fade and add up over replicas as all sums do. A
//! model's own percentile is drawn to that of all models, and theirs to the assumed one. The first thoughts of each model are
//! counted apart: what is said of a model that nobody has seen goes by them.
//!
//! A cut thought, or an answer at its limit, counts in the bins beyond, by what was believed of them.

use stint_types::catalog::{LengthTails, ModelDemand};
use stint_types::units::{Chance, Tokens};

use super::outcome_sample::OutcomeSample;

/// Where bins of a thought's score begin: of ln L, in believed standard deviations from the believed mean. What is below the first
/// is a bin too.
const THOUGHT_EDGES: [f64; EDGES] = [0.0, 1.0, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0, 3.5, 4.0, 5.0, 7.0];
/// The share of a normal distribution beyond each.
const THOUGHT_BEYOND: [f64; EDGES] = [
    0.5, 0.158_7, 0.066_8, 0.040_1, 0.022_8, 0.012_2, 0.006_21, 0.002_98, 0.001_35, 2.33e-4, 3.2e-5, 2.9e-7,
    1e-9,
];
/// Where bins of an answer's score begin: its length as a share of the predicted 99th percentile.
const ANSWER_EDGES: [f64; EDGES] = [0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 8.0];
/// The share of answers beyond each, by the multiples of a measured model's mean that are predicted.
const ANSWER_BEYOND: [f64; EDGES] =
    [0.8, 0.398, 0.166, 0.05, 0.022_9, 0.014_6, 0.01, 0.006_2, 0.003_4, 0.001_6, 5.6e-4, 1.5e-4, 4e-5];
const EDGES: usize = 13;
/// How many bins a kind of score has.
const BINS: usize = EDGES + 1;
/// All sums: first thoughts, later ones, and answers.
pub(super) const SUMS: usize = 3 * BINS;

/// The share that lies beyond a 99th percentile.
const BEYOND: f64 = 0.01;
/// The standard normal's 99th percentile.
const Z99: f64 = 2.326_347_874;
/// For how many outcomes the assumed distribution counts with all models, and theirs with one.
const PRIOR: f64 = 100.0;
/// No correction goes further.
const THOUGHT_TAIL: std::ops::RangeInclusive<f64> = 0.6..=3.0;
const ANSWER_TAIL: std::ops::RangeInclusive<f64> = 0.3..=6.0;

/// What scores were counted: all models', or one's.
pub(super) type TailSums = [f64; SUMS];

/// Which scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScoreKind {
    /// Of thoughts of a model whose thoughts were not measured yet.
    First,
    /// Of thoughts of a model that was measured.
    Thought,
    /// Of answers of a model that was measured.
    Answer,
}

impl ScoreKind {
    fn at(self) -> usize {
        match self {
            ScoreKind::First => 0,
            ScoreKind::Thought => BINS,
            ScoreKind::Answer => 2 * BINS,
        }
    }

    fn edges(self) -> (&'static [f64; EDGES], &'static [f64; EDGES]) {
        match self {
            ScoreKind::First | ScoreKind::Thought => (&THOUGHT_EDGES, &THOUGHT_BEYOND),
            ScoreKind::Answer => (&ANSWER_EDGES, &ANSWER_BEYOND),
        }
    }

    /// The score that a share of 1 % lies beyond, by the sums of all models and of one.
    fn percentile(self, all: &TailSums, own: Option<&[f64]>) -> f64 {
        let (edges, assumed) = self.edges();
        let bins = |sums: &[f64]| sums.get(self.at()..self.at() + BINS).map(beyond);
        let usual = bins(all).map_or(*assumed, |(count, each)| blended(count, &each, assumed));
        let own = own.and_then(bins).map_or(usual, |(count, each)| blended(count, &each, &usual));
        crossing(edges, &own)
    }

    /// Counts a score, or for one that only says that it would have been higher, what lies beyond it.
    fn count(self, sums: &mut [f64], score: f64, is_least: bool, tail: f64) {
        let (edges, assumed) = self.edges();
        let Some(bins) = sums.get_mut(self.at()..self.at() + BINS) else { return };
        let bin = edges.iter().filter(|edge| **edge <= score).count();
        let whole = if is_least { share_beyond(edges, assumed, score / tail) } else { 0.0 };
        if whole < 1e-6 {
            bins[bin] += 1.0;
            return;
        }
        let beyond = |place: usize| match place {
            0 => 1.0,
            _ => share_beyond(edges, assumed, edges[place - 1] / tail),
        };
        for (place, sum) in bins.iter_mut().enumerate().skip(bin) {
            let (from, to) = (beyond(place).min(whole), if place < EDGES { beyond(place + 1) } else { 0.0 });
            *sum += ((from - to) / whole).max(0.0);
        }
    }
}

/// Adds the scores of an outcome, by what was believed before it.
pub(super) fn add(sums: &mut [f64], sample: &OutcomeSample, believed: &ModelDemand) {
    use stint_types::catalog::ThinkingStopReason::{Closed, Cut, Stopped};
    let length = sample.usual_thinking();
    if length > 0.0 && matches!(sample.ended, Closed | Stopped | Cut) {
        let score = (length.ln() - believed.thinking.mu) / believed.thinking.sigma.max(1e-3);
        let kind = if believed.measured.thinking { ScoreKind::Thought } else { ScoreKind::First };
        kind.count(sums, score, sample.ended == Cut, believed.tails.thought);
    }
    if sample.solution > Tokens::ZERO && believed.measured.solution {
        let plain = ModelDemand { tails: LengthTails::default(), ..believed.clone() };
        let score = sample.solution.as_f64() / plain.solution_within(Chance::new(1.0 - BEYOND)).as_f64();
        ScoreKind::Answer.count(sums, score, sample.solution_ended.is_cut(), believed.tails.answer);
    }
}

/// What follows for a model with these sums; without any, for one that nobody has seen.
pub(super) fn tails(all: &TailSums, own: Option<&[f64]>) -> [LengthTails; 2] {
    let thought = |kind: ScoreKind| {
        let multiple = kind.percentile(all, own) / Z99;
        multiple.clamp(*THOUGHT_TAIL.start(), *THOUGHT_TAIL.end())
    };
    let answer = ScoreKind::Answer.percentile(all, own).clamp(*ANSWER_TAIL.start(), *ANSWER_TAIL.end());
    [
        LengthTails { thought: thought(ScoreKind::First), answer },
        LengthTails { thought: thought(ScoreKind::Thought), answer },
    ]
}

/// How many were counted, and which share of them lies beyond each edge.
fn beyond(bins: &[f64]) -> (f64, [f64; EDGES]) {
    let count: f64 = bins.iter().sum();
    let mut left = 0.0;
    let mut each = [0.0; EDGES];
    for (share, more) in each.iter_mut().zip(&bins[1..]).rev() {
        left += more;
        *share = left / count.max(f64::MIN_POSITIVE);
    }
    (count, each)
}

fn blended(count: f64, seen: &[f64; EDGES], assumed: &[f64; EDGES]) -> [f64; EDGES] {
    std::array::from_fn(|at| (count * seen[at] + PRIOR * assumed[at]) / (count + PRIOR))
}

/// The score that so much lies beyond: between two edges, straight in the share, which errs outwards.
fn crossing(edges: &[f64; EDGES], beyond: &[f64; EDGES]) -> f64 {
    let at = beyond.iter().position(|share| *share <= BEYOND).unwrap_or(EDGES - 1);
    if at == 0 {
        return edges[0];
    }
    let (more, less) = (beyond[at - 1], beyond[at]);
    let along = if more > less { (more - BEYOND) / (more - less) } else { 1.0 };
    edges[at - 1] + along.clamp(0.0, 1.0) * (edges[at] - edges[at - 1])
}

/// The share that lies beyond a score, straight in its logarithm; all where it is below the first edge.
fn share_beyond(edges: &[f64; EDGES], beyond: &[f64; EDGES], score: f64) -> f64 {
    let at = edges.iter().filter(|edge| **edge <= score).count();
    if at == 0 {
        return 1.0;
    }
    let (from, share) = (edges[at - 1], beyond[at - 1]);
    let Some((to, less)) = edges.get(at).zip(beyond.get(at)) else { return share };
    share * (less / share).powf(((score - from) / (to - from)).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thoughts(scores: impl Iterator<Item = f64>) -> TailSums {
        let mut sums = [0.0; SUMS];
        scores.for_each(|score| ScoreKind::Thought.count(&mut sums, score, false, 1.0));
        sums
    }

    fn check(sums: &TailSums) -> f64 {
        tails(&[0.0; SUMS], Some(sums))[1].thought
    }

    #[test]
    fn without_outcomes_the_assumed_percentiles_stand() {
        let [first, later] = tails(&[0.0; SUMS], None);
        assert!(
            (first.thought - 1.0).abs() < 0.01 && (later.answer - 1.0).abs() < 1e-9,
            "{first:?} {later:?}"
        );
    }

    #[test]
    fn where_three_in_a_hundred_lie_beyond_the_percentile_moves_out_and_where_none_do_in() {
        let often = check(&thoughts((0..1_000).map(|at| if at % 100 < 3 { 3.2 } else { 0.0 })));
        let never = check(&thoughts((0..1_000).map(|_| 0.0)));
        assert!((1.28..1.6).contains(&often), "{often}");
        assert!(never < 0.75, "{never}");
        let soon = check(&thoughts((0..60).map(|at| if at % 15 == 0 { 3.2 } else { 0.0 })));
        assert!(soon > 1.2, "sixty outcomes tell: {soon}");
    }

    #[test]
    fn thoughts_that_are_cut_early_move_nothing() {
        let mut sums = [0.0; SUMS];
        (0..2_000).for_each(|_| ScoreKind::Thought.count(&mut sums, 0.8, true, 1.0));
        (0..6_000).for_each(|_| ScoreKind::Thought.count(&mut sums, 0.2, false, 1.0));
        let cut = check(&sums);
        assert!((0.97..1.1).contains(&cut), "a quarter lay beyond: {cut}");
    }

    #[test]
    fn a_model_that_nobody_has_seen_goes_by_the_first_thoughts_of_the_others() {
        let mut all = [0.0; SUMS];
        (0..400).for_each(|at| {
            ScoreKind::First.count(&mut all, if at % 20 == 0 { 3.6 } else { 0.0 }, false, 1.0);
        });
        let [first, later] = tails(&all, None);
        assert!(first.thought > 1.4 && (later.thought - 1.0).abs() < 0.01, "{first:?} {later:?}");
    }
}
