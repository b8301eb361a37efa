//! How much of a limit is left.

use stint_types::units::Count;

/// How much of a limit is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headroom {
    /// What is not spent for good.
    pub unspent: Count,
    /// What of that nobody has set aside either.
    pub free: Count,
}

impl Headroom {
    /// What a limit leaves.
    pub fn of(limit: Count, spent: Count, reserved: Count) -> Headroom {
        let unspent = limit.saturating_sub(spent);
        Headroom { unspent, free: unspent.saturating_sub(reserved) }
    }

    /// What both leave.
    #[must_use]
    pub fn least(self, other: Headroom) -> Headroom {
        Headroom { unspent: self.unspent.min(other.unspent), free: self.free.min(other.free) }
    }

    /// What all of them leave; nothing if there is no limit.
    pub(super) fn least_of(rooms: impl IntoIterator<Item = Option<Headroom>>) -> Option<Headroom> {
        rooms.into_iter().flatten().reduce(Headroom::least)
    }

    /// True if there is less of it than is needed, for good.
    pub(super) fn is_spent(self, needed: Count) -> bool {
        self.unspent < needed
    }

    /// True if too much of it is set aside, and may come back.
    pub(super) fn is_reserved(self, needed: Count) -> bool {
        !self.is_spent(needed) && self.free < needed
    }
}
