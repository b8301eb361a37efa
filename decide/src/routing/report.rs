//! The tables.

use std::collections::BTreeMap;

use crate::bootstrap::{self, Draws};
use crate::measure::{brier, calibration_error, mean, quality_area};

use super::baselines::Baseline;
use super::pool::{Goal, Kind, Pool};
use super::score::{Measured, Routed, dollars, shown};
use super::study::{Foretold, Results, Router, Study};

/// How often the questions are drawn anew.
const DRAWS: usize = 1000;
/// For correlations, which sort each draw.
const DRAWS_SORTED: usize = 200;

/// The tables so far, and the curves that go with them.
#[derive(Debug, Default)]
pub struct Report {
    /// Markdown.
    pub text: String,
    /// By title, each router's deferral curve.
    pub curves: Vec<Figure>,
}

/// One picture's lines.
#[derive(Debug)]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// By router.
    pub lines: BTreeMap<String, Vec<(f64, f64)>>,
}

impl Report {
    /// Runs a study and adds its tables.
    pub fn add(&mut self, study: &Study<'_>, routers: &[&dyn Router]) {
        let results = study.run(routers);
        let mut order: Vec<&'static str> = Baseline::ALL.iter().map(|baseline| baseline.name()).collect();
        order.extend(routers.iter().map(|router| router.name()));
        order.push("oracle");
        let ours: Vec<&'static str> = routers.iter().map(|router| router.name()).collect();
        let page = Page { study, results: &results, order: &order, ours: &ours };
        self.line(&format!("\n## {}\n", study.name));
        for (at, goal) in study.goals.iter().enumerate() {
            match goal.kind {
                Kind::Gain { .. } => self.gain(&page, at, goal),
                Kind::Difficulty => self.difficulty(&page, at, goal),
                Kind::Success(_) => {}
            }
        }
        self.successes(&page);
    }

    fn line(&mut self, line: &str) {
        println!("{line}");
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn gain(&mut self, page: &Page<'_>, at: usize, goal: &Goal) {
        let measured = Measured::of(goal, page.foretold("random", at));
        let draws = bootstrap::draws(measured.count(), DRAWS, 1);
        let routed = |name: &&'static str| {
            (*name, measured.routed(page.study.pool, goal, page.foretold(name, at), &draws))
        };
        let figures: BTreeMap<&str, Routed> = page.order.iter().map(routed).collect();
        self.line(&format!("\n### {}, {} questions\n", goal.name, measured.count()));
        self.line("| router | APGR | CPT50 % | CPT80 % | AIQ | $ per 1,000 solved at CPT80 |");
        self.line("|---|---|---|---|---|---|");
        for name in page.order {
            let Routed { apgr, cpt50, cpt80, aiq, cost_of_pass, .. } = &figures[name];
            let (apgr, half, most) = (shown(apgr.interval(), 3), 100.0 * cpt50, 100.0 * cpt80);
            self.line(&format!("| {name} | {apgr} | {half:.1} | {most:.1} | {aiq:.4} | {cost_of_pass:.3} |"));
        }
        let draws = figures.iter().map(|(name, figure)| (*name, &figure.apgr)).collect();
        self.verdicts(page, "APGR", &draws);
        let lines = figures.iter().map(|(name, figure)| ((*name).to_owned(), figure.curve.clone())).collect();
        self.curves.push(Figure { title: format!("{}: {}", page.study.name, goal.name), lines });
    }

    fn difficulty(&mut self, page: &Page<'_>, at: usize, goal: &Goal) {
        let measured = Measured::of(goal, page.foretold("random", at));
        let draws = bootstrap::draws(measured.count(), DRAWS_SORTED, 2);
        let named = page.order.iter().filter(|&&name| name != "oracle");
        let figures: BTreeMap<&str, Draws> =
            named.map(|&name| (name, measured.correlated(page.foretold(name, at), &draws))).collect();
        self.line(
            "\n### Difficulty (the share of all models that are wrong)\n\n| estimate | Spearman |\n|---|---|",
        );
        for name in page.order.iter().filter(|&&name| name != "oracle") {
            self.line(&format!("| {name} | {} |", shown(figures[name].interval(), 3)));
        }
        self.verdicts(page, "Spearman", &figures.iter().map(|(name, draws)| (*name, draws)).collect());
    }

    fn verdicts(&mut self, page: &Page<'_>, what: &str, figures: &BTreeMap<&str, &Draws>) {
        for ours in page.ours {
            self.line(&format!("\n{what} of {ours} less that of each rule, paired:\n"));
            for rule in Baseline::ALL {
                let difference = figures[ours].minus(figures[rule.name()]).interval();
                let verdict = match difference {
                    _ if difference.low > 0.0 => "better",
                    _ if difference.high < 0.0 => "worse",
                    _ => "not to be told apart",
                };
                self.line(&format!("- {}: {} {verdict}", rule.name(), shown(difference, 3)));
            }
        }
    }

    /// How well chances of success are calibrated, and what choosing among all priced models by them gains.
    fn successes(&mut self, page: &Page<'_>) {
        let arms: Vec<(usize, &Goal)> = page.arms().collect();
        if arms.is_empty() {
            return;
        }
        self.line("\n### Chances of success, and choosing among five models by them\n");
        self.line("| estimate | Brier, mean of five models | calibration error | AIQ, five models |");
        self.line("|---|---|---|---|");
        let names = page.order.iter().filter(|&&name| !matches!(name, "random" | "prompt length"));
        for &name in names {
            let scored: Vec<(f64, f64)> =
                arms.iter().map(|&(at, goal)| chances(goal, page.foretold(name, at))).collect();
            let (briers, errors): (Vec<f64>, Vec<f64>) = scored.into_iter().unzip();
            let area = page.area(&arms, name);
            self.line(&format!("| {name} | {:.4} | {:.4} | {area:.4} |", mean(&briers), mean(&errors)));
        }
        let single = page.single(&arms);
        self.line(&format!("| no text at all (the hull of single models) | | | {single:.4} |"));
    }
}

fn chances(goal: &Goal, foretold: &Foretold) -> (f64, f64) {
    let measured = Measured::of(goal, foretold);
    let repeats = foretold.iter().map(|repeat| {
        let chances: Vec<f64> = measured.scores(repeat).iter().map(|chance| chance.clamp(0.0, 1.0)).collect();
        (brier(&chances, measured.truth()), calibration_error(&chances, measured.truth()))
    });
    let (briers, errors): (Vec<f64>, Vec<f64>) = repeats.unzip();
    (mean(&briers), mean(&errors))
}

/// One study's results, as its tables need them.
struct Page<'a> {
    study: &'a Study<'a>,
    results: &'a Results,
    order: &'a [&'static str],
    ours: &'a [&'static str],
}

impl Page<'_> {
    fn foretold(&self, name: &str, goal: usize) -> &Foretold {
        &self.results[name][goal]
    }

    fn arms(&self) -> impl Iterator<Item = (usize, &Goal)> {
        self.study.goals.iter().enumerate().filter(|(_, goal)| matches!(goal.kind, Kind::Success(_)))
    }

    /// Mean cost and quality of one model for all questions.
    fn whole(&self, goal: &Goal) -> (f64, f64) {
        let Kind::Success(model) = &goal.kind else { return (0.0, 0.0) };
        let rows: Vec<usize> = (0..goal.truth.len()).filter(|&row| goal.truth[row].is_some()).collect();
        let costs: Vec<f64> = rows.iter().map(|&row| dollars(self.study.pool, row, model)).collect();
        (mean(&costs), mean(&goal.truth.iter().flatten().copied().collect::<Vec<_>>()))
    }

    fn single(&self, arms: &[(usize, &Goal)]) -> f64 {
        let points: Vec<(f64, f64)> = arms.iter().map(|(_, goal)| self.whole(goal)).collect();
        let (cheapest, dearest) = range(&points);
        quality_area(&points, cheapest, dearest)
    }

    /// AIQ of choosing the most chance less λ times cost, for many λ; single models are at hand too.
    fn area(&self, arms: &[(usize, &Goal)], name: &str) -> f64 {
        let wholes: Vec<(f64, f64)> = arms.iter().map(|(_, goal)| self.whole(goal)).collect();
        let (cheapest, dearest) = range(&wholes);
        let mut points = wholes.clone();
        points.extend((0..=80).map(|step| {
            let lambda = 10.0_f64.powf(f64::from(step) / 10.0 - 5.0) / dearest;
            self.chosen(arms, name, &wholes, lambda)
        }));
        quality_area(&points, cheapest, dearest)
    }

    fn chosen(&self, arms: &[(usize, &Goal)], name: &str, wholes: &[(f64, f64)], lambda: f64) -> (f64, f64) {
        let (mut cost, mut quality, mut count) = (0.0, 0.0, 0.0);
        let repeat = |at: usize| &self.foretold(name, at)[0];
        for row in 0..self.study.pool.rows.len() {
            let known = arms.iter().all(|&(at, goal)| goal.truth[row].is_some() && repeat(at)[row].is_some());
            let value = |arm: &usize| repeat(arms[*arm].0)[row].unwrap_or(0.0) - lambda * wholes[*arm].0;
            let best = (0..arms.len()).max_by(|a, b| value(a).total_cmp(&value(b)));
            if let (true, Some(best)) = (known, best) {
                cost += model(arms[best].1, self.study.pool, row);
                quality += arms[best].1.truth[row].unwrap_or(0.0);
                count += 1.0;
            }
        }
        (cost / f64::max(count, 1.0), quality / f64::max(count, 1.0))
    }
}

fn model(goal: &Goal, pool: &Pool, row: usize) -> f64 {
    if let Kind::Success(model) = &goal.kind { dollars(pool, row, model) } else { 0.0 }
}

fn range(points: &[(f64, f64)]) -> (f64, f64) {
    let costs = || points.iter().map(|point| point.0);
    (costs().fold(f64::INFINITY, f64::min), costs().fold(0.0, f64::max))
}

impl std::fmt::Display for Report {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.text)
    }
}
