//! What one account spent and reserved in one window.

use crate::tenant::TenantLimit;
use crate::units::{Amount, Timestamp, Unit, Window};

use super::{Amounts, Line};

/// One window of one account. A request belongs to the window of its admission, also when it ends later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) window: Window,
    start: Timestamp,
    end: Option<Timestamp>,
    pub(super) spent: Amounts,
    pub(super) reserved: Amounts,
    /// How many open reservations were admitted in it.
    open: u32,
}

impl Tally {
    /// The empty window that holds `now`.
    pub(super) fn new(window: Window, now: Timestamp) -> Tally {
        Tally {
            window,
            start: window.start(now),
            end: window.end(now),
            spent: Amounts::ZERO,
            reserved: Amounts::ZERO,
            open: 0,
        }
    }

    pub(super) fn holds(&self, moment: Timestamp) -> bool {
        self.start <= moment && self.end.is_none_or(|end| moment < end)
    }

    /// True where nothing can change it any more and nobody will ask.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.open == 0 && !self.holds(now)
    }

    pub(super) fn reserve(&mut self, amounts: Amounts) {
        self.reserved += amounts;
        self.open += 1;
    }

    pub(super) fn resolve(&mut self, held: Amounts, spent: Amounts) {
        self.reserved = self.reserved.saturating_sub(held);
        self.spent += spent;
        self.open = self.open.saturating_sub(1);
    }

    /// How this window stands under a limit on it.
    pub(super) fn line(&self, limit: TenantLimit) -> Line {
        let unit = limit.max.unit();
        let (spent, reserved) = (self.spent.of(unit), self.reserved.of(unit));
        let left = match (limit.max, self.spent + self.reserved) {
            (Amount::Money(max), used) => Amount::Money(max.saturating_sub(used.money)),
            (Amount::Thinking(max), used) => Amount::Thinking(max.saturating_sub(used.thinking)),
        };
        Line { limit: limit.name(), max: limit.max, spent, reserved, left, resets_at: self.end }
    }
}

impl Line {
    /// True where so much more fits.
    pub(super) fn fits(&self, more: Amounts) -> bool {
        match (more.of(self.limit.unit), self.left) {
            (Amount::Money(needed), Amount::Money(left)) => needed <= left,
            (Amount::Thinking(needed), Amount::Thinking(left)) => needed <= left,
            (Amount::Money(_), Amount::Thinking(_)) | (Amount::Thinking(_), Amount::Money(_)) => false,
        }
    }

    /// The order in which limits are checked and shown.
    pub(super) fn rank(limit: &TenantLimit) -> (Unit, Window) {
        (limit.max.unit(), limit.window)
    }
}
