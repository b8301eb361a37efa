//! How a budget is held, and a success reached.

use crate::learn::{BudgetPacer, PaceSettings, RemainingBudget, SuccessPacer};
use stint_types::units::{Chance, Money, SeededRng, Timestamp};

const SECOND: i64 = 1_000;
const HOUR: i64 = 3_600 * SECOND;

/// Requests come evenly from the first one on.
fn even() -> PaceSettings {
    PaceSettings { unseen: 0.0, ..PaceSettings::default() }
}

/// One account in a window, with requests that cost a dollar over the price, more or less.
struct PacedAccount {
    pace: BudgetPacer,
    dice: SeededRng,
    left: Money,
    end: Timestamp,
}

impl PacedAccount {
    fn new(dollars: f64, end: i64) -> PacedAccount {
        PacedAccount {
            pace: BudgetPacer::default(),
            dice: SeededRng::new(3),
            left: Money::from_dollars_up(dollars),
            end: Timestamp(end),
        }
    }

    /// A request; returns what it cost.
    fn ask(&mut self, now: i64) -> f64 {
        let cost = (0.5 + self.dice.next_f64()) / self.pace.price();
        let spent = Money::from_dollars_up(cost);
        let budget = RemainingBudget { start: Timestamp(0), end: self.end, left: self.left };
        let expected = Money::from_dollars_up(1.0 / self.pace.price());
        self.pace.record_expected(Timestamp(now), expected, &budget, &even());
        self.pace.settle(expected, spent, &even());
        self.left = self.left.saturating_sub(spent);
        cost
    }
}

fn check(share: f64) {
    let mut account = PacedAccount::new(share * 10_000.0, 10_000 * SECOND);
    let spent: f64 = (0..10_000).map(|at| account.ask(at * SECOND)).sum();
    let missed = spent / (share * 10_000.0) - 1.0;
    assert!(missed.abs() < 0.01, "{share} of what was wanted: missed by {missed}");
}

#[test]
fn a_budget_lasts_to_the_end_of_its_window_and_is_used() {
    check(0.5);
    check(0.05);
    check(0.01);
}

#[test]
fn a_limit_is_no_aim() {
    let mut account = PacedAccount::new(1e6, 10_000 * SECOND);
    (0..10_000).for_each(|at| {
        account.ask(at * SECOND);
    });
    assert!((account.pace.price() - 1.0).abs() < 1e-9);
}

#[test]
fn after_a_quiet_night_there_is_no_spree() {
    // Ten days of eight busy hours, a request every ten seconds.
    let mut account = PacedAccount::new(0.2 * 28_800.0, 10 * 24 * HOUR);
    let mut days = Vec::new();
    for day in 0..10 {
        let hours: Vec<f64> = (0..8)
            .map(|hour| (0..360).map(|at| account.ask((day * 24 + hour) * HOUR + at * 10 * SECOND)).sum())
            .collect();
        let spent: f64 = hours.iter().sum();
        assert!(hours[0] < 0.35 * spent, "day {day}: {hours:?}");
        days.push(spent);
    }
    let even = 0.2 * 2_880.0;
    assert!(days[3..].iter().all(|day| (0.5..1.5).contains(&(day / even))), "{days:?}");
    assert!(days.iter().sum::<f64>() <= 10.0 * even * 1.001, "{days:?}");
}

#[test]
fn rate_and_target_are_told_in_dollars_a_second() {
    let mut account = PacedAccount::new(2_000.0, 10_000 * SECOND);
    (0..5_000).for_each(|at| {
        account.ask(at * SECOND);
    });
    assert!((account.pace.target() - 0.2).abs() < 0.01, "{}", account.pace.target());
    assert!((account.pace.rate() - 0.2).abs() < 0.08, "{}", account.pace.rate());
}

#[test]
fn a_stated_success_is_reached() {
    let (mut aim, mut dice) = (SuccessPacer::default(), SeededRng::new(9));
    let mut right = 0.0;
    for at in 0..6_000 {
        let chance = 0.6 + 0.1 * aim.factor().ln().clamp(-3.0, 3.0);
        let success = if dice.next_f64() < chance { 1.0 } else { 0.0 };
        aim.settle(Chance::new(success), Chance::new(0.75));
        right += if at >= 1_000 { success } else { 0.0 };
    }
    assert!((right / 5_000.0 - 0.75).abs() < 0.02, "{}", right / 5_000.0);
    assert!(aim.reached().unwrap() > Chance::new(0.6));
}

#[test]
fn a_success_out_of_reach_is_given_up_on_and_let_go_soon() {
    let mut aim = SuccessPacer::default();
    (0..100_000).for_each(|_| aim.settle(Chance::new(0.5), Chance::new(0.9)));
    (0..400).for_each(|_| aim.settle(Chance::new(1.0), Chance::new(0.8)));
    assert!(aim.factor() < 1.0, "{}", aim.factor());
}

#[test]
fn a_burst_at_first_is_not_taken_for_what_goes_on() {
    let (mut pace, settings) = (BudgetPacer::default(), PaceSettings::default());
    let (cost, max) = (Money::from_dollars_up(15e-6), Money::from_dollars_up(1.0));
    let budget = |spent| RemainingBudget {
        start: Timestamp(0),
        end: Timestamp(24 * HOUR),
        left: max.saturating_sub(spent),
    };
    for at in 0..50_u64 {
        pace.record_expected(
            Timestamp(9 * HOUR + i64::try_from(at).unwrap() * 100),
            cost,
            &budget(cost * at),
            &settings,
        );
        pace.settle(cost, cost, &settings);
    }
    assert!((pace.price() - 1.0).abs() < 1e-9, "fifty cheap requests in five seconds: {}", pace.price());
}
