//! `WaitClock`: how long a request waited for what others hold. What is left of the time until it is dispatched the gateway took
//! itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Adds up waits.
#[derive(Debug, Default)]
pub(crate) struct WaitClock(AtomicU64);

impl WaitClock {
    /// Waits, and adds that up.
    pub(crate) async fn during<T>(&self, wait: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let done = wait.await;
        let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_add(took, Ordering::Relaxed);
        done
    }

    /// All waits until now.
    pub(crate) fn waited(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_add_up_and_what_is_between_them_does_not() {
        let clock = WaitClock::default();
        let wait = |millis| clock.during(tokio::time::sleep(Duration::from_millis(millis)));
        wait(20).await;
        tokio::time::sleep(Duration::from_secs(5)).await;
        wait(30).await;
        assert_eq!(clock.waited(), Duration::from_millis(50));
    }
}
