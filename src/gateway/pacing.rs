//! What a dollar counts for each account now, so that its budgets last, and what success counts for on each route that
//! steers for a share of right answers.
//!
//! The price follows the account's spending as the ledger has it, that of other replicas included, and is kept in memory:
//! after a start it finds its level again within some hundred requests.

use std::sync::Arc;

use dashmap::DashMap;

use crate::catalog::Route;
use crate::learn::{Aim, Course, Pace, PaceSettings};
use crate::ledger::Line;
use crate::units::{AccountId, Amount, Chance, Facet, Holder, Money, Timestamp, Unit, Window};

use super::Gateway;

/// Whose budget of money, and over what time.
type Budget = (AccountId, Window);

/// The most budgets that are paced; those of others have the price of their face.
const BUDGETS_MAX: usize = 1 << 16;

/// How one budget is paced.
#[derive(Debug, Clone, Copy, Default)]
struct Paced {
    pace: Pace,
    /// What was spent of it when somebody last looked.
    seen: Money,
    /// What was spent of it lately, in dollars, and how much of that through this gateway.
    all: f64,
    own: f64,
}

/// What lately means: so many requests back.
const LATELY: f64 = 1_000.0;

impl Paced {
    /// Where it stands in its window, as far as it is this gateway's to spend: others spend the rest.
    fn course(&self, line: &Line) -> Option<Course> {
        let (Amount::Money(left), Some(end)) = (line.left, line.resets_at) else { return None };
        let share = if self.all > 0.0 { (self.own / self.all).clamp(SHARE_MIN, 1.0) } else { 1.0 };
        let left = Money::from_dollars_up(left.as_dollars() * share);
        let length = i64::try_from(line.limit.window.length().as_millis()).unwrap_or(i64::MAX);
        Some(Course { start: Timestamp(end.0.saturating_sub(length)), end, left })
    }

    fn spend(&mut self, line: &Line, own: Money) {
        let Amount::Money(spent) = line.spent else { return };
        // A new window starts from nothing.
        let since = if spent >= self.seen { spent.saturating_sub(self.seen) } else { spent };
        self.seen = spent;
        let keep = 1.0 - 1.0 / LATELY;
        self.all = keep * self.all + since.as_dollars().max(own.as_dollars());
        self.own = keep * self.own + own.as_dollars();
    }
}

/// The smallest part of a budget that a gateway takes for its own.
const SHARE_MIN: f64 = 1.0 / 64.0;

/// How a budget stands to its pace, for those who look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// What a dollar of it counts; 1 is its face.
    pub price: f64,
    /// What is spent, in dollars a second.
    pub rate: f64,
    /// What may be spent for it to last, in dollars a second.
    pub target: f64,
}

/// The prices of all accounts, and the aims of all routes. No lock is held across anything that waits.
#[derive(Debug, Default)]
pub(super) struct Pacing {
    settings: PaceSettings,
    budgets: DashMap<Budget, Paced>,
    aims: DashMap<Arc<str>, Aim>,
}

/// Budgets over these times last; what an hour or a minute leaves is a rate, and all time has no end.
const PACED: [Window; 3] = [Window::Day, Window::Week, Window::Month];

impl Pacing {
    /// What a dollar counts for an account: the highest price among its own budgets and those above it.
    pub(super) fn price(&self, account: &AccountId) -> f64 {
        if self.budgets.is_empty() {
            return 1.0;
        }
        let holders = account.lineage().map(AccountId::new);
        let budgets = holders.flat_map(|holder| PACED.map(|window| (holder.clone(), window)));
        budgets.filter_map(|budget| Some(self.budgets.get(&budget)?.pace.price())).fold(1.0, f64::max)
    }

    /// How the budget of a line stands, where it is paced.
    pub(super) fn standing(&self, account: &AccountId, line: &Line) -> Option<Standing> {
        let paced = self.budgets.get(&budget(account, line)?)?;
        let pace = &paced.pace;
        Some(Standing { price: pace.price(), rate: pace.rate(), target: pace.target() })
    }

    /// A request of this account that is expected to cost so much sets out; its limits stand so.
    pub(super) fn departed(&self, account: &AccountId, statement: &[Line], expected: Money, now: Timestamp) {
        for line in statement {
            let Some(budget) = budget(account, line) else { continue };
            if !self.budgets.contains_key(&budget) && self.budgets.len() >= BUDGETS_MAX {
                continue;
            }
            let mut paced = self.budgets.entry(budget).or_default();
            if let Some(course) = paced.course(line) {
                paced.pace.expect(now, expected, &course, &self.settings);
            }
        }
    }

    /// It has settled, and cost this; its limits stand so.
    pub(super) fn settled(&self, account: &AccountId, statement: &[Line], expected: Money, spent: Money) {
        for line in statement {
            let Some(mut paced) = budget(account, line).and_then(|budget| self.budgets.get_mut(&budget))
            else {
                continue;
            };
            paced.spend(line, spent);
            paced.pace.settle(expected, spent, &self.settings);
        }
    }

    /// By how much success counts more or less than a route says.
    pub(super) fn factor(&self, route: &Route) -> f64 {
        match route.success_target {
            Some(_) => self.aims.get(&route.name).map_or(1.0, |aim| aim.factor()),
            None => 1.0,
        }
    }

    /// An answer of this route was right with this chance, as somebody judged it or, before that, as it was predicted.
    pub(super) fn landed(&self, route: &Route, success: Chance) {
        if let Some(target) = route.success_target {
            self.aims.entry(route.name.clone()).or_default().settle(success, target);
        }
    }
}

impl Gateway {
    /// How the budget of one of an account's limits stands to its pace, where it is one that should last.
    pub fn standing(&self, account: &AccountId, line: &Line) -> Option<Standing> {
        self.pacing.standing(account, line)
    }

    /// Brings the series up to date that tell what money counts for these accounts.
    pub fn show_pace(&self, accounts: &[AccountId]) {
        let series = &self.parts.metrics.rollout;
        for account in accounts {
            let tenant = &[account.as_str()];
            series.shadow_price.with_label_values(tenant).set(self.pacing.price(account));
            let lines = self.account_statement(account);
            let standings = lines.iter().filter_map(|line| self.standing(account, line));
            if let Some(tightest) = standings.max_by(|a, b| a.price.total_cmp(&b.price)) {
                series.rate.with_label_values(tenant).set(tightest.rate);
                series.target.with_label_values(tenant).set(tightest.target);
            }
        }
    }
}

/// The budget that a line is about, where it is one that should last.
fn budget(account: &AccountId, line: &Line) -> Option<Budget> {
    let limit = &line.limit;
    let is_one = limit.unit == Unit::Money && limit.facet == Facet::Whole && PACED.contains(&limit.window);
    let holder = match &limit.holder {
        Holder::Key => account.clone(),
        Holder::Account(holder) => holder.clone(),
        Holder::Request => return None,
    };
    is_one.then_some((holder, limit.window))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Limit;

    const MAX: Money = Money(1_000_000_000);
    const DAY: i64 = 86_400_000;

    fn line(holder: Holder, spent: Money, end: i64) -> Line {
        let limit = Limit { holder, facet: Facet::Whole, unit: Unit::Money, window: Window::Day };
        Line {
            limit,
            max: Amount::Money(MAX),
            spent: Amount::Money(spent),
            reserved: Amount::Money(Money::ZERO),
            left: Amount::Money(MAX.saturating_sub(spent)),
            resets_at: Some(Timestamp(end)),
        }
    }

    /// A day until noon with a request a minute that costs so much, of which others spend a part.
    fn noon(pacing: &Pacing, cost: Money, others: Money) -> f64 {
        let (account, mut spent) = (AccountId::new("acme/alice"), Money::ZERO);
        let lines = |spent| [line(Holder::Account(AccountId::new("acme")), spent, DAY)];
        for minute in 0..720 {
            pacing.departed(&account, &lines(spent), cost, Timestamp(minute * 60_000));
            spent = spent + cost + others;
            pacing.settled(&account, &lines(spent), cost, cost);
        }
        pacing.price(&account)
    }

    #[test]
    fn who_spends_too_fast_pays_more_for_a_dollar_and_so_do_all_below() {
        let face = noon(&Pacing::default(), Money(300_000), Money::ZERO);
        assert!((face - 1.0).abs() < 1e-9, "half of what would last costs its face: {face}");
        let pacing = Pacing::default();
        let dear = noon(&pacing, Money(1_200_000), Money::ZERO);
        assert!(dear > 2.0, "nearly twice what would last: {dear}");
        assert!((pacing.price(&AccountId::new("acme/bob")) - dear).abs() < 1e-9);
        assert!((pacing.price(&AccountId::new("other")) - 1.0).abs() < 1e-9);
        let lines = [line(Holder::Account(AccountId::new("acme")), MAX, DAY)];
        let standing = pacing.standing(&AccountId::new("acme/alice"), &lines[0]).unwrap();
        assert!(standing.rate > standing.target, "{standing:?}");
    }

    #[test]
    fn what_other_gateways_spend_is_not_this_ones_to_spend() {
        let alone = noon(&Pacing::default(), Money(500_000), Money::ZERO);
        let beside = noon(&Pacing::default(), Money(500_000), Money(500_000));
        assert!(alone < 1.5 && beside > 2.0, "{alone} {beside}");
    }

    #[test]
    fn a_new_window_starts_from_nothing() {
        let (pacing, account) = (Pacing::default(), AccountId::new("a"));
        let spend = |spent, end, now| {
            let lines = [line(Holder::Key, spent, end)];
            pacing.departed(&account, &lines, Money(5_000), Timestamp(now));
            pacing.settled(&account, &lines, Money(5_000), Money(5_000));
        };
        spend(Money(900_000_000), DAY, DAY - 1);
        spend(Money(5_000), 2 * DAY, DAY + 1_000);
        let seen = pacing.budgets.get(&(account.clone(), Window::Day)).unwrap().seen;
        assert_eq!(seen, Money(5_000));
    }

    #[test]
    fn a_route_that_falls_short_of_its_target_is_worth_more() {
        let route = Route { success_target: Some(Chance::new(0.9)), ..Route::usual("r") };
        let pacing = Pacing::default();
        assert!((pacing.factor(&route) - 1.0).abs() < 1e-9);
        (0..100).for_each(|_| pacing.landed(&route, Chance::new(0.6)));
        assert!(pacing.factor(&route) > 2.0, "{}", pacing.factor(&route));
        assert!((pacing.factor(&Route::usual("r")) - 1.0).abs() < 1e-9);
    }
}
