//! How late this process's own tasks wake, so that nobody blames an upstream for it.
//!
//! A task asks to be woken every ten milliseconds and measures how late it is. It is late by the time that others keep the
//! processor: a call that blocks a thread, a runtime with more to do than it has time, a machine that is overcommitted. Whatever
//! arrives meanwhile is read as late as this task wakes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Tasks;

/// How often it wakes.
const TICK: Duration = Duration::from_millis(10);
/// Timers go by whole milliseconds, so that a task which is as late as that was not kept waiting.
const GRANULARITY: Duration = Duration::from_millis(2);

/// How late this process's tasks wake. Clones share one measurement; one that is not running measures nothing.
#[derive(Debug, Clone, Default)]
pub struct EventLoopLag(Arc<Mutex<LagMeasurement>>);

#[derive(Debug, Default)]
struct LagMeasurement {
    /// All lateness so far.
    total: Duration,
    /// When the measuring task is to wake next.
    due: Option<Instant>,
}

impl EventLoopLag {
    /// Measures until shutdown, and reports each time that the task was late.
    pub fn measure(&self, tasks: &Tasks, report: impl Fn(Duration) + Send + 'static) {
        let (lag, stopping) = (self.clone(), tasks.stopping());
        tasks.spawn(async move {
            tokio::pin!(stopping);
            loop {
                let due = Instant::now() + TICK;
                lag.lock().due = Some(due);
                tokio::select! {
                    () = &mut stopping => break,
                    () = tokio::time::sleep_until(due) => {}
                }
                let late = lateness(due, Instant::now());
                if !late.is_zero() {
                    lag.add(late);
                    report(late);
                }
            }
            lag.lock().due = None;
        });
    }

    /// How much of the time so far was lost altogether. Who reads it twice knows how much was lost in between.
    pub fn total(&self) -> Duration {
        let measured = self.lock();
        // Where all were kept waiting, who reads this may have woken before the task that measures.
        let now = measured.due.map_or(Duration::ZERO, |due| lateness(due, Instant::now()));
        measured.total + now
    }

    fn add(&self, late: Duration) {
        let mut measured = self.lock();
        measured.total += late;
        measured.due = None;
    }

    fn lock(&self) -> MutexGuard<'_, LagMeasurement> {
        // Each statement leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lateness(due: Instant, now: Instant) -> Duration {
    let late = now.saturating_duration_since(due);
    if late > GRANULARITY { late } else { Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_a_stall_took_is_known_also_before_the_measuring_task_has_woken() {
        let (tasks, lag) = (Tasks::default(), EventLoopLag::default());
        lag.measure(&tasks, |_| ());
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(lag.total(), Duration::ZERO);
        let due = lag.lock().due.unwrap();
        tokio::time::advance(Duration::from_secs(2)).await;
        let lost = Instant::now() - due;
        assert_eq!(lag.total(), lost);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(lag.total(), lost, "it is counted once");
        tasks.stop();
        assert!(tasks.drain(Duration::from_secs(1)).await);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(lag.total(), lost, "nobody measures any more");
    }
}
