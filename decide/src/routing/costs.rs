//! What answers cost, and what is had for it.

use crate::measure::{Ranking, mean, quality_area};

use super::pool::{Goal, Kind, Pool};

/// What a million tokens cost, in and out alike, by the names that the data has: assumed, as stated in the
/// report. Models without an entry are not priced.
const PRICES: [(&str, f64); 7] = [
    ("Phi-3-mini-4k-instruct", 0.10),
    ("Meta-Llama-3_1-8B-Instruct", 0.18),
    ("Mixtral-8x7B-Instruct-v0.1", 0.60),
    ("Meta-Llama-3_1-70B-Instruct", 0.90),
    ("gemini-1.5-pro-002", 6.0),
    // The two on GSM8K: Mixtral as above, GPT-4 as RouteLLM prices it.
    ("mixtral-8x7b", 0.60),
    ("gpt-4", 24.7),
];
/// English has about four characters in a token.
const CHARACTERS: f64 = 4.0;

/// What four fifths of the gain cost.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bill {
    /// Dollars for each thousand solved.
    pub(super) pass: f64,
    /// E³: the harmonic mean of the ratio of the odds of success and of that of the costs, against sending all to the
    /// stronger model, weighted by that model's accuracy (Huang et al., *EffiReason-Bench*, 2025).
    pub(super) balance: f64,
}

/// What one model's answer is expected to cost: the question's own tokens, which are known when it arrives, and as
/// many as the model usually writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected<'a> {
    pool: &'a Pool,
    price: f64,
    written: f64,
}

impl<'a> Expected<'a> {
    /// Of a model.
    pub(super) fn of(pool: &'a Pool, model: &str) -> Expected<'a> {
        let written: Vec<f64> =
            pool.rows.iter().filter_map(|row| row.out_chars.get(model).copied()).collect();
        Expected { pool, price: price(model), written: mean(&written) }
    }

    /// For one question.
    pub(super) fn dollars(&self, row: usize) -> f64 {
        self.price * (self.pool.texts[row].len() as f64 + self.written) / CHARACTERS / 1e6
    }
}

/// What each measured question costs with either of two models.
pub(super) struct Costs {
    /// With the weaker one.
    weak: Vec<f64>,
    /// How much more with the stronger.
    more: Vec<f64>,
    /// How much more that is expected to be.
    expected: Vec<f64>,
    /// Whether the weaker one is right.
    right: Vec<f64>,
}

impl Costs {
    /// Of a gain on these rows; nothing of any other goal.
    pub(super) fn of(pool: &Pool, goal: &Goal, rows: &[usize]) -> Costs {
        let Kind::Gain { weak, strong } = &goal.kind else {
            return Costs { weak: Vec::new(), more: Vec::new(), expected: Vec::new(), right: Vec::new() };
        };
        let (low, high) = (Expected::of(pool, weak), Expected::of(pool, strong));
        let more = |row: usize| dollars(pool, row, strong) - dollars(pool, row, weak);
        Costs {
            weak: rows.iter().map(|&row| dollars(pool, row, weak)).collect(),
            more: rows.iter().map(|&row| more(row)).collect(),
            expected: rows.iter().map(|&row| (high.dollars(row) - low.dollars(row)).max(1e-9)).collect(),
            right: rows.iter().map(|&row| pool.rows[row].right(weak)).collect(),
        }
    }

    /// The questions by the gain foretold for each dollar that the stronger model is expected to cost more. How
    /// large the gain is on average is taken as known, for every rule.
    pub(super) fn by_worth(&self, scores: &[f64], gains: &[f64]) -> Ranking {
        let (usual, gain) = (mean(scores), mean(gains));
        let worths = scores.iter().zip(&self.expected).map(|(score, more)| (score - usual + gain) / more);
        Ranking::of(&worths.collect::<Vec<_>>())
    }

    /// AIQ of sending question after question to the stronger model, where each counts so often.
    pub(super) fn quality(&self, ranking: &Ranking, gains: &[f64], counts: &[f64]) -> f64 {
        let count: f64 = counts.iter().sum();
        let all = |each: &[f64]| each.iter().zip(counts).map(|(one, times)| one * times).sum::<f64>() / count;
        let (mut spent, mut solved) = (all(&self.weak), all(&self.right));
        let cheapest = spent;
        let mut points = vec![(spent, solved)];
        for &place in ranking.order().iter().filter(|&&place| counts[place] > 0.0) {
            spent += counts[place] * self.more[place] / count;
            solved += counts[place] * gains[place] / count;
            points.push((spent, solved));
        }
        quality_area(&points, cheapest, spent)
    }

    /// What it costs to have four fifths of the gain.
    pub(super) fn bill(&self, ranking: &Ranking, gains: &[f64]) -> Bill {
        let (mut spent, mut solved): (f64, f64) = (self.weak.iter().sum(), self.right.iter().sum());
        let (dear, able) = (spent + self.more.iter().sum::<f64>(), solved + gains.iter().sum::<f64>());
        let wanted = solved + 0.8 * (able - solved);
        for &place in ranking.order() {
            spent += self.more[place];
            solved += gains[place];
            if solved >= wanted {
                break;
            }
        }
        let count = gains.len().max(1) as f64;
        let odds = |solved: f64| solved / (count - solved);
        let (usual, effect) = (able / count, odds(solved) / odds(able));
        Bill {
            pass: 1000.0 * spent / solved,
            balance: 1.0 / (usual / effect + (1.0 - usual) / (dear / spent)),
        }
    }
}

/// What one answer costs at the assumed prices.
pub fn dollars(pool: &Pool, row: usize, model: &str) -> f64 {
    let characters =
        pool.texts[row].len() as f64 + pool.rows[row].out_chars.get(model).copied().unwrap_or(0.0);
    price(model) * characters / CHARACTERS / 1e6
}

/// What a million tokens of a model cost; 0 without an entry.
pub fn price(model: &str) -> f64 {
    PRICES.iter().find(|(name, _)| *name == model).map_or(0.0, |&(_, price)| price)
}
