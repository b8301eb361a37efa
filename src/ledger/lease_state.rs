//! One life of a replica as it sees it itself. Pure: the monotonic clock is an argument.
//!
//! Three clocks meet here. The bank's says when a lease ends and which windows hold; it is read when the bank answers, and
//! carried on by this machine's monotonic clock. The wall clock of this machine says nothing.

use std::time::Duration;

use tokio::time::Instant;

use crate::units::Timestamp;

use super::quota_coordinator::{ReplicaEpoch, ReplicaLease};

/// This part of a lease is not used: clocks run at slightly different speeds, and packets take their time.
const MARGIN: u32 = 5;

/// A lease is renewed so many times before it could run out.
const RENEWALS: u32 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeaseState {
    pub(super) epoch: ReplicaEpoch,
    pub(super) duration: Duration,
    /// How many replicas live.
    pub(super) replicas: u64,
    /// Past it, nothing is reserved.
    deadline: Instant,
    /// The bank's clock, at a moment of ours.
    clock: (Instant, Timestamp),
    /// From when on it is known of the others whose leases have run out that they are dead.
    reap_from: Instant,
}

impl LeaseState {
    /// `asked` is a moment before the bank was asked for the lease. Nobody knows whether the bank was away until then: the
    /// others have a lease's time to come back.
    pub(super) fn new(asked: Instant, lease: &ReplicaLease) -> LeaseState {
        let ReplicaLease { epoch, duration: lasts, now, .. } = *lease;
        let (deadline, clock) = (deadline(asked, lasts), (asked, now));
        LeaseState { epoch, duration: lasts, replicas: 1, deadline, clock, reap_from: asked + lasts }
    }

    /// Goes on, by what the bank said when it was asked then.
    pub(super) fn renew(&mut self, asked: Instant, now: Timestamp, replicas: u64) {
        // Who could not reach the bank for long may not be the only one: the others have a lease's time to come back.
        if asked.saturating_duration_since(self.clock.0) > self.duration / 2 {
            self.reap_from = asked + self.duration;
        }
        self.deadline = deadline(asked, self.duration);
        (self.clock, self.replicas) = ((asked, now), replicas);
    }

    /// Whether anything may be reserved.
    pub(super) fn is_held(&self, at: Instant) -> bool {
        at < self.deadline
    }

    /// Whether it may end the lives of those whose leases have run out.
    pub(super) fn can_reap(&self, at: Instant) -> bool {
        self.reap_from <= at && self.is_held(at)
    }

    /// The bank's time.
    pub(super) fn now(&self, at: Instant) -> Timestamp {
        let (since, now) = self.clock;
        now + at.saturating_duration_since(since)
    }

    /// How long to wait between two renewals.
    pub(super) fn renew_interval(&self) -> Duration {
        self.duration / RENEWALS
    }
}

/// By our clock this is over before it is by the bank's, which began to count later.
fn deadline(asked: Instant, lasts: Duration) -> Instant {
    asked + lasts - lasts / MARGIN
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::MemoryJournal;
    use super::*;

    const LASTS: Duration = Duration::from_secs(10);
    const BANK: Timestamp = Timestamp(1_795_207_000_000);

    fn begun(asked: Instant) -> LeaseState {
        let journal = Arc::new(MemoryJournal::default());
        LeaseState::new(asked, &ReplicaLease { epoch: ReplicaEpoch(1), journal, duration: LASTS, now: BANK })
    }

    #[test]
    fn a_lease_ends_here_before_it_ends_at_the_bank() {
        let asked = Instant::now();
        let tenure = begun(asked);
        assert!(tenure.is_held(asked + Duration::from_millis(7_999)));
        assert!(!tenure.is_held(asked + Duration::from_secs(8)));
    }

    #[test]
    fn it_is_renewed_from_when_the_bank_was_asked_not_from_when_it_answered() {
        let asked = Instant::now();
        let mut tenure = begun(asked);
        let (again, now) = (asked + Duration::from_secs(6), BANK + Duration::from_secs(9));
        tenure.renew(again, now, 3);
        assert!(tenure.is_held(asked + Duration::from_millis(13_999)));
        assert!(!tenure.is_held(asked + Duration::from_secs(14)));
        assert_eq!(tenure.now(again + Duration::from_secs(1)), now + Duration::from_secs(1));
    }

    #[test]
    fn who_was_cut_off_itself_takes_nobody_for_dead_until_a_lease_has_passed() {
        let asked = Instant::now();
        let mut tenure = begun(asked);
        assert!(!tenure.can_reap(asked), "it may have begun right after the bank was away");
        for seconds in [2, 4, 6, 8, 10] {
            tenure.renew(asked + Duration::from_secs(seconds), BANK, 1);
        }
        assert!(tenure.can_reap(asked + LASTS));
        let late = asked + Duration::from_secs(40);
        assert!(!tenure.can_reap(late), "its own lease is over");
        tenure.renew(late, BANK + Duration::from_secs(40), 2);
        assert!(!tenure.can_reap(late + Duration::from_secs(1)));
        for seconds in [2, 4, 6, 8, 10] {
            tenure.renew(late + Duration::from_secs(seconds), BANK, 2);
        }
        assert!(tenure.can_reap(late + LASTS));
    }

    #[test]
    fn the_banks_time_is_carried_on_by_the_monotonic_clock() {
        let asked = Instant::now();
        assert_eq!(begun(asked).now(asked + LASTS * 100), BANK + LASTS * 100);
    }
}
