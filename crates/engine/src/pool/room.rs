//! Where a model finds room in a device's memory. It only computes.

use std::time::Instant;

/// Which of the models of a pool.
pub(super) type ModelId = u64;

/// A model that has memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Occupant {
    pub(super) id: ModelId,
    pub(super) bytes: u64,
    pub(super) hold: Hold,
}

/// Whether a model's memory can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    /// Never: it stays.
    Fixed,
    /// Once nobody uses it any more, or it was loaded. It was used last then.
    Busy(Instant),
    /// Now. It was used last then.
    Idle(Instant),
}

/// Where there is room for one more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Room {
    Free,
    /// Once these are let go, which nobody uses: those that were used least recently.
    AfterIdle(Vec<ModelId>),
    /// Once these are let go, some of which are in use.
    AfterBusy(Vec<ModelId>),
    /// Not beside those that stay.
    Never,
}

/// Finds room for so many bytes.
pub(super) fn find_room(most: Option<u64>, occupants: &[Occupant], bytes: u64) -> Room {
    let Some(most) = most else { return Room::Free };
    let taken: u64 = occupants.iter().map(|one| one.bytes).sum();
    let excess = taken.saturating_add(bytes).saturating_sub(most);
    if excess == 0 {
        return Room::Free;
    }
    let idle = least_recent(occupants, |hold| matches!(hold, Hold::Idle(_)));
    if let Some(gone) = enough(&idle, excess) {
        return Room::AfterIdle(gone);
    }
    let busy = least_recent(occupants, |hold| matches!(hold, Hold::Busy(_)));
    enough(&[idle, busy].concat(), excess).map_or(Room::Never, Room::AfterBusy)
}

/// Those of a kind, the least recently used first.
fn least_recent(occupants: &[Occupant], wanted: impl Fn(Hold) -> bool) -> Vec<Occupant> {
    let mut found: Vec<Occupant> = occupants.iter().copied().filter(|one| wanted(one.hold)).collect();
    found.sort_by_key(|one| match one.hold {
        Hold::Idle(since) | Hold::Busy(since) => Some(since),
        Hold::Fixed => None,
    });
    found
}

/// The first ones that have so many bytes together.
fn enough(candidates: &[Occupant], bytes: u64) -> Option<Vec<ModelId>> {
    let mut sum = 0;
    let mut gone = Vec::new();
    for one in candidates {
        sum += one.bytes;
        gone.push(one.id);
        if sum >= bytes {
            return Some(gone);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Room for `bytes` beside these, of 100 in all.
    fn check(occupants: &[(ModelId, u64, char, u64)], bytes: u64, expected: &Room) {
        let start = Instant::now();
        let of = |(id, bytes, kind, used): &(ModelId, u64, char, u64)| {
            let used = start + Duration::from_secs(*used);
            let hold = match kind {
                'i' => Hold::Idle(used),
                'b' => Hold::Busy(used),
                _ => Hold::Fixed,
            };
            Occupant { id: *id, bytes: *bytes, hold }
        };
        let occupants: Vec<Occupant> = occupants.iter().map(of).collect();
        assert_eq!(find_room(Some(100), &occupants, bytes), *expected, "{bytes} beside {occupants:?}");
        assert_eq!(find_room(None, &occupants, bytes), Room::Free);
    }

    #[test]
    fn a_model_that_fits_beside_all_others_lets_none_go() {
        check(&[], 100, &Room::Free);
        check(&[(1, 60, 'i', 0)], 40, &Room::Free);
    }

    #[test]
    fn the_least_recently_used_idle_models_are_let_go_first_and_no_more_of_them_than_needed() {
        let three = [(1, 30, 'i', 9), (2, 30, 'i', 3), (3, 30, 'i', 5)];
        check(&three, 40, &Room::AfterIdle(vec![2]));
        check(&three, 41, &Room::AfterIdle(vec![2, 3]));
        check(&three, 100, &Room::AfterIdle(vec![2, 3, 1]));
    }

    #[test]
    fn a_model_in_use_is_in_the_way_only_where_the_idle_ones_have_too_little() {
        let mixed = [(1, 30, 'b', 1), (2, 30, 'i', 8), (3, 40, 'f', 0)];
        check(&mixed, 30, &Room::AfterIdle(vec![2]));
        check(&mixed, 31, &Room::AfterBusy(vec![2, 1]));
    }

    #[test]
    fn what_does_not_fit_beside_the_models_that_stay_never_fits() {
        check(&[(1, 60, 'f', 0), (2, 40, 'i', 0)], 41, &Room::Never);
        check(&[], 101, &Room::Never);
    }
}
