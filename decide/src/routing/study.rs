//! Runs every router on the same folds.

use std::collections::BTreeMap;

use crate::folds::Fold;
use crate::measure::mean;

use super::baselines::{Baseline, View};
use super::pool::{Goal, Kind, Pool};

/// Questions, what is to be foretold of them, and the divisions.
pub struct Study<'a> {
    /// What it is called in a report.
    pub name: &'static str,
    /// The questions.
    pub pool: &'a Pool,
    /// What is foretold.
    pub goals: Vec<Goal>,
    /// Divisions of all rows, one after another: each foretells its test rows once.
    pub repeats: Vec<Vec<Fold>>,
}

/// What one router foretold of a goal: for each repeat and each row; none where the row is not measured.
pub type Foretold = Vec<Vec<Option<f64>>>;

/// Of each router, what it foretold of each goal, by the goal's place.
pub type Results = BTreeMap<&'static str, Vec<Foretold>>;

/// What fits itself to a fold's train rows, and then foretells many goals of its test rows.
pub trait Router: Sync {
    /// Its name in a report.
    fn name(&self) -> &'static str;
    /// What it foretells of each goal for each test row.
    fn foretell(&self, pool: &Pool, fold: &Fold, goals: &[Goal]) -> Vec<Vec<f64>>;
}

impl Study<'_> {
    /// Runs the baselines and the given routers.
    pub fn run(&self, routers: &[&dyn Router]) -> Results {
        let rows = self.pool.rows.len();
        let empty: Vec<Foretold> = vec![vec![vec![None; rows]; self.repeats.len()]; self.goals.len()];
        let mut results = Results::new();
        let names = Baseline::ALL.iter().map(|baseline| baseline.name());
        for name in names.chain(routers.iter().map(|router| router.name())) {
            results.insert(name, empty.clone());
        }
        results.insert(
            "oracle",
            self.goals.iter().map(|goal| vec![goal.truth.clone(); self.repeats.len()]).collect(),
        );
        let work: Vec<(usize, &Fold)> = self
            .repeats
            .iter()
            .enumerate()
            .flat_map(|(at, folds)| folds.iter().map(move |fold| (at, fold)))
            .collect();
        for (repeat, fold, name, foretold) in self.all(&work, routers) {
            for (goal, values) in foretold.into_iter().enumerate() {
                if let Some(goals) = results.get_mut(name) {
                    let rows = &mut goals[goal][repeat];
                    fold.test.iter().zip(values).for_each(|(&row, value)| rows[row] = Some(value));
                }
            }
        }
        results
    }

    /// One fold after another on each processor.
    fn all<'f>(&self, work: &[(usize, &'f Fold)], routers: &[&dyn Router]) -> Vec<Done<'f>> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let share = |at: usize| work.iter().skip(at).step_by(threads);
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads)
                .map(|at| {
                    scope.spawn(move || {
                        share(at)
                            .flat_map(|&(repeat, fold)| self.one(repeat, fold, routers))
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
        })
    }

    fn one<'f>(&self, repeat: usize, fold: &'f Fold, routers: &[&dyn Router]) -> Vec<Done<'f>> {
        let view = View::of(self.pool, fold);
        let seed = repeat as u64 * 1000 + fold.test.len() as u64;
        let of =
            |baseline: Baseline| self.goals.iter().map(|goal| baseline.foretell(&view, goal, seed)).collect();
        let baselines = Baseline::ALL.into_iter().map(|baseline| (baseline.name(), of(baseline)));
        let ours =
            routers.iter().map(|router| (router.name(), router.foretell(self.pool, fold, &self.goals)));
        let all =
            baselines.chain(ours).map(|(name, foretold)| (repeat, fold, name, self.relative(fold, foretold)));
        all.collect()
    }

    /// What is only ranked is told relative to the mean of the fitted rows, for every router: that mean moves
    /// against the truth of what was left out, and says nothing of a question.
    fn relative(&self, fold: &Fold, mut foretold: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
        for (goal, values) in self.goals.iter().zip(&mut foretold) {
            if !matches!(goal.kind, Kind::Success(_)) {
                let fitted: Vec<f64> = fold.train.iter().filter_map(|&row| goal.truth[row]).collect();
                let mean = mean(&fitted);
                values.iter_mut().for_each(|value| *value -= mean);
            }
        }
        foretold
    }
}

type Done<'f> = (usize, &'f Fold, &'static str, Vec<Vec<f64>>);
