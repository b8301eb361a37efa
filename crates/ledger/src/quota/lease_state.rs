//! This replica's lease as the replica sees it. Pure: the monotonic clock is an argument.
//!
//! Three clocks are involved. The coordinator's clock says when a lease ends and which windows hold; it is read when the
//! coordinator answers, and carried on by this machine's monotonic clock. The wall clock of this machine plays no part.

use std::time::Duration;

use tokio::time::Instant;

use stint_types::units::Timestamp;

use super::coordinator::{ReplicaEpoch, ReplicaLease};

/// This part of a lease is not used: clocks run at slightly different speeds, and packets take time.
const MARGIN: u32 = 5;

/// A lease is renewed so many times before it could run out.
const RENEWALS: u32 = 5;

/// The replica's lease: its epoch, when it ends, and the coordinator's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeaseState {
    pub(crate) epoch: ReplicaEpoch,
    pub(crate) duration: Duration,
    /// How many replicas there are.
    pub(crate) replicas: u64,
    /// Past it, nothing is reserved.
    deadline: Instant,
    /// The coordinator's clock, at a moment of ours.
    clock: (Instant, Timestamp),
    /// From then on, replicas whose leases have run out may be taken for gone.
    reap_from: Instant,
}

impl LeaseState {
    /// `asked` is a moment before the coordinator was asked for the lease. It may have been unreachable until then, so
    /// the other replicas have a lease's time to come back.
    pub(crate) fn new(asked: Instant, lease: &ReplicaLease) -> LeaseState {
        let ReplicaLease { epoch, duration, now, .. } = *lease;
        let (deadline, clock) = (deadline(asked, duration), (asked, now));
        LeaseState { epoch, duration, replicas: 1, deadline, clock, reap_from: asked + duration }
    }

    /// Renews it by what the coordinator answered when it was asked at `asked`.
    pub(crate) fn renew(&mut self, asked: Instant, now: Timestamp, replicas: u64) {
        // If this replica could not reach the coordinator for long, others may not have either: they have a lease's time to
        // come back.
        if asked.saturating_duration_since(self.clock.0) > self.duration / 2 {
            self.reap_from = asked + self.duration;
        }
        self.deadline = deadline(asked, self.duration);
        (self.clock, self.replicas) = ((asked, now), replicas);
    }

    /// Whether anything may be reserved.
    pub(crate) fn is_held(&self, at: Instant) -> bool {
        at < self.deadline
    }

    /// Whether it may reclaim replicas whose leases have run out.
    pub(crate) fn can_reap(&self, at: Instant) -> bool {
        self.reap_from <= at && self.is_held(at)
    }

    /// The coordinator's time.
    pub(crate) fn now(&self, at: Instant) -> Timestamp {
        let (since, now) = self.clock;
        now + at.saturating_duration_since(since)
    }

    /// How long to wait between two renewals.
    pub(crate) fn renew_interval(&self) -> Duration {
        self.duration / RENEWALS
    }
}

/// By our clock the lease is over earlier than by the coordinator's, which began to count later.
fn deadline(asked: Instant, duration: Duration) -> Instant {
    asked + duration - duration / MARGIN
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::MemoryJournal;

    const LASTS: Duration = Duration::from_secs(10);
    const COORDINATOR_TIME: Timestamp = Timestamp(1_795_207_000_000);

    fn begun(asked: Instant) -> LeaseState {
        let journal = Arc::new(MemoryJournal::default());
        LeaseState::new(
            asked,
            &ReplicaLease { epoch: ReplicaEpoch(1), journal, duration: LASTS, now: COORDINATOR_TIME },
        )
    }

    #[test]
    fn a_lease_ends_here_before_it_ends_at_the_coordinator() {
        let asked = Instant::now();
        let state = begun(asked);
        assert!(state.is_held(asked + Duration::from_millis(7_999)));
        assert!(!state.is_held(asked + Duration::from_secs(8)));
    }

    #[test]
    fn it_is_renewed_from_when_the_coordinator_was_asked_not_from_when_it_answered() {
        let asked = Instant::now();
        let mut state = begun(asked);
        let (again, now) = (asked + Duration::from_secs(6), COORDINATOR_TIME + Duration::from_secs(9));
        state.renew(again, now, 3);
        assert!(state.is_held(asked + Duration::from_millis(13_999)));
        assert!(!state.is_held(asked + Duration::from_secs(14)));
        assert_eq!(state.now(again + Duration::from_secs(1)), now + Duration::from_secs(1));
    }

    #[test]
    fn who_was_cut_off_itself_takes_nobody_for_dead_until_a_lease_has_passed() {
        let asked = Instant::now();
        let mut state = begun(asked);
        assert!(!state.can_reap(asked), "it may have begun right after the coordinator was away");
        for seconds in [2, 4, 6, 8, 10] {
            state.renew(asked + Duration::from_secs(seconds), COORDINATOR_TIME, 1);
        }
        assert!(state.can_reap(asked + LASTS));
        let late = asked + Duration::from_secs(40);
        assert!(!state.can_reap(late), "its own lease is over");
        state.renew(late, COORDINATOR_TIME + Duration::from_secs(40), 2);
        assert!(!state.can_reap(late + Duration::from_secs(1)));
        for seconds in [2, 4, 6, 8, 10] {
            state.renew(late + Duration::from_secs(seconds), COORDINATOR_TIME, 2);
        }
        assert!(state.can_reap(late + LASTS));
    }

    #[test]
    fn the_coordinators_time_is_carried_on_by_the_monotonic_clock() {
        let asked = Instant::now();
        assert_eq!(begun(asked).now(asked + LASTS * 100), COORDINATOR_TIME + LASTS * 100);
    }
}
