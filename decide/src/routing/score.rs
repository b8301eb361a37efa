//! Turns what routers foretold into figures with intervals.

use crate::bootstrap::{Draws, Interval};
use crate::measure::{Ranking, quality_area, spearman};

use super::pool::{Goal, Kind, Pool};
use super::study::Foretold;

/// What a million tokens cost, in and out alike, by the names that the data has: assumed, as stated in the
/// report. Models without an entry are not priced.
pub const PRICES: [(&str, f64); 7] = [
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

/// The figures of one router between two models.
#[derive(Debug, Clone)]
pub struct Routed {
    /// APGR on all draws.
    pub apgr: Draws,
    /// The share sent for half of the gain.
    pub cpt50: f64,
    /// The share sent for four fifths of it.
    pub cpt80: f64,
    /// The area under quality over cost.
    pub aiq: f64,
    /// Dollars for each thousand solved, where four fifths of the gain are had.
    pub cost_of_pass: f64,
    /// The deferral curve, of the first repeat.
    pub curve: Vec<(f64, f64)>,
}

/// Which rows are measured, and the truth of them.
pub struct Measured {
    rows: Vec<usize>,
    truth: Vec<f64>,
}

impl Measured {
    /// The rows that were foretold and whose truth is known.
    pub fn of(goal: &Goal, foretold: &Foretold) -> Measured {
        let rows: Vec<usize> = (0..goal.truth.len())
            .filter(|&row| goal.truth[row].is_some() && foretold.iter().all(|repeat| repeat[row].is_some()))
            .collect();
        let truth = rows.iter().filter_map(|&row| goal.truth[row]).collect();
        Measured { rows, truth }
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// The truth of each.
    pub fn truth(&self) -> &[f64] {
        &self.truth
    }

    /// What was foretold of each in one repeat.
    pub fn scores(&self, repeat: &[Option<f64>]) -> Vec<f64> {
        self.rows.iter().filter_map(|&row| repeat[row]).collect()
    }

    /// The figures of a router between two models, its mean over the repeats.
    pub fn routed(&self, pool: &Pool, goal: &Goal, foretold: &Foretold, draws: &[Vec<f64>]) -> Routed {
        let rankings: Vec<Ranking> =
            foretold.iter().map(|repeat| Ranking::of(&self.scores(repeat))).collect();
        let once = vec![1.0; self.count()];
        let area = |counts: &[f64]| average(rankings.iter().map(|r| r.deferral(&self.truth, counts).area()));
        let share =
            |gain: f64| average(rankings.iter().map(|r| r.deferral(&self.truth, &once).share_for(gain)));
        let costs: Vec<(f64, f64)> = rankings.iter().map(|ranking| self.costs(pool, goal, ranking)).collect();
        Routed {
            apgr: Draws::of(draws, area),
            cpt50: share(0.5),
            cpt80: share(0.8),
            aiq: average(costs.iter().map(|cost| cost.0)),
            cost_of_pass: average(costs.iter().map(|cost| cost.1)),
            curve: rankings.first().map_or_else(Vec::new, |r| r.deferral(&self.truth, &once).points),
        }
    }

    /// AIQ, and dollars per thousand solved where four fifths of the gain are had.
    fn costs(&self, pool: &Pool, goal: &Goal, ranking: &Ranking) -> (f64, f64) {
        let Kind::Gain { weak, strong } = &goal.kind else { return (0.0, 0.0) };
        let cost = |row: usize, model: &str| dollars(pool, row, model);
        let right = |row: usize, model: &str| pool.rows[row].right(model);
        let (mut spent, mut solved) = (0.0, 0.0);
        for &row in &self.rows {
            spent += cost(row, weak);
            solved += right(row, weak);
        }
        let cheapest = spent;
        let all: f64 = self.rows.iter().map(|&row| right(row, strong) - right(row, weak)).sum();
        let weakest = solved;
        let count = self.count().max(1) as f64;
        let mut points = vec![(spent / count, solved / count)];
        let mut pass = f64::NAN;
        for &place in ranking.order() {
            let row = self.rows[place];
            spent += cost(row, strong) - cost(row, weak);
            solved += right(row, strong) - right(row, weak);
            points.push((spent / count, solved / count));
            if pass.is_nan() && solved >= weakest + 0.8 * all {
                pass = 1000.0 * spent / solved;
            }
        }
        (quality_area(&points, cheapest / count, spent / count), pass)
    }

    /// Spearman's correlation with the truth, its mean over the repeats, on the questions and on each draw.
    pub fn correlated(&self, foretold: &Foretold, draws: &[Vec<f64>]) -> Draws {
        let scores: Vec<Vec<f64>> = foretold.iter().map(|repeat| self.scores(repeat)).collect();
        Draws::of(draws, |counts| {
            let again = repeated(counts);
            let truth: Vec<f64> = again.iter().map(|&row| self.truth[row]).collect();
            let one = |scores: &Vec<f64>| {
                spearman(&again.iter().map(|&row| scores[row]).collect::<Vec<_>>(), &truth)
            };
            average(scores.iter().map(one))
        })
    }
}

/// Each question as often as it counts.
fn repeated(counts: &[f64]) -> Vec<usize> {
    let mut rows = Vec::with_capacity(counts.len());
    for (row, &count) in counts.iter().enumerate() {
        let mut left = count;
        while left > 0.5 {
            rows.push(row);
            left -= 1.0;
        }
    }
    rows
}

/// What one answer costs at the assumed prices.
pub fn dollars(pool: &Pool, row: usize, model: &str) -> f64 {
    let price = PRICES.iter().find(|(name, _)| *name == model).map_or(0.0, |&(_, price)| price);
    let characters =
        pool.texts[row].len() as f64 + pool.rows[row].out_chars.get(model).copied().unwrap_or(0.0);
    price * characters / CHARACTERS / 1e6
}

fn average(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}

/// `value [low, high]`.
pub fn shown(interval: Interval, decimals: usize) -> String {
    format!("{:.decimals$} [{:.decimals$}, {:.decimals$}]", interval.value, interval.low, interval.high)
}
