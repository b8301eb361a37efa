//! What one account spent and reserved, window by window.

use crate::quota::QuotaLease;
use crate::rows::{AccountSpend, Amounts};
use stint_types::units::{Amount, Timestamp, Unit, Window, Zone};

/// Every window is counted, limited or not: a limit that is configured later knows what was spent before.
pub(crate) const WINDOWS: [Window; 6] =
    [Window::Minute, Window::Hour, Window::Day, Window::Week, Window::Month, Window::Total];

/// One window of one account, or of one facet of it. A request belongs to the window of its admission, also when
/// it ends later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WindowTally {
    pub(crate) window: Window,
    pub(crate) start: Timestamp,
    pub(crate) end: Option<Timestamp>,
    pub(crate) spent: Amounts,
    pub(crate) reserved: Amounts,
    /// How many open reservations were admitted in it.
    open: u32,
    /// The units whose limits were announced in this window, a bit each.
    warned: u8,
    /// Where replicas share the account: what this replica holds of each unit's limit, and what others do.
    leases: [QuotaLease; Unit::ALL.len()],
}

/// The windows that hold now, and older ones in which reservations are open still.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WindowTallies {
    list: Vec<WindowTally>,
    /// The first moment at which one of the windows has ended.
    due: Option<Timestamp>,
}

impl WindowTally {
    /// The empty window that holds `now`.
    pub(crate) fn new(window: Window, now: Timestamp, zone: &Zone) -> WindowTally {
        let bounds = window.bounds(now, zone);
        WindowTally {
            window,
            start: bounds.map_or(Timestamp(i64::MIN), |(start, _)| start),
            end: bounds.map(|(_, end)| end),
            spent: Amounts::ZERO,
            reserved: Amounts::ZERO,
            open: 0,
            warned: 0,
            leases: Default::default(),
        }
    }

    pub(crate) fn contains(&self, moment: Timestamp) -> bool {
        self.start <= moment && self.end.is_none_or(|end| moment < end)
    }

    /// What was spent and what is reserved, as a unit's limits count it.
    pub(crate) fn used(&self, unit: Unit) -> (Amount, Amount) {
        match unit {
            Unit::Concurrency => (Amount::new(unit, 0), self.reserved.of(unit)),
            _ => (self.spent.of(unit), self.reserved.of(unit)),
        }
    }

    /// All that was spent and reserved, as a unit's limits count it.
    pub(crate) fn size(&self, unit: Unit) -> u64 {
        let (spent, reserved) = self.used(unit);
        spent.size().saturating_add(reserved.size())
    }

    pub(crate) fn lease(&self, unit: Unit) -> QuotaLease {
        self.leases[unit as usize]
    }

    pub(crate) fn lease_mut(&mut self, unit: Unit) -> &mut QuotaLease {
        &mut self.leases[unit as usize]
    }

    /// True if no reservation is open that was admitted in it.
    pub(crate) fn is_idle(&self) -> bool {
        self.open == 0
    }

    /// True if nothing is open and nothing can be returned.
    pub(crate) fn is_finished(&self) -> bool {
        let is_known = |lease: &QuotaLease| !lease.is_uncertain && (lease.own == 0 || lease.is_final);
        self.is_idle() && self.leases.iter().all(is_known)
    }

    /// Marks every lease as stale: the coordinator is asked before more is taken of it.
    pub(crate) fn mark_stale(&mut self) {
        for lease in &mut self.leases {
            (lease.is_stale, lease.fresh_until) = (true, Timestamp::default());
        }
    }

    /// Counts what was used before this part of the account was counted; once.
    pub(crate) fn add_prior_usage(&mut self, unit: Unit, before: u64) {
        if !std::mem::replace(&mut self.lease_mut(unit).has_prior_usage, true) {
            self.spent += Amounts::of_unit(unit, before);
        }
    }

    /// Reserves for a reservation that is new here.
    pub(crate) fn open(&mut self, held: Amounts) {
        self.reserved += held;
        self.open += 1;
    }

    /// Reserves more for one that is not.
    pub(crate) fn extend(&mut self, more: Amounts) {
        self.reserved += more;
    }

    pub(crate) fn close(&mut self, held: Amounts, spent: Amounts) {
        self.reserved = self.reserved.saturating_sub(held);
        self.spent += spent;
        self.open = self.open.saturating_sub(1);
    }

    /// True for the first call of a unit.
    pub(crate) fn warn_once(&mut self, unit: Unit) -> bool {
        let bit = 1 << (unit as u8);
        let first = self.warned & bit == 0;
        self.warned |= bit;
        first
    }

    /// The next call is the first again.
    pub(crate) fn reset_warning(&mut self, unit: Unit) {
        self.warned &= !(1 << (unit as u8));
    }
}

impl WindowTallies {
    /// Forgets windows that are over and opens those that hold `now`; false if there was nothing to do.
    pub(crate) fn roll(&mut self, now: Timestamp, zone: &Zone) -> bool {
        if !self.list.is_empty() && self.due.is_none_or(|due| now < due) {
            return false;
        }
        self.list.retain(|tally| tally.open > 0 || tally.contains(now));
        for window in WINDOWS {
            if !self.list.iter().any(|tally| tally.window == window && tally.contains(now)) {
                self.list.push(WindowTally::new(window, now, zone));
            }
        }
        self.due = self.list.iter().filter(|tally| tally.contains(now)).filter_map(|tally| tally.end).min();
        true
    }

    /// True if something is open, a lease is held that may be recalled, or a limit of that unit counts something as spent
    /// in the window of that length that holds `now`.
    pub(crate) fn is_in_use(&self, unit: Unit, window: Window, now: Timestamp) -> bool {
        let counted = self.at(window, now).is_some_and(|tally| tally.used(unit).0.size() > 0);
        let is_held = |tally: &WindowTally| tally.open > 0 || tally.leases.iter().any(|lease| lease.own > 0);
        counted || self.list.iter().any(is_held)
    }

    /// The window of that length that holds a moment.
    pub(crate) fn at(&self, window: Window, moment: Timestamp) -> Option<WindowTally> {
        self.list.iter().find(|tally| tally.window == window && tally.contains(moment)).copied()
    }

    /// All windows that are counted.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &WindowTally> {
        self.list.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut WindowTally> {
        self.list.iter_mut()
    }

    pub(crate) fn at_mut(&mut self, window: Window, moment: Timestamp) -> Option<&mut WindowTally> {
        self.list.iter_mut().find(|tally| tally.window == window && tally.contains(moment))
    }

    /// Reserves for a reservation that is new here.
    pub(crate) fn open(&mut self, held: Amounts, admitted: Timestamp) {
        self.containing(admitted).for_each(|tally| tally.open(held));
    }

    /// Reserves more for one that is not.
    pub(crate) fn extend(&mut self, more: Amounts, admitted: Timestamp) {
        self.containing(admitted).for_each(|tally| tally.extend(more));
    }

    pub(crate) fn close(&mut self, held: Amounts, spent: Amounts, admitted: Timestamp) {
        self.containing(admitted).for_each(|tally| tally.close(held, spent));
    }

    /// Adds what was spent to those windows that began before it.
    pub(crate) fn recover(&mut self, windows: &[Window], spent: &AccountSpend, now: Timestamp) {
        for tally in self.containing(now).filter(|tally| windows.contains(&tally.window)) {
            if tally.start <= spent.since {
                tally.spent += spent.spent;
            }
        }
    }

    fn containing(&mut self, moment: Timestamp) -> impl Iterator<Item = &mut WindowTally> {
        self.list.iter_mut().filter(move |tally| tally.contains(moment))
    }
}
