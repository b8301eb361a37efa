//! The price of money for each account, so that its budgets last their windows, and the worth of success on each route that
//! aims at a share of right answers.
//!
//! The price follows the account's spending as the ledger has it, including that of other replicas. It is kept in memory:
//! after a start it finds its level again within some hundred requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use dashmap::DashMap;

use stint_decide::learn::{BudgetPacer, PaceSettings, RemainingBudget, SuccessPacer};
use stint_ledger::LimitStatus;
use stint_types::catalog::Route;
use stint_types::units::{AccountId, Amount, Chance, Facet, Holder, Money, Timestamp, Unit, Window};

/// Whose budget of money, and over what time.
type PacedBudgetKey = (AccountId, Window);

/// The most budgets that are paced; those of others have the price of their face.
const BUDGETS_MAX: usize = 1 << 16;

/// If there is no room, those go that no request has asked for in this time.
const IDLE_MAX: Duration = Duration::from_secs(3600);
/// How often they are looked for at most, in milliseconds.
const SWEEP_INTERVAL: i64 = 60_000;

/// How one budget is paced.
#[derive(Debug, Clone, Copy, Default)]
struct PacedBudget {
    pace: BudgetPacer,
    /// What is expected of requests on their way.
    expected_in_flight: Money,
    /// The limit, as it was when it was last looked at.
    max: Option<Money>,
    /// When a request last set out.
    used_at: Timestamp,
}

impl PacedBudget {
    /// A limit that was raised is in force at once, also for the price that the old one made.
    fn update_limit(&mut self, line: &LimitStatus) {
        let (Amount::Money(max), Amount::Money(spent)) = (line.max, line.spent) else { return };
        let left = |max: Money| max.saturating_sub(spent).saturating_sub(self.expected_in_flight);
        if let Some(before) = self.max.replace(max).filter(|before| *before < max) {
            let (before, after) = (left(before), left(max));
            self.pace.raise_limit(before, after);
        }
    }

    /// Where it stands in its window: what was not spent yet, less what is expected of requests on their way. Worst cases
    /// that are set aside are much more than that, and would make many requests at once look like much spending.
    fn window_progress(&self, line: &LimitStatus) -> Option<RemainingBudget> {
        let (Amount::Money(max), Amount::Money(spent), Some(end)) = (line.max, line.spent, line.resets_at)
        else {
            return None;
        };
        let left = max.saturating_sub(spent).saturating_sub(self.expected_in_flight);
        let length = i64::try_from(line.limit.window.length().as_millis()).unwrap_or(i64::MAX);
        Some(RemainingBudget { start: Timestamp(end.0.saturating_sub(length)), end, left })
    }
}

/// How a budget stands to its pace, for those who look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaceStatus {
    /// What a dollar of it counts; 1 is its face.
    pub price: f64,
    /// What is spent, in dollars a second.
    pub rate: f64,
    /// What may be spent for it to last, in dollars a second.
    pub target: f64,
}

/// The prices of all accounts, and the aims of all routes. No lock is held across anything that waits.
#[derive(Debug, Default)]
pub(crate) struct Pacing {
    settings: PaceSettings,
    budgets: DashMap<PacedBudgetKey, PacedBudget>,
    aims: DashMap<Arc<str>, SuccessPacer>,
    /// The highest price by which requests of an account, or of one below it, were decided since it was last read.
    highest: DashMap<AccountId, f64>,
    /// When it was last looked for budgets that can go, and whether the log has that there were too few.
    swept_at: AtomicI64,
    is_reported: AtomicBool,
}

/// Budgets over these times last; what an hour or a minute leaves is a rate, and all time has no end.
const PACED: [Window; 3] = [Window::Day, Window::Week, Window::Month];

impl Pacing {
    /// Those of an account's limits that are paced.
    pub(crate) fn paced_lines(statement: Vec<LimitStatus>) -> Vec<LimitStatus> {
        let mut lines = statement;
        lines.retain(is_paced);
        lines
    }

    /// What a dollar counts for an account with such limits: the highest price among its own budgets and those above it.
    pub(crate) fn price(&self, account: &AccountId, lines: &[LimitStatus], now: Timestamp) -> f64 {
        let paced = |line: &LimitStatus| {
            let budget = budget(account, line)?;
            let known = *self.budgets.get(&budget)?;
            if known.max.map(Amount::Money) != Some(line.max) {
                self.budgets.get_mut(&budget)?.update_limit(line);
            }
            Some(self.budgets.get(&budget)?.pace.price_at(now, &self.settings))
        };
        lines.iter().filter_map(paced).fold(1.0, f64::max)
    }

    /// A request of this account was decided by such a price.
    pub(crate) fn record_price(&self, account: &AccountId, price: f64) {
        for name in account.lineage() {
            let holder = AccountId::new(name);
            if !self.highest.contains_key(&holder) && self.highest.len() >= BUDGETS_MAX {
                // Most are of accounts that nobody reads.
                self.highest.clear();
            }
            let mut highest = self.highest.entry(holder).or_insert(price);
            *highest = highest.max(price);
        }
    }

    /// The highest price that decided since this was last asked. Nothing if nothing was decided. What a dollar counts at the
    /// moment of asking is another number: it falls as soon as requests end for less than was expected of them, and while
    /// none come.
    pub(crate) fn take_highest_price(&self, account: &AccountId) -> Option<f64> {
        self.highest.remove(account).map(|(_, price)| price)
    }

    /// How the budget of a line stands, where it is paced.
    pub(crate) fn pace_status(&self, account: &AccountId, line: &LimitStatus) -> Option<PaceStatus> {
        let paced = self.budgets.get(&budget(account, line)?)?;
        let pace = &paced.pace;
        Some(PaceStatus { price: pace.price(), rate: pace.rate(), target: pace.target() })
    }

    /// A request of this account that is expected to cost so much sets out; its limits stand so.
    pub(crate) fn record_dispatch(
        &self,
        account: &AccountId,
        statement: &[LimitStatus],
        expected: Money,
        now: Timestamp,
    ) {
        for line in statement {
            let Some(budget) = budget(account, line) else { continue };
            if !self.budgets.contains_key(&budget) && !self.has_room(now) {
                continue;
            }
            let mut paced = self.budgets.entry(budget).or_default();
            paced.update_limit(line);
            paced.used_at = now;
            if let Some(remaining) = paced.window_progress(line) {
                paced.pace.record_expected(now, expected, &remaining, &self.settings);
            }
            paced.expected_in_flight += expected;
        }
    }

    /// True if one more budget can be paced. Those that are idle make room for it.
    fn has_room(&self, now: Timestamp) -> bool {
        if self.budgets.len() < BUDGETS_MAX {
            return true;
        }
        let before = self.swept_at.load(Ordering::Relaxed);
        let is_due = now.0.saturating_sub(before) >= SWEEP_INTERVAL;
        if !is_due || self.swept_at.swap(now.0, Ordering::Relaxed) != before {
            return false;
        }
        let oldest = now.before(IDLE_MAX);
        self.budgets.retain(|_, paced| paced.expected_in_flight > Money::ZERO || paced.used_at > oldest);
        let has_room = self.budgets.len() < BUDGETS_MAX;
        if !has_room && !self.is_reported.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                budgets = BUDGETS_MAX,
                "no more budgets can be paced: to accounts that come now a dollar counts its face"
            );
        }
        has_room
    }

    /// It has ended, and cost this, or nothing; of these of its limits it had been expected.
    pub(crate) fn record_settlement(
        &self,
        account: &AccountId,
        statement: &[LimitStatus],
        expected: Money,
        spent: Money,
    ) {
        for line in statement {
            let Some(mut paced) = budget(account, line).and_then(|budget| self.budgets.get_mut(&budget))
            else {
                continue;
            };
            paced.expected_in_flight = paced.expected_in_flight.saturating_sub(expected);
            paced.pace.settle(expected, spent, &self.settings);
        }
    }

    /// The factor by which success counts more or less than the route's setting.
    pub(crate) fn factor(&self, route: &Route) -> f64 {
        match route.success_target {
            Some(_) => self.aims.get(&route.name).map_or(1.0, |aim| aim.factor()),
            None => 1.0,
        }
    }

    /// An answer of this route was right with this chance, by a verdict or, before that, by the prediction.
    pub(crate) fn record_success(&self, route: &Route, success: Chance) {
        if let Some(target) = route.success_target {
            self.aims.entry(route.name.clone()).or_default().settle(success, target);
        }
    }
}

/// The budget that a line is about, where it is one that should last.
fn budget(account: &AccountId, line: &LimitStatus) -> Option<PacedBudgetKey> {
    let limit = &line.limit;
    let holder = match &limit.holder {
        Holder::Key => account.clone(),
        Holder::Account(holder) => holder.clone(),
        Holder::Request | Holder::Episode => return None,
    };
    is_paced(line).then_some((holder, limit.window))
}

fn is_paced(line: &LimitStatus) -> bool {
    let limit = &line.limit;
    limit.unit == Unit::Money && limit.facet == Facet::Whole && PACED.contains(&limit.window)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::units::Limit;

    const MAX: Money = Money(1_000_000_000);
    const DAY: i64 = 86_400_000;
    const NOON: Timestamp = Timestamp(DAY / 2);

    fn line(holder: Holder, spent: Money, end: i64) -> LimitStatus {
        let limit = Limit { holder, facet: Facet::Whole, unit: Unit::Money, window: Window::Day };
        LimitStatus {
            limit,
            max: Amount::Money(MAX),
            spent: Amount::Money(spent),
            reserved: Amount::Money(Money::ZERO),
            left: Amount::Money(MAX.saturating_sub(spent)),
            resets_at: Some(Timestamp(end)),
        }
    }

    /// A day until noon with a request a minute that costs so much.
    fn noon(pacing: &Pacing, cost: Money) -> f64 {
        let (account, mut spent) = (AccountId::new("acme/alice"), Money::ZERO);
        let lines = |spent| [line(Holder::Account(AccountId::new("acme")), spent, DAY)];
        for minute in 0..720 {
            pacing.record_dispatch(&account, &lines(spent), cost, Timestamp(minute * 60_000));
            spent += cost;
            pacing.record_settlement(&account, &lines(spent), cost, cost);
        }
        pacing.price(&account, &lines(spent), NOON)
    }

    #[test]
    fn who_spends_too_fast_pays_more_for_a_dollar_and_so_do_all_below() {
        let face = noon(&Pacing::default(), Money(300_000));
        assert!((face - 1.0).abs() < 1e-9, "half of what would last costs its face: {face}");
        let pacing = Pacing::default();
        let dear = noon(&pacing, Money(1_200_000));
        assert!(dear > 2.0, "nearly twice what would last: {dear}");
        let lines = [line(Holder::Account(AccountId::new("acme")), MAX, DAY)];
        assert!((pacing.price(&AccountId::new("acme/bob"), &lines, NOON) - dear).abs() < 1e-9);
        assert!(
            (pacing.price(&AccountId::new("acme/bob"), &[], NOON) - 1.0).abs() < 1e-9,
            "a limit that was removed"
        );
        let standing = pacing.pace_status(&AccountId::new("acme/alice"), &lines[0]).unwrap();
        assert!(standing.rate > standing.target, "{standing:?}");
    }

    #[test]
    fn a_limit_that_is_raised_is_in_force_at_once_and_a_silence_makes_money_cheaper() {
        let (pacing, holder) = (Pacing::default(), || Holder::Account(AccountId::new("acme")));
        let dear = noon(&pacing, Money(1_200_000));
        let (account, spent) = (AccountId::new("acme/alice"), Money(864_000_000));
        let price = |max: u64, now| {
            let line = LimitStatus { max: Amount::Money(Money(max)), ..line(holder(), spent, DAY) };
            pacing.price(&account, &[line], Timestamp(now))
        };
        let later = price(MAX.0, NOON.0 + 20 * 60_000);
        assert!(later < dear - 0.1, "nobody asked for twenty minutes: {later} after {dear}");
        assert!((price(2 * MAX.0, NOON.0) - 1.0).abs() < 1e-9, "eight times as much is left");
        assert!(
            (price(MAX.0, NOON.0) - 1.0).abs() < 1e-9,
            "a limit that is lowered shows with what is spent"
        );
    }

    #[test]
    fn what_does_not_depart_is_expected_no_more() {
        let (pacing, account) = (Pacing::default(), AccountId::new("a"));
        let lines = [line(Holder::Key, Money::ZERO, DAY)];
        for minute in 0..100 {
            pacing.record_dispatch(&account, &lines, Money(5_000_000), Timestamp(minute * 60_000));
            pacing.record_settlement(&account, &lines, Money(5_000_000), Money::ZERO);
        }
        assert!((pacing.price(&account, &lines, NOON) - 1.0).abs() < 1e-9);
        assert_eq!(pacing.budgets.get(&(account, Window::Day)).unwrap().expected_in_flight, Money::ZERO);
    }

    #[test]
    fn budgets_that_nobody_uses_make_room_for_others() {
        let pacing = Pacing::default();
        let dispatch = |number: usize, now: i64| {
            let (account, lines) =
                (AccountId::new(format!("a{number}")), [line(Holder::Key, Money::ZERO, DAY)]);
            pacing.record_dispatch(&account, &lines, Money(1), Timestamp(now));
            if number != 7 {
                pacing.record_settlement(&account, &lines, Money(1), Money(1));
            }
            pacing.pace_status(&account, &lines[0]).is_some()
        };
        assert!((0..BUDGETS_MAX).all(|number| dispatch(number, 0)));
        assert!(!dispatch(BUDGETS_MAX, 120_000), "all were used lately");
        assert!(dispatch(3, 2 * 3_600_000));
        assert!(dispatch(BUDGETS_MAX, 2 * 3_600_000));
        assert_eq!(pacing.budgets.len(), 3, "one that is in use, one in flight, and the new one");
    }

    #[test]
    fn the_price_that_is_shown_is_the_highest_that_decided_not_what_is_left_of_it_after_a_silence() {
        let (pacing, account) = (Pacing::default(), AccountId::new("acme/alice"));
        let dear = noon(&pacing, Money(1_200_000));
        let lines = [line(Holder::Account(AccountId::new("acme")), Money(864_000_000), DAY)];
        [dear, 2.0].into_iter().for_each(|price| pacing.record_price(&account, price));
        let later = pacing.price(&account, &lines, Timestamp(NOON.0 + 20 * 60_000));
        assert!(later < dear - 0.1, "{later}");
        for name in ["acme/alice", "acme"] {
            assert_eq!(pacing.take_highest_price(&AccountId::new(name)), Some(dear), "{name}");
            assert_eq!(pacing.take_highest_price(&AccountId::new(name)), None, "nothing was decided since");
        }
    }

    #[test]
    fn a_route_that_falls_short_of_its_target_is_worth_more() {
        let route = Route { success_target: Some(Chance::new(0.9)), ..Route::with_defaults("r") };
        let pacing = Pacing::default();
        assert!((pacing.factor(&route) - 1.0).abs() < 1e-9);
        (0..100).for_each(|_| pacing.record_success(&route, Chance::new(0.6)));
        assert!(pacing.factor(&route) > 2.0, "{}", pacing.factor(&route));
        assert!((pacing.factor(&Route::with_defaults("r")) - 1.0).abs() < 1e-9);
    }
}
