//! How likely a token was that was drawn, and which were the likeliest. By the model's own logits: temperature, penalties,
//! biases and the answer's form change nothing of it.

/// The most tokens that are told of beside the one that was drawn.
pub(crate) const TOP_MAX: u32 = 20;

/// How likely a token was, beside others.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenLogprobs {
    /// The natural logarithm of its probability.
    pub logprob: f32,
    /// The likeliest tokens, each with its own, the best first.
    pub top: Vec<(u32, f32)>,
}

impl TokenLogprobs {
    /// Of a token, by the logits that it was drawn from.
    pub(crate) fn of(logits: &[f32], id: u32, top: u32) -> Self {
        let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f64 = logits.iter().map(|logit| f64::from(logit - highest).exp()).sum();
        let whole = f64::from(highest) + sum.ln();
        #[expect(clippy::cast_possible_truncation, reason = "logits are of f32")]
        let logprob = |logit: f32| (f64::from(logit) - whole) as f32;
        let drawn = logits.get(id as usize).copied().unwrap_or(f32::NEG_INFINITY);
        let best = likeliest(logits, top.min(TOP_MAX) as usize);
        Self {
            logprob: logprob(drawn),
            top: best.into_iter().map(|(id, logit)| (id, logprob(logit))).collect(),
        }
    }
}

/// So many of the likeliest, the best first; of equal ones the lowest first.
fn likeliest(logits: &[f32], count: usize) -> Vec<(u32, f32)> {
    let mut best: Vec<(u32, f32)> = Vec::with_capacity(count + 1);
    for (id, &logit) in (0u32..).zip(logits) {
        if best.len() == count && best.last().is_none_or(|(_, least)| logit <= *least) {
            continue;
        }
        let at = best.partition_point(|(_, other)| *other >= logit);
        best.insert(at, (id, logit));
        best.truncate(count);
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chances_of_all_tokens_make_up_one() {
        let logits = [1.0f32, -2.0, 30.0, 30.0, 0.5];
        let all = TokenLogprobs::of(&logits, 1, 5);
        let sum: f64 = all.top.iter().map(|(_, logprob)| f64::from(*logprob).exp()).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{sum}");
        let ids: Vec<_> = all.top.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [2, 3, 0, 4, 1]);
        assert!((all.logprob - all.top[4].1).abs() < 1e-6);
        assert!((all.top[0].1 - 0.5f32.ln()).abs() < 1e-6);
    }

    #[test]
    fn as_many_are_told_of_as_are_wanted() {
        let logits: Vec<f32> = (0u16..50).map(|n| f32::from(n * 37 % 50)).collect();
        assert_eq!(TokenLogprobs::of(&logits, 0, 0).top, []);
        assert_eq!(TokenLogprobs::of(&logits, 0, 3).top.len(), 3);
        assert_eq!(TokenLogprobs::of(&logits, 0, 99).top.len(), TOP_MAX as usize);
        assert_eq!(TokenLogprobs::of(&[], 0, 3).top, []);
    }
}
