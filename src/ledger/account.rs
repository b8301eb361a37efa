//! One account: its limits and its windows.

use crate::tenant::TenantLimit;
use crate::units::{Money, Timestamp, Window};

use super::tally::Tally;
use super::{AccountId, Amounts, How, Line, Shortfall, Total, Totals};

/// Every window is counted, limited or not: a limit that is configured later knows what was spent before.
pub(super) const WINDOWS: [Window; 6] =
    [Window::Minute, Window::Hour, Window::Day, Window::Week, Window::Month, Window::Total];

/// One account. All its times come from the accounts, whose clock never goes back.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// In the order in which they are checked; none where the tenant is gone.
    limits: Option<Vec<TenantLimit>>,
    /// The windows that hold now, and older ones in which reservations are open still.
    tallies: Vec<Tally>,
    overrun: Money,
    settled: u64,
}

impl Account {
    pub(super) fn limit(&mut self, limits: Option<Vec<TenantLimit>>) {
        self.limits = limits.map(|mut limits| {
            limits.sort_by_key(Line::rank);
            limits
        });
    }

    pub(super) fn is_declared(&self) -> bool {
        self.limits.is_some()
    }

    /// Forgets windows that are over and opens those that hold `now`.
    pub(super) fn roll(&mut self, now: Timestamp) {
        self.tallies.retain(|tally| !tally.is_over(now));
        for window in WINDOWS {
            if !self.tallies.iter().any(|tally| tally.window == window && tally.holds(now)) {
                self.tallies.push(Tally::new(window, now));
            }
        }
    }

    /// How each limit stands in the window that holds `moment`, in the order in which they are checked.
    pub(super) fn lines(&self, moment: Timestamp) -> Vec<Line> {
        let limits = self.limits.as_deref().unwrap_or_default().iter();
        limits.map(|limit| self.tally(limit.window, moment).line(*limit)).collect()
    }

    fn tally(&self, window: Window, moment: Timestamp) -> Tally {
        let tally = self.tallies.iter().find(|tally| tally.window == window && tally.holds(moment));
        tally.copied().unwrap_or_else(|| Tally::new(window, moment))
    }

    /// The first limit under which so much more, admitted at that moment, does not fit.
    pub(super) fn check(&self, more: Amounts, admitted: Timestamp) -> Result<(), Shortfall> {
        let Some(line) = self.lines(admitted).into_iter().find(|line| !line.fits(more)) else {
            return Ok(());
        };
        let needed = more.of(line.limit.unit);
        Err(Shortfall { limit: line.limit, needed, left: line.left, resets_at: line.resets_at })
    }

    pub(super) fn reserve(&mut self, amounts: Amounts, admitted: Timestamp) {
        self.holding(admitted).for_each(|tally| tally.reserve(amounts));
    }

    pub(super) fn extend(&mut self, more: Amounts, admitted: Timestamp) {
        self.holding(admitted).for_each(|tally| tally.reserved += more);
    }

    pub(super) fn resolve(&mut self, admitted: Timestamp, held: Amounts, spent: Amounts, how: How) {
        self.holding(admitted).for_each(|tally| tally.resolve(held, spent));
        self.overrun += spent.saturating_sub(held).money;
        self.settled += u64::from(how == How::Settled);
    }

    fn holding(&mut self, moment: Timestamp) -> impl Iterator<Item = &mut Tally> {
        self.tallies.iter_mut().filter(move |tally| tally.holds(moment))
    }

    /// Takes over what the journal says was spent in a window.
    pub(super) fn recover(&mut self, window: Window, total: &Total, now: Timestamp) {
        self.roll(now);
        for tally in self.holding(now).filter(|tally| tally.window == window) {
            tally.spent = total.spent;
        }
        if window == Window::Total {
            (self.overrun, self.settled) = (total.overrun, total.settled);
        }
    }

    pub(super) fn totals(&self, account: AccountId, now: Timestamp) -> Totals {
        let all = self.tally(Window::Total, now);
        let (overrun, settled) = (self.overrun, self.settled);
        Totals { account, spent: all.spent, reserved: all.reserved, overrun, settled }
    }
}
