//! Exact counts over the last ten seconds.

use tokio::time::Instant;

/// How many seconds are looked back on, the running one included.
const SECONDS: usize = 10;

/// Good and bad ends by the second.
#[derive(Debug, Clone)]
pub(super) struct SuccessWindow {
    began: Instant,
    slots: [WindowSlot; SECONDS],
}

#[derive(Debug, Clone, Copy, Default)]
struct WindowSlot {
    second: u64,
    counts: SuccessCounts,
}

/// How many ended well and how many did not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SuccessCounts {
    good: u32,
    bad: u32,
}

impl SuccessWindow {
    pub(super) fn new(now: Instant) -> SuccessWindow {
        SuccessWindow { began: now, slots: [WindowSlot::default(); SECONDS] }
    }

    pub(super) fn add(&mut self, now: Instant, good: bool) {
        let second = self.second(now);
        let slot = &mut self.slots[slot_index(second)];
        if slot.second != second {
            *slot = WindowSlot { second, counts: SuccessCounts::default() };
        }
        let count = if good { &mut slot.counts.good } else { &mut slot.counts.bad };
        *count = count.saturating_add(1);
    }

    pub(super) fn counts(&self, now: Instant) -> SuccessCounts {
        let second = self.second(now);
        let recent = self.slots.iter().filter(|slot| slot.second + SECONDS as u64 > second);
        recent.fold(SuccessCounts::default(), |sum, slot| SuccessCounts {
            good: sum.good.saturating_add(slot.counts.good),
            bad: sum.bad.saturating_add(slot.counts.bad),
        })
    }

    fn second(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.began).as_secs()
    }
}

fn slot_index(second: u64) -> usize {
    usize::try_from(second % SECONDS as u64).unwrap_or(0)
}

impl SuccessCounts {
    pub(super) fn total(self) -> u32 {
        self.good.saturating_add(self.bad)
    }

    pub(super) fn bad(self) -> u32 {
        self.bad
    }

    /// Those that are not among these.
    pub(super) fn without(self, others: SuccessCounts) -> SuccessCounts {
        SuccessCounts {
            good: self.good.saturating_sub(others.good),
            bad: self.bad.saturating_sub(others.bad),
        }
    }

    /// 1 if no call has ended.
    pub(super) fn share_good(self) -> f64 {
        if self.total() == 0 { 1.0 } else { f64::from(self.good) / f64::from(self.total()) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_older_than_ten_seconds_is_forgotten_second_by_second() {
        let began = Instant::now();
        let at = |second: u64| began + Duration::from_secs(second);
        let mut window = SuccessWindow::new(began);
        for second in 0..10 {
            window.add(at(second), second % 2 == 0);
        }
        let check = |window: &SuccessWindow, second, good, bad| {
            assert_eq!(window.counts(at(second)), SuccessCounts { good, bad }, "at {second}");
        };
        check(&window, 9, 5, 5);
        check(&window, 10, 4, 5);
        check(&window, 14, 2, 3);
        window.add(at(14), true);
        check(&window, 14, 3, 3);
        check(&window, 18, 1, 1);
        check(&window, 24, 0, 0);
        check(&window, 1_000, 0, 0);
    }
}
