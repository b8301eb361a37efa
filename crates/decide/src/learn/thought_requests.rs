//! Which requests a model thinks longer about: by what the prior says of them besides, and by their words.

use stint_types::catalog::LogNormal;

use super::features::{FEATURE_COUNT, FeatureRow, PROMPT, TRAIT};
use super::slopes::{self, LengthSlopes, SlopePriors};
use super::thought_words::{self, RequestWords, ThoughtWords};

/// What a thought's length may depend on: what was predicted of it, the prompt, all traits and all counts.
const FEATURES: usize = 2 + FEATURE_COUNT - TRAIT;
/// What counts beforehand. A few texts tell little of slopes, many questions of one kind a lot.
const PRIORS: SlopePriors = SlopePriors { slopes: &[10.0, 30.0, 100.0, 300.0], class: 3.0 };

/// Where the sums of slopes end, and those of words begin.
const SLOPES_END: usize = slopes::sums_of(FEATURES);
/// All sums.
pub(super) const SUMS: usize = SLOPES_END + thought_words::SUMS;

/// What is believed of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RequestBelief {
    slopes: LengthSlopes<FEATURES>,
    words: ThoughtWords,
}

/// A request as thoughts go by it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThoughtRequest<'a> {
    class: usize,
    features: [f64; FEATURES],
    words: RequestWords<'a>,
}

impl<'a> ThoughtRequest<'a> {
    /// A request of that class, for which this was predicted.
    pub(super) fn of(
        class: usize,
        predicted: &LogNormal,
        row: &FeatureRow,
        words: RequestWords<'a>,
    ) -> ThoughtRequest<'a> {
        /// A usual thought's logarithm: predictions lie about as far from it as one.
        const USUAL: f64 = 6.5;
        let features = std::array::from_fn(|at| match at {
            0 => (predicted.mu - USUAL).clamp(-3.0, 3.0),
            1 => row[PROMPT],
            _ => row[TRAIT + at - 2],
        });
        ThoughtRequest { class, features, words }
    }
}

impl RequestBelief {
    /// Of a model with these sums, whose thoughts vary so much about the means of their classes.
    pub(super) fn of(sums: &[f64], variance: f64) -> RequestBelief {
        let (slopes, words) = sums.split_at(SLOPES_END);
        RequestBelief { slopes: LengthSlopes::of(slopes, variance, PRIORS), words: ThoughtWords::of(words) }
    }

    /// By how many of the prior's sigma a thought on a request is longer than the mean of its class.
    pub(super) fn longer(&self, request: &ThoughtRequest<'_>) -> f64 {
        self.slopes.beyond_mean(request.class, &request.features) + self.words.longer(request.words)
    }

    /// Adds to a model's sums that a thought was `u` of the prior's sigma longer than predicted, and `surprise` longer than believed.
    /// It counts as `weight` of an outcome in slopes. A word is hardly in two requests, and counts whole.
    pub(super) fn add(
        &self,
        sums: &mut [f64],
        request: &ThoughtRequest<'_>,
        (u, surprise, weight): (f64, f64, f64),
    ) {
        let (slopes, words) = sums.split_at_mut(SLOPES_END);
        slopes::add(slopes, request.class, &request.features, (u, weight));
        self.words.add(words, request.words, surprise);
    }
}
