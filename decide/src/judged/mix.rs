//! Choosing among several priced models after some answers were judged.

use crate::bootstrap::{Draws, average, draws};
use crate::measure::{mean, quality_area};
use crate::routing::{dollars, price};

use super::JUDGED;
use super::trial::{BelievedAnswer, Judging, Trial};
use super::world::World;

/// The models, the cheapest first.
const MODELS: [&str; 4] = [
    "Phi-3-mini-4k-instruct",
    "Mixtral-8x7B-Instruct-v0.1",
    "Meta-Llama-3_1-70B-Instruct",
    "gemini-1.5-pro-002",
];
/// How often the questions are drawn anew.
const DRAWS: usize = 200;

/// What a way of choosing costs and reaches, question by question.
type Choices = Vec<(f64, f64)>;

/// What was judged before.
const WAYS: [(&str, Option<Judging>); 3] = [
    ("prior alone", None),
    ("every answer judged", Some(Judging::All)),
    ("one answer judged", Some(Judging::One)),
];

/// The mean over several worlds, and how much more that is than of the prior.
pub(super) fn usual_gains(worlds: &[World]) -> Vec<(&'static str, Draws, Draws)> {
    let all: Vec<Vec<(&str, Draws)>> = worlds.iter().map(gains).collect();
    let usual = |at: usize| average(all.iter().map(|gains| &gains[at].1));
    let prior = usual(0);
    let way = |(at, (name, _)): (usize, &(&'static str, Option<Judging>))| {
        let gain = usual(at);
        let more = gain.minus(&prior);
        (*name, gain, more)
    };
    WAYS.iter().enumerate().map(way).collect()
}

/// By what was judged, how much more area under quality over cost than single models and their mixtures have.
pub(super) fn gains(world: &World) -> Vec<(&'static str, Draws)> {
    let trial = Trial::of(world, &MODELS);
    let rows = trial.measured();
    let single: Vec<Choices> = (0..MODELS.len()).map(|model| always(&trial, &rows, model)).collect();
    let counts = draws(rows.len(), DRAWS, 6);
    let gain = |(name, judging): (&'static str, Option<Judging>)| {
        let judgements = judging.map(|judging| trial.judgements(judging, JUDGED)).unwrap_or_default();
        let believed = trial.believed_answers(&judgements, &rows);
        let mixed: Vec<Choices> = (0..=80).map(|step| chosen(&single, &believed, step)).collect();
        let area = |counts: &[f64]| {
            let hull = points(&single, counts);
            let all: Vec<(f64, f64)> = hull.iter().copied().chain(points(&mixed, counts)).collect();
            area(&all, &hull) - area(&hull, &hull)
        };
        (name, Draws::of(&counts, area))
    };
    WAYS.map(gain).into()
}

fn always(trial: &Trial<'_>, rows: &[usize], model: usize) -> Choices {
    let cost = |row: usize| dollars(&trial.world.pool, row, MODELS[model]);
    rows.iter().map(|&row| (cost(row), trial.right(row, model).unwrap_or_default())).collect()
}

/// The most chance less λ times what the question is believed to cost, as a plan weighs it.
fn chosen(single: &[Choices], believed: &[Vec<BelievedAnswer>], step: i32) -> Choices {
    let usual = single.iter().map(|each| mean(&each.iter().map(|one| one.0).collect::<Vec<_>>()));
    let lambda = 10.0_f64.powf(f64::from(step) / 10.0 - 5.0) / usual.fold(0.0, f64::max);
    let best = |answers: &Vec<BelievedAnswer>| {
        let cost = |model: usize| price(MODELS[model]) * answers[model].tokens / 1e6;
        let value = |model: usize| answers[model].chance - lambda * cost(model);
        (0..single.len()).max_by(|&a, &b| value(a).total_cmp(&value(b))).unwrap_or(0)
    };
    believed.iter().enumerate().map(|(at, answers)| single[best(answers)][at]).collect()
}

fn points(ways: &[Choices], counts: &[f64]) -> Vec<(f64, f64)> {
    let whole: f64 = counts.iter().sum();
    let point = |way: &Choices| {
        let sum = |value: fn(&(f64, f64)) -> f64| {
            way.iter().zip(counts).map(|(one, count)| value(one) * count).sum::<f64>() / whole
        };
        (sum(|one| one.0), sum(|one| one.1))
    };
    ways.iter().map(point).collect()
}

fn area(all: &[(f64, f64)], single: &[(f64, f64)]) -> f64 {
    let costs = || single.iter().map(|point| point.0);
    quality_area(all, costs().fold(f64::INFINITY, f64::min), costs().fold(0.0, f64::max))
}
