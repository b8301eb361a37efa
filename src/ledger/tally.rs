//! What one account spent and reserved, window by window.

use crate::units::{Amount, Timestamp, Unit, Window, Zone};

use super::{AccountSpend, Amounts};

/// Every window is counted, limited or not: a limit that is configured later knows what was spent before.
pub(super) const WINDOWS: [Window; 6] =
    [Window::Minute, Window::Hour, Window::Day, Window::Week, Window::Month, Window::Total];

/// One window of one account, or of one facet of it. A request belongs to the window of its admission, also when
/// it ends later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WindowTally {
    pub(super) window: Window,
    pub(super) start: Timestamp,
    pub(super) end: Option<Timestamp>,
    pub(super) spent: Amounts,
    pub(super) reserved: Amounts,
    /// How many open reservations were admitted in it.
    open: u32,
    /// The units whose limits were announced in this window, a bit each.
    warned: u8,
    /// Where replicas share the account: what this one may use of each unit's limit, and what others have of it.
    leases: [QuotaLease; Unit::ALL.len()],
}

/// What was handed out of one limit in one window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct QuotaLease {
    /// What this replica may have spent and reserved.
    pub(super) own: u64,
    /// What others hold, and what was spent before, as far as is known here.
    pub(super) others: u64,
    /// True where the limit may have been lowered since: nothing is taken of it before the bank was asked.
    pub(super) is_stale: bool,
    /// True where nobody knows what the bank made of the last exchange: it is to be asked again.
    pub(super) is_uncertain: bool,
    /// Until then `others` is all there is to know: nobody else held what is not used when the bank was asked.
    pub(super) fresh_until: Timestamp,
    /// True once it is counted what was used before the part of the account was.
    pub(super) has_prior_usage: bool,
    /// True where the bank knows that nothing of it is open and nothing is not used.
    pub(super) is_final: bool,
}

/// The windows that hold now, and older ones in which reservations are open still.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WindowTallies {
    list: Vec<WindowTally>,
    /// The first moment at which one of the windows has ended.
    due: Option<Timestamp>,
}

impl WindowTally {
    /// The empty window that holds `now`.
    pub(super) fn new(window: Window, now: Timestamp, zone: &Zone) -> WindowTally {
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

    pub(super) fn contains(&self, moment: Timestamp) -> bool {
        self.start <= moment && self.end.is_none_or(|end| moment < end)
    }

    /// What was spent and what is set aside, as a unit's limits count it.
    pub(super) fn used(&self, unit: Unit) -> (Amount, Amount) {
        match unit {
            Unit::Concurrency => (Amount::new(unit, 0), self.reserved.of(unit)),
            _ => (self.spent.of(unit), self.reserved.of(unit)),
        }
    }

    /// All that was spent and set aside, as a unit's limits count it.
    pub(super) fn size(&self, unit: Unit) -> u64 {
        let (spent, reserved) = self.used(unit);
        spent.size().saturating_add(reserved.size())
    }

    pub(super) fn lease(&self, unit: Unit) -> QuotaLease {
        self.leases[unit as usize]
    }

    pub(super) fn lease_mut(&mut self, unit: Unit) -> &mut QuotaLease {
        &mut self.leases[unit as usize]
    }

    /// Whether a slice of a limit of `max` covers that. Where more is handed out than there is, since the limit was
    /// lowered, nothing is taken that was not taken before.
    pub(super) fn covers(&self, unit: Unit, size: u64, max: u64) -> bool {
        let QuotaLease { own, others, is_stale, .. } = self.lease(unit);
        !is_stale && size <= own && own.saturating_add(others) <= max
    }

    /// Whether so much is more than others leave of a limit of `max`, as far as that is known now.
    pub(super) fn is_spent(&self, unit: Unit, size: u64, max: u64, now: Timestamp) -> bool {
        let QuotaLease { others, fresh_until: known_until, .. } = self.lease(unit);
        now < known_until && size.saturating_add(others) > max
    }

    /// True where no reservation is open that was admitted in it.
    pub(super) fn is_idle(&self) -> bool {
        self.open == 0
    }

    /// True where nothing is open and nothing can be handed back.
    pub(super) fn is_finished(&self) -> bool {
        let is_told = |slice: &QuotaLease| !slice.is_uncertain && (slice.own == 0 || slice.is_final);
        self.is_idle() && self.leases.iter().all(is_told)
    }

    /// Has every slice looked at anew before anything is taken of it.
    pub(super) fn mark_stale(&mut self) {
        for slice in &mut self.leases {
            (slice.is_stale, slice.fresh_until) = (true, Timestamp::default());
        }
    }

    /// Counts what was used before this part of the account was counted; once.
    pub(super) fn add_prior_usage(&mut self, unit: Unit, before: u64) {
        if !std::mem::replace(&mut self.lease_mut(unit).has_prior_usage, true) {
            self.spent += Amounts::of_unit(unit, before);
        }
    }

    /// Sets aside for a reservation that is new here.
    pub(super) fn open(&mut self, held: Amounts) {
        self.reserved += held;
        self.open += 1;
    }

    /// Sets more aside for one that is not.
    pub(super) fn extend(&mut self, more: Amounts) {
        self.reserved += more;
    }

    pub(super) fn close(&mut self, held: Amounts, spent: Amounts) {
        self.reserved = self.reserved.saturating_sub(held);
        self.spent += spent;
        self.open = self.open.saturating_sub(1);
    }

    /// True the first time that it is asked of a unit.
    pub(super) fn warn_once(&mut self, unit: Unit) -> bool {
        let bit = 1 << (unit as u8);
        let first = self.warned & bit == 0;
        self.warned |= bit;
        first
    }

    /// The next time is the first again.
    pub(super) fn reset_warning(&mut self, unit: Unit) {
        self.warned &= !(1 << (unit as u8));
    }
}

impl WindowTallies {
    /// Forgets windows that are over and opens those that hold `now`; false where there was nothing to do.
    pub(super) fn roll(&mut self, now: Timestamp, zone: &Zone) -> bool {
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

    /// True where something is open, a slice is held that may be called back, or so much was spent in the window of that
    /// length that holds `now` that a limit of that unit counts it.
    pub(super) fn is_in_use(&self, unit: Unit, window: Window, now: Timestamp) -> bool {
        let counted = self.at(window, now).is_some_and(|tally| tally.used(unit).0.size() > 0);
        let is_held = |tally: &WindowTally| tally.open > 0 || tally.leases.iter().any(|slice| slice.own > 0);
        counted || self.list.iter().any(is_held)
    }

    /// The window of that length that holds a moment.
    pub(super) fn at(&self, window: Window, moment: Timestamp) -> Option<WindowTally> {
        self.list.iter().find(|tally| tally.window == window && tally.contains(moment)).copied()
    }

    /// All windows that are counted.
    pub(super) fn iter(&self) -> impl Iterator<Item = &WindowTally> {
        self.list.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut WindowTally> {
        self.list.iter_mut()
    }

    pub(super) fn at_mut(&mut self, window: Window, moment: Timestamp) -> Option<&mut WindowTally> {
        self.list.iter_mut().find(|tally| tally.window == window && tally.contains(moment))
    }

    /// Sets aside for a reservation that is new here.
    pub(super) fn open(&mut self, held: Amounts, admitted: Timestamp) {
        self.containing(admitted).for_each(|tally| tally.open(held));
    }

    /// Sets more aside for one that is not.
    pub(super) fn extend(&mut self, more: Amounts, admitted: Timestamp) {
        self.containing(admitted).for_each(|tally| tally.extend(more));
    }

    pub(super) fn close(&mut self, held: Amounts, spent: Amounts, admitted: Timestamp) {
        self.containing(admitted).for_each(|tally| tally.close(held, spent));
    }

    /// Adds what was spent to those windows that began before it.
    pub(super) fn recover(&mut self, windows: &[Window], spent: &AccountSpend, now: Timestamp) {
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
