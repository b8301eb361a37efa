//! Questions in three parts: those that a prior was fitted on, those that are judged, and those that are measured.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::data::Row;
use crate::folds;
use crate::routing::Pool;
use crate::train::{self, Lessons};
use stint_decide::estimate;
use stint_types::catalog::{Calibration, Prior};
use stint_types::units::SeededRng;

use super::JUDGED;

/// The order in which questions are judged.
const SEED: u64 = 301;
/// In how many ways the categories that no prior was fitted on are divided, of each half.
const DIVISIONS: u64 = 3;

/// A prior with questions that it never saw.
pub(super) struct World {
    /// What it is called in a report.
    pub(super) name: String,
    /// All questions.
    pub(super) pool: Arc<Pool>,
    /// What the gateway ships, with this prior in place of its own.
    pub(super) calibration: Calibration,
    /// Questions that may be judged, in order.
    pub(super) judged: Vec<usize>,
    /// Questions that are measured.
    pub(super) measured: Vec<usize>,
}

impl World {
    /// A prior fitted on a random half of the questions; the rest is judged and measured.
    pub(super) fn beside(rows: &[Row], measured: &[&str], shipped: &Calibration) -> World {
        let fold = folds::random(rows.len(), 2, SEED).swap_remove(0);
        let rest = shuffled(fold.test.clone());
        let parts = (fold.train, split(rest));
        World::of("questions like those of the prior", rows, (measured, shipped), parts)
    }

    /// A prior fitted on every other category; the questions of the rest are judged and measured.
    pub(super) fn among(rows: &[Row], measured: &[&str], shipped: &Calibration) -> World {
        let (fitted, rest) = halves(rows);
        let parts = (fitted, split(shuffled(rest)));
        World::of("categories that the prior never saw", rows, (measured, shipped), parts)
    }

    /// The same, but what is measured is of other categories than what was judged.
    pub(super) fn beyond(rows: &[Row], measured: &[&str], shipped: &Calibration) -> World {
        let (fitted, rest) = halves(rows);
        let name = "categories that neither the prior nor anybody who judged ever saw";
        World::of(name, rows, (measured, shipped), (fitted, divided(rows, rest, SEED)))
    }

    /// That in several ways: the prior fitted on either half of the categories, and the others divided anew each time.
    pub(super) fn divisions(rows: &[Row], measured: &[&str], shipped: &Calibration) -> Vec<World> {
        let (even, odd) = halves(rows);
        let pool = Arc::new(Pool::of(rows.to_vec()));
        let of_half = |(fitted, rest): (Vec<usize>, Vec<usize>)| {
            let calibration = calibrated(&pool, (measured, shipped), &fitted);
            let seeds = (0..DIVISIONS).map(|at| SEED + at);
            let world = |seed: u64| {
                let (judged, asked) = divided(rows, rest.clone(), seed);
                let name = String::new();
                World { name, pool: pool.clone(), calibration: calibration.clone(), judged, measured: asked }
            };
            seeds.map(world).collect::<Vec<_>>()
        };
        [(even.clone(), odd.clone()), (odd, even)].into_iter().flat_map(of_half).collect()
    }

    /// The shipped prior; five times another fifth is measured, and the rest judged.
    pub(super) fn folds(rows: &[Row], shipped: &Calibration) -> Vec<World> {
        let pool = Arc::new(Pool::of(rows.to_vec()));
        let world = |fold: folds::Fold| World {
            name: fold.name,
            pool: pool.clone(),
            calibration: shipped.clone(),
            judged: shuffled(fold.train),
            measured: fold.test,
        };
        folds::random(rows.len(), 5, SEED).into_iter().map(world).collect()
    }

    fn of(
        name: &str,
        rows: &[Row],
        (measured, shipped): (&[&str], &Calibration),
        (fitted, (judged, asked)): (Vec<usize>, (Vec<usize>, Vec<usize>)),
    ) -> World {
        let pool = Arc::new(Pool::of(rows.to_vec()));
        let calibration = calibrated(&pool, (measured, shipped), &fitted);
        World { name: name.into(), pool, calibration, judged, measured: asked }
    }
}

/// What the gateway ships, with a prior that was fitted on these questions.
fn calibrated(pool: &Pool, (measured, shipped): (&[&str], &Calibration), fitted: &[usize]) -> Calibration {
    let priors = shipped.priors.with_general(prior(pool, measured, fitted));
    Calibration { priors: Arc::new(priors), ..shipped.clone() }
}

/// A prior that knows nothing of the measured models, through the file that would ship.
fn prior(pool: &Pool, measured: &[&str], fitted: &[usize]) -> Prior {
    let mut rows = pool.rows.clone();
    for row in &mut rows {
        row.correct.retain(|model, _| !measured.contains(&model.as_str()));
        row.out_chars.retain(|model, _| !measured.contains(&model.as_str()));
    }
    let lessons = Lessons { rows: &rows, sights: &pool.sights, bare: &pool.bare };
    let prior = train::fit(lessons, fitted).prior;
    estimate::decode(&estimate::encode(&prior)).unwrap_or(prior)
}

/// The questions of every other category, and the rest.
fn halves(rows: &[Row]) -> (Vec<usize>, Vec<usize>) {
    let categories: BTreeSet<&str> = rows.iter().map(|row| row.category.as_str()).collect();
    let even: BTreeSet<&str> = categories.into_iter().step_by(2).collect();
    (0..rows.len()).partition(|&row| even.contains(rows[row].category.as_str()))
}

/// Questions of some categories to judge, and those of the others.
fn divided(rows: &[Row], rest: Vec<usize>, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let mut categories: Vec<&str> =
        rest.iter().map(|&row| rows[row].category.as_str()).collect::<BTreeSet<_>>().into_iter().collect();
    SeededRng::new(seed).shuffle(&mut categories);
    let judged = &categories[..categories.len() / 2];
    let (mut told, asked): (Vec<usize>, Vec<usize>) =
        shuffled(rest).into_iter().partition(|&row| judged.contains(&rows[row].category.as_str()));
    told.truncate(JUDGED);
    (told, asked)
}

fn split(mut rows: Vec<usize>) -> (Vec<usize>, Vec<usize>) {
    let rest = rows.split_off(JUDGED.min(rows.len()));
    (rows, rest)
}

fn shuffled(mut rows: Vec<usize>) -> Vec<usize> {
    SeededRng::new(SEED).shuffle(&mut rows);
    rows
}
