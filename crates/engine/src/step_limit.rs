//! How long a step may take, and the watch over workers that are longer at one. Both only compute.

use std::time::Duration;

use super::worker::IDLE_TURN;

/// What any step may take, however little there is to do: the machine may have other work.
const STEP_MIN: Duration = Duration::from_secs(5);

/// Beyond that a row may take so many times what it takes alone. Among others it takes less, and more after a long text.
const ROW_FACTOR: u32 = 4;

/// The most that a step of so many rows can plausibly take, where one of a single row was measured to take so long.
pub(crate) fn plausible_step(single: Duration, rows: u32) -> Duration {
    STEP_MIN.saturating_add(single.saturating_mul(rows.saturating_mul(ROW_FACTOR)))
}

/// Watches a worker's count of turns.
#[derive(Debug)]
pub(crate) struct StallDetector {
    /// The longest that the count may stay.
    limit: Duration,
    turns: u64,
    silent: Duration,
}

impl StallDetector {
    /// A look that comes later than this after the last one counts for no more: the process was stopped, or has too little of
    /// the processor, and the worker with it.
    const LOOK_MAX: Duration = Duration::from_millis(500);

    /// A worker whose steps may take so long.
    pub(crate) fn new(step_max: Duration) -> Self {
        // A step that waits in vain ends by itself first, and its thread is free then.
        let limit = step_max.saturating_add(2 * IDLE_TURN);
        Self { limit, turns: 0, silent: Duration::ZERO }
    }

    /// Looks at the count, so long after the last look; true if the worker hangs.
    pub(crate) fn look(&mut self, turns: u64, since_last: Duration) -> bool {
        if turns == self.turns {
            self.silent += since_last.min(Self::LOOK_MAX);
        } else {
            (self.turns, self.silent) = (turns, Duration::ZERO);
        }
        self.silent > self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Duration = Duration::from_millis(500);

    #[test]
    fn a_step_may_take_as_long_as_its_work_can_take_on_the_device() {
        let check = |single, rows, millis| {
            assert_eq!(plausible_step(Duration::from_micros(single), rows), Duration::from_millis(millis));
        };
        // The embedded model on a software driver, a model of 600 million weights there, and a large one on a GPU.
        check(500, 136, 5_272);
        check(300_000, 136, 168_200);
        check(10_000, 136, 10_440);
        assert!(plausible_step(Duration::MAX, u32::MAX) == Duration::MAX);
    }

    #[test]
    fn a_worker_whose_turns_stand_still_for_longer_than_a_step_hangs() {
        let mut detector = StallDetector::new(Duration::from_secs(3));
        assert!((1..100).all(|turn| !detector.look(turn, LOOK)));
        assert!((0..8).all(|_| !detector.look(99, LOOK)), "3 s for the step, and one for what is around it");
        assert!(detector.look(99, LOOK));
    }

    #[test]
    fn a_process_that_was_stopped_for_an_hour_finds_no_worker_hanging() {
        let mut detector = StallDetector::new(Duration::from_secs(3));
        assert!(!detector.look(0, Duration::from_hours(1)));
        assert!(!detector.look(1, LOOK));
    }
}
