//! The simple rules that have to be beaten.

use std::collections::BTreeMap;

use crate::folds::Fold;
use crate::measure::mean;
use crate::ridge::Ridge;
use crate::sparse::Sparse;
use crate::surface;
use stint_types::units::SeededRng;

use super::pool::{Goal, Pool};

/// scikit-learn's usual penalty.
const PENALTY: f64 = 1.0;

/// A rule that foretells a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Baseline {
    /// A number that nobody foresees.
    Random,
    /// The longer, the harder.
    Length,
    /// The mean of the question's subject. Nothing where the subject was left out.
    Category,
    /// Ridge regression on what can be counted by hand.
    Surface,
    /// Ridge regression on words and pairs of words.
    TfIdf,
    /// The mean of where the question was taken from: a label that no request carries.
    Source,
}

/// What the rules look at, with one division of the rows.
pub struct View<'a> {
    pool: &'a Pool,
    fold: &'a Fold,
    words: Sparse,
    surface: Vec<Vec<f64>>,
}

impl Baseline {
    /// All.
    pub const ALL: [Baseline; 6] = [
        Baseline::Random,
        Baseline::Length,
        Baseline::Category,
        Baseline::Surface,
        Baseline::TfIdf,
        Baseline::Source,
    ];

    /// Its name in a report.
    pub fn name(self) -> &'static str {
        match self {
            Baseline::Random => "random",
            Baseline::Length => "prompt length",
            Baseline::Category => "category mean",
            Baseline::Surface => "surface ridge",
            Baseline::TfIdf => "TF-IDF ridge",
            Baseline::Source => "(mean of the `src` label)",
        }
    }

    /// True where a request carries what it looks at.
    pub fn is_possible(self) -> bool {
        self != Baseline::Source
    }

    /// What is foretold of the fold's test rows, fitted on its train rows.
    pub fn foretell(self, view: &View, goal: &Goal, seed: u64) -> Vec<f64> {
        let pool = view.pool;
        match self {
            Baseline::Random => {
                let mut dice = SeededRng::new(seed);
                view.fold.test.iter().map(|_| dice.next_f64()).collect()
            }
            Baseline::Length => view.measured(|row| (pool.texts[row].len() as f64).ln_1p()),
            Baseline::Category => view.means(goal, |row| &pool.rows[row].category),
            Baseline::Source => view.means(goal, |row| &pool.rows[row].src),
            Baseline::Surface => {
                let (rows, truths) = view.fitted(goal);
                let rows: Vec<Vec<f64>> = rows.iter().map(|&row| view.surface[row].clone()).collect();
                let ridge = Ridge::dense(&rows, &truths, PENALTY);
                view.measured(|row| ridge.of_dense(&view.surface[row]))
            }
            Baseline::TfIdf => {
                let (rows, truths) = view.fitted(goal);
                let ridge = Ridge::sparse(&view.words.select(&rows), &truths, PENALTY);
                view.measured(|row| ridge.of_sparse(&view.words.rows[row]))
            }
        }
    }
}

impl<'a> View<'a> {
    /// Weighs words and scales features by the fold's train rows alone.
    pub fn of(pool: &'a Pool, fold: &'a Fold) -> View<'a> {
        let words = pool.corpus.weighted(&fold.train);
        View { pool, fold, words, surface: surface::scaled(&pool.surface, &fold.train) }
    }

    fn measured(&self, foretell: impl Fn(usize) -> f64) -> Vec<f64> {
        self.fold.test.iter().map(|&row| foretell(row)).collect()
    }

    fn fitted(&self, goal: &Goal) -> (Vec<usize>, Vec<f64>) {
        self.fold.train.iter().filter_map(|&row| Some((row, goal.truth[row]?))).unzip()
    }

    fn means(&self, goal: &Goal, group: impl Fn(usize) -> &'a String) -> Vec<f64> {
        let (rows, truths) = self.fitted(goal);
        let mut groups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        rows.iter().zip(&truths).for_each(|(&row, &truth)| groups.entry(group(row)).or_default().push(truth));
        let means: BTreeMap<&str, f64> = groups.iter().map(|(&name, truths)| (name, mean(truths))).collect();
        let all = mean(&truths);
        self.measured(|row| means.get(group(row).as_str()).copied().unwrap_or(all))
    }
}
