//! How often tokens with unknown keys may have an issuer's keys fetched again. Pure: the time is an argument.

use std::time::Duration;

use tokio::time::Instant;

/// So many at once,
const BURST: u32 = 3;
/// and then one in so long.
const EVERY: Duration = Duration::from_secs(10);

/// What is left of the rate.
#[derive(Debug)]
pub(super) struct RefetchRate {
    left: u32,
    /// Until when what was added is reckoned.
    refilled: Instant,
    /// True from when one was asked for until it came.
    pub(super) is_pending: bool,
}

impl RefetchRate {
    /// The first fetch is under way.
    pub(super) fn new(now: Instant) -> RefetchRate {
        RefetchRate { left: BURST, refilled: now, is_pending: true }
    }

    /// Whether a fetch comes: one that was asked for already, or one that is to be asked for now.
    pub(super) fn take(&mut self, now: Instant) -> RefetchDecision {
        if self.is_pending {
            return RefetchDecision::Wait;
        }
        let periods = now.saturating_duration_since(self.refilled).as_secs() / EVERY.as_secs();
        if periods > 0 {
            let more = u32::try_from(periods).unwrap_or(BURST);
            self.left = self.left.saturating_add(more).min(BURST);
            self.refilled = if self.left == BURST { now } else { self.refilled + EVERY * more };
        }
        if self.left == 0 {
            return RefetchDecision::Refuse;
        }
        self.left -= 1;
        self.is_pending = true;
        RefetchDecision::Ask
    }
}

/// What is done about an unknown key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefetchDecision {
    /// Have the keys fetched, and wait for them.
    Ask,
    /// They are being fetched: wait for them.
    Wait,
    /// They were fetched too often.
    Refuse,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_unknown_keys_cost_the_issuer_few_fetches() {
        let start = Instant::now();
        let mut rate = RefetchRate::new(start);
        assert_eq!(rate.take(start), RefetchDecision::Wait, "the first is under way");
        let mut asked = 0;
        // A thousand a second for a minute, each fetch being over at once.
        for millis in 0..60_000 {
            rate.is_pending = false;
            asked += u32::from(rate.take(start + Duration::from_millis(millis)) == RefetchDecision::Ask);
        }
        assert_eq!(asked, BURST + 5);
    }
}
