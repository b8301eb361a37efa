//! `QuotaWindow`: a limit in one window, as replicas share it; and how much of it is leased.

use stint_types::units::{AccountId, Facet, Timestamp, Unit, Window};

/// At most this part of what is left is handed out beyond what is needed, to all replicas together.
const SHARE_DIVISOR: u64 = 100;

/// One limit in one window, from which quota leases are cut.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QuotaWindow {
    /// Whose limit.
    pub account: AccountId,
    /// On which of its requests.
    pub facet: Facet,
    /// What it counts.
    pub unit: Unit,
    /// Over what time.
    pub window: Window,
    /// When this window began.
    pub begins: Timestamp,
    /// When it ends; never, for a limit on all time.
    pub ends: Option<Timestamp>,
}

/// How a quota window stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuotaBalance {
    /// All that was handed out: the leases of living replicas, and what expired ones really used.
    pub granted: u64,
    /// The part of the replica that asks.
    pub own: u64,
    /// Other living replicas' parts.
    pub others: u64,
    /// True while others were asked to return what they do not use, and have not answered yet.
    pub is_recall_pending: bool,
    /// True if nothing of the others' parts can come back: they have nothing open, and all of it is used.
    pub is_final: bool,
    /// How many replicas there are.
    pub replicas: u64,
}

impl QuotaBalance {
    /// The part of what is left of a limit of `max` that each replica may hold without needing it.
    pub(crate) fn idle_share(&self, max: u64) -> u64 {
        max.saturating_sub(self.granted) / SHARE_DIVISOR / self.replicas.max(1)
    }
}
