//! How long a step may take, and the watch over workers that are longer at one. Both only compute.

use std::time::Duration;

use super::gpu::DeviceKind;
use super::worker::IDLE_TURN;

/// What any step may take, however little there is to do: a driver compiles its kernels at the first ones.
const STEP_MIN: Duration = Duration::from_secs(10);

/// Bytes of weights that a device multiplies with a row in a second, at the very least: a small part of what slow ones do.
const GPU_RATE: u64 = 10_000_000_000;
const SOFTWARE_RATE: u64 = 100_000_000;

/// The most that a step of so many rows can plausibly take: every row is multiplied with all the weights.
pub(crate) fn plausible_step(device: DeviceKind, weight_bytes: u64, rows: u32) -> Duration {
    let rate = match device {
        DeviceKind::Discrete | DeviceKind::Integrated => GPU_RATE,
        // One that does not say what it is may be a software driver.
        DeviceKind::Virtual | DeviceKind::Cpu => SOFTWARE_RATE,
    };
    let work = weight_bytes.saturating_mul(u64::from(rows));
    STEP_MIN + Duration::from_millis(work / (rate / 1_000))
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
    /// More than any look takes after the last one while the process runs. Longer, it was stopped, and the worker with it.
    const LOOK_MAX: Duration = Duration::from_secs(1);

    /// A worker whose steps may take so long.
    pub(crate) fn new(step_max: Duration) -> Self {
        // A step that waits in vain ends by itself first, and its thread is free then.
        let limit = step_max + 2 * IDLE_TURN;
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
        let check = |device, weights, rows, seconds| {
            assert_eq!(plausible_step(device, weights, rows).as_secs(), seconds);
        };
        check(DeviceKind::Cpu, 1_000_000, 136, 11);
        check(DeviceKind::Cpu, 600_000_000, 136, 826);
        check(DeviceKind::Discrete, 600_000_000, 136, 18);
        check(DeviceKind::Discrete, u64::MAX, 136, 10 + u64::MAX / 10_000_000_000);
    }

    #[test]
    fn a_worker_whose_turns_stand_still_for_longer_than_a_step_hangs() {
        let mut detector = StallDetector::new(Duration::from_secs(3));
        assert!((1..100).all(|turn| !detector.look(turn, LOOK)));
        assert!((0..10).all(|_| !detector.look(99, LOOK)), "a step of 5 s, waits included");
        assert!(detector.look(99, LOOK));
    }

    #[test]
    fn a_process_that_was_stopped_for_an_hour_finds_no_worker_hanging() {
        let mut detector = StallDetector::new(Duration::from_secs(3));
        assert!(!detector.look(0, Duration::from_hours(1)));
        assert!(!detector.look(1, LOOK));
    }
}
