//! When an engine that failed is started again. It only computes.

use std::time::Duration;

/// The wait before the first start after a failure. It doubles with every further one.
const WAIT_MIN: Duration = Duration::from_secs(1);

/// The longest wait.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// An engine that ran for so long ran well: the next failure is a first one again.
const RAN_WELL: Duration = Duration::from_mins(5);

/// Counts the failures in a row.
#[derive(Debug, Default)]
pub(crate) struct RestartPolicy {
    failures: u32,
}

impl RestartPolicy {
    /// How long to wait after a failure of an engine that had run for so long. One that could not be started did not run.
    pub(crate) fn next_wait(&mut self, ran: Duration) -> Duration {
        if ran >= RAN_WELL {
            self.failures = 0;
        }
        let wait = WAIT_MIN.saturating_mul(2_u32.saturating_pow(self.failures)).min(WAIT_MAX);
        self.failures = self.failures.saturating_add(1);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(policy: &mut RestartPolicy, ran: u64, times: usize) -> Vec<u64> {
        (0..times).map(|_| policy.next_wait(Duration::from_secs(ran)).as_secs()).collect()
    }

    #[test]
    fn waits_grow_to_a_minute_and_begin_anew_after_an_engine_ran_well() {
        let mut policy = RestartPolicy::default();
        assert_eq!(waits(&mut policy, 0, 8), [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(waits(&mut policy, 299, 1), [60], "five minutes are needed");
        assert_eq!(waits(&mut policy, 300, 1), [1]);
        assert_eq!(waits(&mut policy, 20, 2), [2, 4]);
    }
}
