//! What one more outcome tells of which requests are like it, where the same request was met before: a text that is asked again and
//! again is one text.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::outcome_sample::OutcomeSample;

/// How many requests are remembered; of more the oldest are forgotten.
const REMEMBERED: usize = 4_096;
/// How much of the variance of a model's lengths lies between requests: of the measured thoughts, six parts in seven.
const BETWEEN: f64 = 0.85;

/// How often requests were met lately.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Repeats {
    counts: HashMap<u64, u32>,
    oldest_first: VecDeque<u64>,
}

impl Repeats {
    /// Notes an outcome, and says what it counts beside one of a request that was never met.
    pub(super) fn note(&mut self, sample: &OutcomeSample) -> f64 {
        let key = fingerprint(sample);
        let count = self.counts.entry(key).or_default();
        if *count == 0 {
            self.oldest_first.push_back(key);
        }
        let before = f64::from(*count);
        *count = count.saturating_add(1);
        if self.oldest_first.len() > REMEMBERED {
            self.oldest_first.pop_front().map(|oldest| self.counts.remove(&oldest));
        }
        told(before + 1.0) - told(before)
    }
}

/// How many different requests so many outcomes of one tell as much as.
fn told(count: f64) -> f64 {
    count / (1.0 + BETWEEN * (count - 1.0).max(0.0))
}

fn fingerprint(sample: &OutcomeSample) -> u64 {
    let (mut hasher, request) = (DefaultHasher::new(), &sample.request);
    (&sample.model, sample.class as u8, &request.words).hash(&mut hasher);
    sample.predicted.prompt.0.hash(&mut hasher);
    request.traits.iter().chain(&request.counts).for_each(|value| value.to_bits().hash(&mut hasher));
    hasher.finish()
}
