//! How much of a limit is left.

use crate::units::Count;

/// How much of a limit is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// What is not spent for good.
    pub unspent: Count,
    /// What of that nobody has set aside either.
    pub free: Count,
}

impl Room {
    /// What a limit leaves.
    pub fn of(limit: Count, spent: Count, reserved: Count) -> Room {
        let unspent = limit.saturating_sub(spent);
        Room { unspent, free: unspent.saturating_sub(reserved) }
    }

    /// What both leave.
    #[must_use]
    pub fn least(self, other: Room) -> Room {
        Room { unspent: self.unspent.min(other.unspent), free: self.free.min(other.free) }
    }

    /// What all of them leave; nothing where there is no limit.
    pub(super) fn least_of(rooms: impl IntoIterator<Item = Option<Room>>) -> Option<Room> {
        rooms.into_iter().flatten().reduce(Room::least)
    }

    /// True where it is used up for good.
    pub fn is_spent(self) -> bool {
        self.unspent == Count::ZERO
    }

    /// True where all that is left of it is set aside, and some of it may come back.
    pub fn is_taken(self) -> bool {
        !self.is_spent() && self.free == Count::ZERO
    }
}
