//! The part of one quota window that this replica holds.

use stint_types::units::Timestamp;

/// What was handed out of one limit in one window, as this replica knows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct QuotaLease {
    /// What this replica may have spent and reserved.
    pub(crate) own: u64,
    /// What others hold, and what was spent before, as far as this replica knows.
    pub(crate) others: u64,
    /// True if the limit may have been lowered since: nothing is taken before the coordinator was asked.
    pub(crate) is_stale: bool,
    /// True if the result of the last exchange is not known: the coordinator must be asked again.
    pub(crate) is_uncertain: bool,
    /// Until then `others` is exact: when the coordinator was asked, nobody else held anything unused.
    pub(crate) fresh_until: Timestamp,
    /// True once what was used before this part of the account was counted has been added.
    pub(crate) has_prior_usage: bool,
    /// True if the coordinator knows that nothing of it is open and all of it is used.
    pub(crate) is_final: bool,
}

impl QuotaLease {
    /// Whether it covers so much of a limit of `max`. If more is handed out than the limit allows, because it was
    /// lowered, nothing more is taken.
    pub(crate) fn covers(self, size: u64, max: u64) -> bool {
        !self.is_stale && size <= self.own && self.own.saturating_add(self.others) <= max
    }

    /// Whether so much is more than others leave of a limit of `max`, as far as that is known now.
    pub(crate) fn is_spent(self, size: u64, max: u64, now: Timestamp) -> bool {
        now < self.fresh_until && size.saturating_add(self.others) > max
    }
}
