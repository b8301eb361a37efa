//! What one account spent and reserved, window by window.

use crate::units::{Amount, Timestamp, Unit, Window, Zone};

use super::{Amounts, Spent};

/// Every window is counted, limited or not: a limit that is configured later knows what was spent before.
pub(super) const WINDOWS: [Window; 6] =
    [Window::Minute, Window::Hour, Window::Day, Window::Week, Window::Month, Window::Total];

/// One window of one account, or of one facet of it. A request belongs to the window of its admission, also when
/// it ends later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) window: Window,
    pub(super) start: Timestamp,
    pub(super) end: Option<Timestamp>,
    pub(super) spent: Amounts,
    pub(super) reserved: Amounts,
    /// How many open reservations were admitted in it.
    open: u32,
    /// The units whose limits were announced in this window, a bit each.
    warned: u8,
}

/// The windows that hold now, and older ones in which reservations are open still.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tallies {
    list: Vec<Tally>,
    /// The first moment at which one of the windows has ended.
    due: Option<Timestamp>,
}

impl Tally {
    /// The empty window that holds `now`.
    pub(super) fn new(window: Window, now: Timestamp, zone: &Zone) -> Tally {
        let bounds = window.bounds(now, zone);
        Tally {
            window,
            start: bounds.map_or(Timestamp(i64::MIN), |(start, _)| start),
            end: bounds.map(|(_, end)| end),
            spent: Amounts::ZERO,
            reserved: Amounts::ZERO,
            open: 0,
            warned: 0,
        }
    }

    pub(super) fn holds(&self, moment: Timestamp) -> bool {
        self.start <= moment && self.end.is_none_or(|end| moment < end)
    }

    /// What was spent and what is set aside, as a unit's limits count it.
    pub(super) fn used(&self, unit: Unit) -> (Amount, Amount) {
        match unit {
            Unit::Concurrency => (Amount::new(unit, 0), self.reserved.of(unit)),
            _ => (self.spent.of(unit), self.reserved.of(unit)),
        }
    }

    /// True the first time that it is asked of a unit.
    pub(super) fn warn_once(&mut self, unit: Unit) -> bool {
        let bit = 1 << (unit as u8);
        let first = self.warned & bit == 0;
        self.warned |= bit;
        first
    }
}

impl Tallies {
    /// Forgets windows that are over and opens those that hold `now`; false where there was nothing to do.
    pub(super) fn roll(&mut self, now: Timestamp, zone: &Zone) -> bool {
        if !self.list.is_empty() && self.due.is_none_or(|due| now < due) {
            return false;
        }
        self.list.retain(|tally| tally.open > 0 || tally.holds(now));
        for window in WINDOWS {
            if !self.list.iter().any(|tally| tally.window == window && tally.holds(now)) {
                self.list.push(Tally::new(window, now, zone));
            }
        }
        self.due = self.list.iter().filter(|tally| tally.holds(now)).filter_map(|tally| tally.end).min();
        true
    }

    /// True where something is open, or was spent in the window of that length that holds `now`.
    pub(super) fn remembers(&self, window: Window, now: Timestamp) -> bool {
        let spent = self.at(window, now).is_some_and(|tally| tally.spent != Amounts::ZERO);
        spent || self.list.iter().any(|tally| tally.open > 0)
    }

    /// The window of that length that holds a moment.
    pub(super) fn at(&self, window: Window, moment: Timestamp) -> Option<Tally> {
        self.list.iter().find(|tally| tally.window == window && tally.holds(moment)).copied()
    }

    pub(super) fn at_mut(&mut self, window: Window, moment: Timestamp) -> Option<&mut Tally> {
        self.list.iter_mut().find(|tally| tally.window == window && tally.holds(moment))
    }

    /// Sets aside for a reservation that is new here.
    pub(super) fn open(&mut self, held: Amounts, admitted: Timestamp) {
        for tally in self.holding(admitted) {
            tally.reserved += held;
            tally.open += 1;
        }
    }

    /// Sets more aside for one that is not.
    pub(super) fn extend(&mut self, more: Amounts, admitted: Timestamp) {
        self.holding(admitted).for_each(|tally| tally.reserved += more);
    }

    pub(super) fn close(&mut self, held: Amounts, spent: Amounts, admitted: Timestamp) {
        for tally in self.holding(admitted) {
            tally.reserved = tally.reserved.saturating_sub(held);
            tally.spent += spent;
            tally.open = tally.open.saturating_sub(1);
        }
    }

    /// Adds what was spent to those windows that began before it.
    pub(super) fn recover(&mut self, windows: &[Window], spent: &Spent, now: Timestamp) {
        for tally in self.holding(now).filter(|tally| windows.contains(&tally.window)) {
            if tally.start <= spent.since {
                tally.spent += spent.spent;
            }
        }
    }

    fn holding(&mut self, moment: Timestamp) -> impl Iterator<Item = &mut Tally> {
        self.list.iter_mut().filter(move |tally| tally.holds(moment))
    }
}
