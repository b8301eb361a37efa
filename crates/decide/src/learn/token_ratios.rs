//! How many tokens a model's prompts have for each byte, by kind of text: learned from what upstreams report.
//!
//! A prompt is expected to have `fixed + Σ bytes·ratio` tokens. A report moves the ratios by the normalised least mean squares
//! rule, `ratio += rate·bytes·(reported − expected) / Σ bytes²`: for a prompt of one kind that is the running mean of what
//! was reported for a byte, and in one of several kinds the largest learns the most. The rate falls with the reports of the kind down to
//! [`RATE_MIN`], so that a model whose tokenizer is changed is followed. One odd report moves a ratio by little: see [`LESSON_MAX`].

use serde::{Deserialize, Serialize};

use stint_types::catalog::{PromptText, WritingKind};
use stint_types::units::Tokens;

/// Tokens for a byte before anything is reported. English prose has about 3.8 bytes to a token with the tokenizers of today,
/// programs and JSON about 3, and Chinese, Japanese and Thai, of three bytes a character, about 4.
const PRIOR: [f64; WritingKind::ALL.len()] = [1.0 / 3.8, 1.0 / 3.0, 1.0 / 4.0];
/// How many reports the prior counts for.
const PRIOR_REPORTS: f64 = 1.0;
/// The least that a report moves a ratio.
const RATE_MIN: f64 = 0.02;
/// How many reports count at most: beyond them none moves a ratio less. So what processes hand on to each other at every start
/// does not grow.
const REPORTS_MAX: f64 = 1.0 / RATE_MIN;
/// A report moves a ratio by this share of it at most, times the rate: a report that is far off may be of what the gateway has not
/// seen, such as a file that the provider put in itself. A judgement.
const LESSON_MAX: f64 = 0.5;
/// A shorter prompt teaches nothing: most of its tokens are those that templates and the provider put around it. A judgement.
const BYTES_MIN: f64 = 500.0;
/// No token is less than a byte, and no text has more than sixteen bytes to a token.
const RATIO: std::ops::RangeInclusive<f64> = 1.0 / 16.0..=1.0;

/// The ratios of one model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TokenRatios {
    per_byte: [f64; WritingKind::ALL.len()],
    /// How many reports each rests on, [`REPORTS_MAX`] at most.
    reports: [f64; WritingKind::ALL.len()],
}

impl Default for TokenRatios {
    fn default() -> TokenRatios {
        TokenRatios { per_byte: PRIOR, reports: [0.0; WritingKind::ALL.len()] }
    }
}

impl TokenRatios {
    /// About how many tokens a prompt has for this model.
    pub fn expected(&self, text: &PromptText) -> Tokens {
        Tokens::round(self.estimate(text))
    }

    /// The upstream reported so many tokens of it.
    pub fn record(&mut self, text: &PromptText, reported: Tokens) {
        let (length, squares) = (text.length(), text.bytes.iter().map(|bytes| bytes * bytes).sum::<f64>());
        if length < BYTES_MIN || reported == Tokens::ZERO {
            return;
        }
        let surprise = reported.as_f64() - self.estimate(text);
        for (at, bytes) in text.bytes.iter().enumerate() {
            self.reports[at] = (self.reports[at] + bytes / length).min(REPORTS_MAX);
            let rate = (1.0 / (PRIOR_REPORTS + self.reports[at])).max(RATE_MIN);
            let (ratio, most) = (self.per_byte[at], LESSON_MAX * self.per_byte[at]);
            let lesson = (bytes * surprise / squares).clamp(-most, most);
            self.per_byte[at] = (ratio + rate * lesson).clamp(*RATIO.start(), *RATIO.end());
        }
    }

    /// Takes in what another process has learned: each counts by its reports.
    pub fn merge(&mut self, other: &TokenRatios) {
        for at in 0..self.per_byte.len() {
            let reports = self.reports[at] + other.reports[at];
            if reports > 0.0 {
                let sum = self.per_byte[at] * self.reports[at] + other.per_byte[at] * other.reports[at];
                (self.per_byte[at], self.reports[at]) = (sum / reports, reports.min(REPORTS_MAX));
            }
        }
    }

    /// True if it can have been learned.
    pub(super) fn is_sound(&self) -> bool {
        self.per_byte.iter().all(|ratio| RATIO.contains(ratio))
            && self.reports.iter().all(|count| (0.0..f64::MAX).contains(count))
    }

    fn estimate(&self, text: &PromptText) -> f64 {
        let texts: f64 = text.bytes.iter().zip(&self.per_byte).map(|(bytes, ratio)| bytes * ratio).sum();
        text.fixed + texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: [f64; 3]) -> PromptText {
        PromptText { bytes, fixed: 10.0 }
    }

    #[test]
    fn before_anything_is_reported_prose_has_about_four_bytes_to_a_token() {
        assert_eq!(TokenRatios::default().expected(&text([3_800.0, 0.0, 0.0])), Tokens(1_010));
        assert_eq!(TokenRatios::default().expected(&text([0.0, 300.0, 400.0])), Tokens(210));
    }

    #[test]
    fn what_two_processes_have_learned_counts_by_their_reports_and_is_read_as_it_was_written() {
        let (mut one, mut other) = (TokenRatios::default(), TokenRatios::default());
        (0..30).for_each(|_| one.record(&text([4_000.0, 0.0, 0.0]), Tokens(810)));
        (0..10).for_each(|_| other.record(&text([4_000.0, 0.0, 0.0]), Tokens(1_610)));
        other.merge(&one);
        let merged = other.expected(&text([4_000.0, 0.0, 0.0])).0;
        assert!((980..1_040).contains(&merged), "{merged}");
        let written = serde_json::to_string(&other).unwrap();
        let read: TokenRatios = serde_json::from_str(&written).unwrap();
        let differs =
            (read.per_byte[0] - other.per_byte[0]).abs() + (read.reports[0] - other.reports[0]).abs();
        assert!(differs < 1e-12, "{differs}");
        assert!(other.is_sound() && other.expected(&text([0.0, 300.0, 0.0])) == Tokens(110));
    }

    #[test]
    fn what_goes_round_between_processes_weighs_no_more_each_time() {
        let mut ratios = TokenRatios::default();
        (0..1_000).for_each(|_| ratios.record(&text([4_000.0, 0.0, 0.0]), Tokens(810)));
        for _ in 0..2_000 {
            let copy = ratios;
            ratios.merge(&copy);
        }
        assert!(ratios.is_sound() && ratios.reports[0] <= REPORTS_MAX, "{ratios:?}");
    }

    #[test]
    fn reports_are_followed_within_a_few_and_each_kind_by_itself() {
        let mut ratios = TokenRatios::default();
        (0..20).for_each(|_| ratios.record(&text([4_000.0, 0.0, 0.0]), Tokens(810)));
        let prose = ratios.expected(&text([4_000.0, 0.0, 0.0])).0;
        assert!((805..=845).contains(&prose), "a fifth of a token a byte: {prose}");
        assert_eq!(ratios.expected(&text([0.0, 300.0, 0.0])), Tokens(110), "programs are as before");
    }

    #[test]
    fn prompts_of_several_kinds_teach_both() {
        let (mut ratios, truth) = (TokenRatios::default(), [0.2, 0.4, 0.5]);
        for number in 0..2_000_u32 {
            let prose = f64::from(number % 7) * 500.0;
            let bytes = [prose, 3_000.0 - prose, 0.0];
            let tokens = 10.0 + bytes[0] * truth[0] + bytes[1] * truth[1];
            ratios.record(&text(bytes), Tokens::round(tokens));
        }
        assert!((ratios.per_byte[0] - truth[0]).abs() < 0.02, "{ratios:?}");
        assert!((ratios.per_byte[1] - truth[1]).abs() < 0.02, "{ratios:?}");
    }

    #[test]
    fn one_odd_report_moves_a_ratio_by_half_of_it_at_most_and_a_short_prompt_by_nothing() {
        let prose = text([4_000.0, 0.0, 0.0]);
        let mut ratios = TokenRatios::default();
        (0..200).for_each(|_| ratios.record(&prose, Tokens(810)));
        let known = ratios.per_byte[0];
        ratios.record(&prose, Tokens(100_000));
        let moved = ratios.per_byte[0] / known;
        assert!((moved - (1.0 + RATE_MIN * LESSON_MAX)).abs() < 1e-9, "{moved}");
        let before = ratios;
        ratios.record(&text([499.0, 0.0, 0.0]), Tokens(100_000));
        assert_eq!(ratios, before);
    }

    #[test]
    fn another_tokenizer_is_followed_and_nonsense_is_bounded() {
        let mut ratios = TokenRatios::default();
        let prose = text([4_000.0, 0.0, 0.0]);
        (0..500).for_each(|_| ratios.record(&prose, Tokens(810)));
        (0..200).for_each(|_| ratios.record(&prose, Tokens(1_610)));
        let now = ratios.expected(&prose).0;
        assert!((1_550..=1_620).contains(&now), "{now}");
        (0..5_000).for_each(|_| ratios.record(&prose, Tokens(u64::MAX)));
        assert_eq!(ratios.expected(&prose), Tokens(4_010), "a token has a byte at least");
    }
}
