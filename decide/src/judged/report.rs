//! The tables.

use std::fmt::Write;

use crate::bootstrap::{Draws, average, draws};
use crate::measure::{Ranking, mean};
use crate::routing::score_shown;

use super::rules::Rule;
use super::trial::{Judging, Trial};
use super::world::World;
use super::{JUDGED, mix};

/// How often the questions are drawn anew.
const DRAWS: usize = 300;
/// After how many judged questions a chance is held against what happened.
const EARLY: usize = 200;
const MODES: [(Judging, &str); 2] =
    [(Judging::All, "both answers judged"), (Judging::One, "one answer judged")];

/// What is written.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Markdown.
    pub(super) text: String,
}

/// What each rule's order is worth, on the draws.
struct Areas {
    areas: Vec<Draws>,
    gap: f64,
}

impl Report {
    /// Opens with what is measured.
    pub(super) fn opening(preface: &str) -> Report {
        Report { text: format!("{preface}\n") }
    }

    /// All pairs in one world.
    pub(super) fn world(&mut self, world: &World, pairs: &[[&str; 2]]) {
        self.heading(&world.name, world.judged.len(), world.measured.len());
        for (judging, name) in MODES {
            self.table(name);
            let trials: Vec<Areas> = pairs.iter().map(|pair| areas(&[world], pair, judging)).collect();
            self.rows(&trials);
            self.each(pairs, &trials);
        }
        self.calibration(&[world], pairs);
        self.mix(world);
    }

    fn mix(&mut self, world: &World) {
        let _ = write!(
            self.text,
            "\n| four priced models: AIQ less that of the best mixtures of single ones | |\n|---|---|\n"
        );
        for (name, gain) in mix::gains(world) {
            let _ = writeln!(self.text, "| {name} | {} |", score_shown(gain.interval(), 4));
        }
    }

    /// The mixtures in several worlds.
    pub(super) fn mixes(&mut self, name: &str, worlds: &[World]) {
        let _ = write!(
            self.text,
            "\n| {name}, mean of {} | | more than the prior alone |\n|---|---|---|\n",
            worlds.len()
        );
        for (name, gain, more) in mix::usual_gains(worlds) {
            let [gain, more] = [gain, more].map(|draws| score_shown(draws.interval(), 4));
            let _ = writeln!(self.text, "| {name} | {gain} | {more} |");
        }
    }

    /// One set in folds.
    pub(super) fn folds(&mut self, name: &str, worlds: &[World], pairs: &[[&str; 2]]) {
        let worlds: Vec<&World> = worlds.iter().collect();
        let measured = worlds.iter().map(|world| world.measured.len()).sum();
        self.heading(name, worlds.first().map_or(0, |world| world.judged.len()), measured);
        for (judging, name) in MODES {
            self.table(name);
            let trials: Vec<Areas> = pairs.iter().map(|pair| areas(&worlds, pair, judging)).collect();
            self.rows(&trials);
        }
        self.calibration(&worlds, pairs);
    }

    fn heading(&mut self, name: &str, judged: usize, measured: usize) {
        let _ = write!(self.text, "\n## {name}\n\n{judged} questions judged, {measured} measured.\n");
    }

    fn table(&mut self, name: &str) {
        let _ = write!(
            self.text,
            "\n| {name} | APGR, mean of the pairs | Stint is better by | more right than a random split, points |\n|---|---|---|---|\n"
        );
    }

    fn rows(&mut self, trials: &[Areas]) {
        let whole = |rule: usize| average(trials.iter().map(|trial| &trial.areas[rule]));
        let own = Rule::ALL.iter().position(|rule| *rule == Rule::Stint).unwrap_or(0);
        let own = whole(own);
        for (at, rule) in Rule::ALL.iter().enumerate() {
            let draws = whole(at);
            let points = mean(
                &trials
                    .iter()
                    .map(|trial| (trial.areas[at].value - 0.5) * trial.gap * 100.0)
                    .collect::<Vec<_>>(),
            );
            let better = if *rule == Rule::Stint {
                String::new()
            } else {
                score_shown(own.minus(&draws).interval(), 3)
            };
            let _ = writeln!(
                self.text,
                "| {} | {} | {better} | {points:+.2} |",
                rule.name(),
                score_shown(draws.interval(), 3)
            );
        }
    }

    fn each(&mut self, pairs: &[[&str; 2]], trials: &[Areas]) {
        let _ = write!(self.text, "\n| Stint | APGR | the best of the others |\n|---|---|---|\n");
        for ([weak, strong], trial) in pairs.iter().zip(trials) {
            let (mut own, mut best) = (0.0, (0.0, String::new()));
            for (rule, area) in Rule::ALL.iter().zip(&trial.areas) {
                match rule {
                    Rule::Stint => own = area.value,
                    Rule::Prior => {}
                    _ if area.value > best.0 => best = (area.value, rule.name()),
                    _ => {}
                }
            }
            let _ = writeln!(self.text, "| {weak} → {strong} | {own:.3} | {:.3} ({}) |", best.0, best.1);
        }
    }

    /// How far chances are from what happened, by tenth.
    fn calibration(&mut self, worlds: &[&World], pairs: &[[&str; 2]]) {
        let _ = write!(
            self.text,
            "\nForetold and reached success after {EARLY} judged questions, by tenths of the measured: mean distance, the mean over \
             models of the largest.\n\n| | mean | largest |\n|---|---|---|\n"
        );
        for (name, questions) in [("prior alone", 0), ("Stint", EARLY), ("Stint after all", JUDGED)] {
            let distances: Vec<Vec<f64>> =
                pairs.iter().flat_map(|pair| distances(worlds, pair, questions)).collect();
            let means: Vec<f64> = distances.iter().map(|each| mean(each)).collect();
            let largest: Vec<f64> =
                distances.iter().map(|each| each.iter().copied().fold(0.0, f64::max)).collect();
            let _ = writeln!(self.text, "| {name} | {:.3} | {:.3} |", mean(&means), mean(&largest));
        }
    }
}

fn areas(worlds: &[&World], pair: &[&str; 2], judging: Judging) -> Areas {
    let mut scores: Vec<Vec<f64>> = vec![Vec::new(); Rule::ALL.len()];
    let mut gains = Vec::new();
    for world in worlds {
        let trial = Trial::of(world, pair);
        let (rows, judgements) = (trial.measured(), trial.judgements(judging, JUDGED));
        for (rule, scores) in Rule::ALL.iter().zip(&mut scores) {
            let foretold = rule.gains(&trial, &judgements, &rows);
            let usual = if worlds.len() > 1 { mean(&foretold) } else { 0.0 };
            scores.extend(foretold.iter().map(|gain| gain - usual));
        }
        let right = |row: usize, model: usize| trial.right(row, model).unwrap_or_default();
        gains.extend(rows.iter().map(|&row| right(row, 1) - right(row, 0)));
    }
    let counts = draws(gains.len(), DRAWS, 5);
    let area = |scores: &Vec<f64>| {
        let ranking = Ranking::of(scores);
        Draws::of(&counts, |counts| ranking.deferral(&gains, counts).area())
    };
    Areas { areas: scores.iter().map(area).collect(), gap: mean(&gains) }
}

/// By model, the distance in each tenth of the measured questions.
fn distances(worlds: &[&World], pair: &[&str; 2], questions: usize) -> Vec<Vec<f64>> {
    let mut models: Vec<Vec<(f64, f64)>> = vec![Vec::new(); pair.len()];
    for world in worlds {
        let trial = Trial::of(world, pair);
        let rows = trial.measured();
        let believed = trial.believed(&trial.judgements(Judging::All, questions), &rows);
        for (&row, chances) in rows.iter().zip(&believed) {
            for (model, pairs) in models.iter_mut().enumerate() {
                pairs.push((chances[model], trial.right(row, model).unwrap_or_default()));
            }
        }
    }
    let tenths = |mut pairs: Vec<(f64, f64)>| {
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let size = pairs.len().div_ceil(10).max(1);
        let distance = |part: &[(f64, f64)]| {
            (mean(&part.iter().map(|pair| pair.0).collect::<Vec<_>>())
                - mean(&part.iter().map(|pair| pair.1).collect::<Vec<_>>()))
            .abs()
        };
        pairs.chunks(size).map(distance).collect()
    };
    models.into_iter().map(tenths).collect()
}
