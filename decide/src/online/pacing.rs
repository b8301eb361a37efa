//! Holding a budget: the product's pace sets the price of money, its beliefs the chances.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::bootstrap::{Draws, draws};
use crate::plot;
use stint_decide::learn::{BudgetPacer, PaceSettings, RemainingBudget};
use stint_types::units::{Money, SeededRng, Timestamp};

use super::arena::{ARMS, Arena};
use super::learned::Learned;
use super::policy::{Policy, Utility, best};
use super::race::warm;
use super::{Report, SEEDS, STEPS, mean};

/// Dollars for a thousand requests.
const BUDGETS: [f64; 4] = [0.1, 0.2, 0.5, 1.0];
/// What a right answer is worth, in dollars: the default of a route.
const WORTH: f64 = 0.05;
/// Requests of a window that is looked at.
const WINDOW: usize = 500;
/// Milliseconds between requests.
const GAP: i64 = 1_000;

/// What came of one run.
struct Paced {
    costs: Vec<f64>,
    right: Vec<f64>,
    /// Of each question, what mixing two fixed models at random would get right at the same total.
    mixed: Vec<f64>,
    prices: Vec<f64>,
}

/// Runs every budget over every order of the questions.
pub fn report(arenas: &[Arena]) -> Report {
    let mut report = Report::default();
    report.text.push_str(&format!(
        "# Holding a budget\n\n`make decide` writes this file. The same models, prices, questions and prior as in \
         `online.md`, {SEEDS} orders of {STEPS} requests, one a second, with a limit of money that lasts as long. The \
         price of money is the product's `learn::Pace`, told that requests come evenly from the first one on (the gateway knows no such \
         thing, and takes ten minutes without any for granted), from a price of 1 on; each request goes to the \
         model with the highest worth·success − price·cost, at a worth of {WORTH} dollars and with chances from the \
         product's book. Windows are all {WINDOW} neighbouring requests, the first ones among them. Mixing sends each \
         request to one of two fixed models at random, the best two for what was spent. How soon a debt is paid back was \
         chosen on other models and other orders.\n\n\
         | dollars per 1,000 | right | mixing | better by | spent, against the budget | worst order | worst window, mean \
         of orders | worst window of all | median price |\n|---|---|---|---|---|---|---|---|---|\n"
    ));
    let mut lines = BTreeMap::new();
    for budget in BUDGETS {
        let runs: Vec<Paced> =
            arenas.iter().enumerate().map(|(seed, arena)| run(arena, budget, seed as u64)).collect();
        row(&mut report.text, arenas, &runs, budget);
        lines.insert(format!("{budget} dollars per 1,000"), spending(&runs[0].costs, budget));
    }
    let title = format!("Spending over {WINDOW} requests against the budget, first order");
    report
        .pictures
        .insert("pacing.svg".into(), plot::lines(&title, "requests", "share of the budget", &lines));
    report
}

/// As the gateway has it, but that requests are known to come evenly from the first one on.
fn even() -> PaceSettings {
    PaceSettings { unseen: 0.0, ..PaceSettings::default() }
}

fn run(arena: &Arena, budget: f64, seed: u64) -> Paced {
    let (settings, mut pace, mut dice) = (even(), BudgetPacer::default(), SeededRng::new(3_000 + seed));
    let mut book = Learned::new(arena, Utility { lambda: 0.0, scale: 1.0 }, warm());
    let mut left = Money::from_dollars_up(budget / 1e3 * STEPS as f64);
    let mut now = Timestamp(0);
    let end = Timestamp(GAP * i64::try_from(STEPS + 1).unwrap_or(i64::MAX));
    let mut paced = Paced { costs: Vec::new(), right: Vec::new(), mixed: Vec::new(), prices: Vec::new() };
    for question in arena.online.iter().take(STEPS) {
        now.0 += GAP;
        let believed = book.believed(question);
        let price = pace.price();
        let arm = best(std::array::from_fn(|arm| {
            let (success, spread, cost) = believed[arm];
            WORTH * (success + spread * dice.standard_normal()) - price * cost
        }));
        let (expected, spent) =
            (Money::from_dollars_up(believed[arm].2), Money::from_dollars_up(question.cost[arm]));
        pace.record_expected(now, expected, &RemainingBudget { start: Timestamp(0), end, left }, &settings);
        pace.settle(expected, spent, &settings);
        left = left.saturating_sub(spent);
        let utility = question.right[arm];
        book.learn(question, arm, &super::policy::Outcome { right: utility, utility });
        paced.costs.push(question.cost[arm]);
        paced.right.push(question.right[arm]);
        paced.prices.push(price);
    }
    paced.mixed = mixed(arena, mean(&paced.costs));
    paced
}

/// The best two models to mix at random so that this much is spent on average, question by question.
fn mixed(arena: &Arena, spent: f64) -> Vec<f64> {
    let questions = &arena.online[..STEPS];
    let average = |pick: &dyn Fn(usize) -> f64| (0..STEPS).map(pick).sum::<f64>() / STEPS as f64;
    let cost: [f64; ARMS] = std::array::from_fn(|arm| average(&|at| questions[at].cost[arm]));
    let right: [f64; ARMS] = std::array::from_fn(|arm| average(&|at| questions[at].right[arm]));
    let (mut top, mut pair) = (f64::MIN, (0, 0, 0.0));
    for low in 0..ARMS {
        for high in 0..ARMS {
            let share = (spent - cost[low]) / (cost[high] - cost[low]);
            let reached = right[low] + share * (right[high] - right[low]);
            if (0.0..=1.0).contains(&share) && reached > top {
                (top, pair) = (reached, (low, high, share));
            }
        }
    }
    let (low, high, share) = pair;
    questions
        .iter()
        .map(|question| (1.0 - share) * question.right[low] + share * question.right[high])
        .collect()
}

fn row(text: &mut String, arenas: &[Arena], runs: &[Paced], budget: f64) {
    let fair = budget / 1e3;
    let all = |pick: &dyn Fn(&Paced) -> f64| runs.iter().map(pick).collect::<Vec<f64>>();
    let (right, mixed) = (all(&|run| mean(&run.right)), all(&|run| mean(&run.mixed)));
    let spent = all(&|run| 100.0 * (mean(&run.costs) / fair - 1.0));
    let worst = all(&|run| 100.0 * (windows(&run.costs).fold(f64::MIN, f64::max) / fair - 1.0));
    let mut prices: Vec<f64> = runs.iter().flat_map(|run| run.prices.clone()).collect();
    prices.sort_by(f64::total_cmp);
    let furthest = spent.iter().copied().fold(0.0, |a: f64, b: f64| if b.abs() > a.abs() { b } else { a });
    let most = worst.iter().copied().fold(f64::MIN, f64::max);
    let _ = writeln!(
        text,
        "| {budget} | {:.4} | {:.4} | {} | {:+.2} % | {furthest:+.2} % | {:+.1} % | {most:+.1} % | {:.1} |",
        mean(&right),
        mean(&mixed),
        better(arenas, runs),
        mean(&spent),
        mean(&worst),
        prices[prices.len() / 2]
    );
}

fn better(arenas: &[Arena], runs: &[Paced]) -> String {
    let counts = draws(12_032, 400, 9);
    let (mut sums, mut asked) = (vec![0.0; 12_032], vec![0.0; 12_032]);
    for (arena, run) in arenas.iter().zip(runs) {
        for (at, (right, mixed)) in run.right.iter().zip(&run.mixed).enumerate() {
            sums[arena.online[at].row] += right - mixed;
            asked[arena.online[at].row] += 1.0;
        }
    }
    let total = |values: &[f64], counts: &[f64]| values.iter().zip(counts).map(|(v, c)| v * c).sum::<f64>();
    let interval =
        Draws::of(&counts, |counts| total(&sums, counts) / total(&asked, counts).max(1.0)).interval();
    format!("{:+.4} [{:+.4}, {:+.4}]", interval.value, interval.low, interval.high)
}

/// The mean cost over every window.
fn windows(costs: &[f64]) -> impl Iterator<Item = f64> {
    costs.windows(WINDOW).map(mean)
}

fn spending(costs: &[f64], budget: f64) -> Vec<(f64, f64)> {
    let point = |(at, cost): (usize, f64)| ((at + WINDOW) as f64, cost / (budget / 1e3));
    windows(costs).enumerate().step_by(20).map(point).collect()
}
