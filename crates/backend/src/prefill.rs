//! How long a prompt should take to its first token: a constant, and a time for each token that no cache has.
//!
//! The line is fitted as Theil and Sen do (H. Theil 1950; P. K. Sen, "Estimates of the regression coefficient based on
//! Kendall's tau", JASA 63, 1968): its slope is the median of the slopes between all pairs of samples,
//!
//! ```text
//! per_token = median over i < j of (seconds_j − seconds_i) / (tokens_j − tokens_i)
//! constant  = median of (seconds_i − per_token · tokens_i)
//! ```
//!
//! so that up to 29 % of the samples may be anything. Two departures: pairs of prompts of nearly the same length say nothing
//! of the slope and are left out, and the constant is that of the shorter half, since the noise of a long prompt is larger than
//! the whole wait of a short one. Neither is below zero.

use std::collections::VecDeque;

use stint_types::units::Tokens;

/// So many samples are kept: the pairs are two thousand.
const SAMPLES_MAX: usize = 64;
/// The line is drawn again where one in so many samples is new.
const REFIT_PART: usize = 8;
/// Fewer pairs say nothing of the slope.
const PAIRS_MIN: usize = 8;
/// Two prompts differ where they do by so many tokens, and by such a share of the longer one.
const APART: f64 = 64.0;
const APART_SHARE: f64 = 0.1;
/// Prompts so many times longer than the longest sample are not known.
const BEYOND: f64 = 2.0;
/// And so many tokens more.
const BEYOND_MARGIN: f64 = 256.0;

/// What the first token of one target takes. Pure.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prefill {
    samples: VecDeque<PrefillSample>,
    constant: f64,
    per_token: f64,
    knows_slope: bool,
    longest: Option<f64>,
    usual: f64,
    /// Samples since the line was drawn.
    added: usize,
}

#[derive(Debug, Clone, Copy)]
struct PrefillSample {
    tokens: f64,
    seconds: f64,
}

impl Prefill {
    /// Takes a sample: so many tokens that no cache had, and the seconds until the first token. It counts from the next
    /// [fit](Prefill::fit_if_due) on.
    pub(crate) fn add(&mut self, tokens: Tokens, seconds: f64) {
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(PrefillSample { tokens: tokens.as_f64(), seconds });
        self.added += 1;
    }

    /// Draws the line again once an eighth of the samples is new: the pairs of all samples are many.
    pub(crate) fn fit_if_due(&mut self) {
        if self.added * REFIT_PART >= self.samples.len() {
            self.fit();
        }
    }

    /// Forgets all samples. The line stays until the next fit.
    pub(crate) fn clear(&mut self) {
        self.samples.clear();
    }

    /// How many samples there are.
    #[cfg(all(test, feature = "local"))]
    pub(crate) fn sample_count(&self) -> usize {
        self.samples.len()
    }

    /// True if no more samples fit without giving up older ones.
    pub(crate) fn is_full(&self) -> bool {
        self.samples.len() == SAMPLES_MAX
    }

    /// Draws the line again. Where all prompts are about as long, the slope stays as it was.
    pub(crate) fn fit(&mut self) {
        self.added = 0;
        if let Some(slope) = self.slope() {
            (self.per_token, self.knows_slope) = (slope.max(0.0), true);
        }
        let mut samples: Vec<PrefillSample> = self.samples.iter().copied().collect();
        samples.sort_by(|one, other| one.tokens.total_cmp(&other.tokens));
        let Some(usual) = samples.get(samples.len() / 2) else { return };
        (self.usual, self.longest) = (usual.tokens, samples.last().map(|last| last.tokens));
        let shorter = samples.iter().take(samples.len().div_ceil(2));
        let rests = shorter.map(|sample| sample.seconds - self.per_token * sample.tokens);
        self.constant = median(rests.collect()).unwrap_or_default().max(0.0);
    }

    fn slope(&self) -> Option<f64> {
        let pairs = self.samples.iter().enumerate().flat_map(|(at, one)| {
            let others = self.samples.iter().skip(at + 1);
            others.filter_map(|other| {
                let apart = (other.tokens - one.tokens).abs();
                let differ = apart >= APART.max(APART_SHARE * one.tokens.max(other.tokens));
                differ.then(|| (other.seconds - one.seconds) / (other.tokens - one.tokens))
            })
        });
        let slopes: Vec<f64> = pairs.collect();
        if slopes.len() < PAIRS_MIN { None } else { median(slopes) }
    }

    /// How many seconds the first token of such a prompt should take. Nothing if nothing was measured yet, and for
    /// prompts that are longer than all that were.
    pub(crate) fn expected(&self, tokens: Tokens) -> Option<f64> {
        let tokens = tokens.as_f64();
        let known = tokens <= self.longest? * BEYOND + BEYOND_MARGIN;
        known.then_some(self.constant + self.per_token * tokens)
    }

    /// How many seconds that of a usual prompt should take.
    pub(crate) fn usual(&self) -> f64 {
        self.constant + self.per_token * self.usual
    }

    /// The line: seconds in any case, and seconds for each token. Nothing if prompts of several lengths were not measured
    /// yet.
    pub(crate) fn line(&self) -> Option<(f64, f64)> {
        self.knows_slope.then_some((self.constant, self.per_token))
    }
}

/// The middle one of some numbers.
pub(crate) fn median(mut numbers: Vec<f64>) -> Option<f64> {
    let middle = numbers.len() / 2;
    if numbers.is_empty() {
        return None;
    }
    let (_, median, _) = numbers.select_nth_unstable_by(middle, f64::total_cmp);
    Some(*median)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::units::SeededRng;

    const LENGTHS: [u64; 7] = [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000];

    /// A line through so many samples of all lengths, each of which took as long as is said.
    fn fitted(samples: usize, mut took: impl FnMut(f64) -> f64) -> Prefill {
        let mut prefill = Prefill::default();
        for number in 0..samples {
            let tokens = Tokens(LENGTHS[number * 5 % 7]);
            prefill.add(tokens, took(tokens.as_f64()));
        }
        prefill.fit();
        prefill
    }

    fn check(prefill: &Prefill, constant: f64, per_token: f64) {
        for tokens in LENGTHS {
            let expected = prefill.expected(Tokens(tokens)).unwrap();
            let right = constant + per_token * Tokens(tokens).as_f64();
            assert!((expected / right).ln().abs() < 0.25, "{tokens}: {expected} for {right}");
        }
    }

    #[test]
    fn prompts_of_a_hundred_to_a_hundred_thousand_tokens_are_on_one_line() {
        check(&fitted(30, |tokens| 0.2 + 0.000_1 * tokens), 0.2, 0.000_1);
    }

    #[test]
    fn noise_and_a_fifth_of_wild_samples_do_not_move_it() {
        let mut dice = SeededRng::new(7);
        let wild = |tokens: f64| {
            let noise = 0.8 + 0.4 * dice.next_f64();
            let factor = if dice.below(5) == 0 { 20.0 } else { noise };
            (0.2 + 0.000_1 * tokens) * factor
        };
        check(&fitted(640, wild), 0.2, 0.000_1);
    }

    #[test]
    fn nothing_is_known_of_prompts_longer_than_all_that_were_measured() {
        let mut prefill = Prefill::default();
        assert_eq!(prefill.expected(Tokens(10)), None);
        for _ in 0..20 {
            prefill.add(Tokens(100), 0.5);
        }
        prefill.fit();
        assert_eq!(prefill.expected(Tokens(300)), Some(0.5), "the slope is not known, and taken to be none");
        assert_eq!(prefill.expected(Tokens(100_000)), None);
    }
}
