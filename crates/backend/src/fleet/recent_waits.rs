//! How many first tokens of a target were measured just now: enough of them, and more answers need not be read as streams.

use std::time::Duration;

use tokio::time::Instant;

/// So many waits within so long show how a target does. What judges its limit of calls wants five in half a second.
const ENOUGH: usize = 16;
const WITHIN: Duration = Duration::from_secs(1);

/// When the last first tokens of a target came.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RecentWaits {
    at: [Option<Instant>; ENOUGH],
    /// Where the next one goes, in place of the oldest.
    next: usize,
}

impl RecentWaits {
    /// A first token came.
    pub(super) fn record(&mut self, now: Instant) {
        self.at[self.next] = Some(now);
        self.next = (self.next + 1) % ENOUGH;
    }

    /// Whether enough of them came.
    pub(super) fn are_enough(&self, now: Instant) -> bool {
        self.at[self.next].is_some_and(|oldest| now.saturating_duration_since(oldest) <= WITHIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_within_a_second_are_enough_for_the_rest_of_it() {
        let (mut waits, began) = (RecentWaits::default(), Instant::now());
        let at = |tenths: u32| began + tenths * Duration::from_millis(100);
        for tenths in 0..15 {
            waits.record(at(tenths));
            assert!(!waits.are_enough(at(tenths)), "{tenths}");
        }
        waits.record(at(15));
        assert!(!waits.are_enough(at(15)), "the first one is older than a second");
        (0..15).for_each(|_| waits.record(at(16)));
        assert!(waits.are_enough(at(25)));
        assert!(!waits.are_enough(at(27)));
    }
}
