//! When requests are made.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::scenario::Arrival;

/// Where the next request comes from.
#[derive(Debug, Clone)]
pub(super) enum Arrivals {
    /// From the caller itself, until the end.
    Closed { end: Instant },
    /// From a clock.
    Open(Rc<Schedule>),
}

/// Requests that are due at even distances.
#[derive(Debug)]
pub(super) struct Schedule {
    due: Arc<Semaphore>,
    start: Instant,
    between: Duration,
    count: u64,
    taken: AtomicU64,
}

impl Arrivals {
    pub(super) fn begin(arrival: Arrival, start: Instant, end: Instant) -> Arrivals {
        match arrival {
            Arrival::Closed { .. } => Arrivals::Closed { end },
            Arrival::Open { per_second, .. } => {
                Arrivals::Open(Rc::new(Schedule::begin(per_second, start, end)))
            }
        }
    }

    /// When the next request is due, once it is; nothing after the last.
    pub(super) async fn next(&self) -> Option<Instant> {
        match self {
            Arrivals::Closed { end } => Some(Instant::now()).filter(|now| now < end),
            Arrivals::Open(schedule) => schedule.next().await,
        }
    }
}

impl Schedule {
    fn begin(per_second: f64, start: Instant, end: Instant) -> Schedule {
        let between = Duration::from_secs_f64(1.0 / per_second);
        let count = u64::try_from((end - start).as_nanos() / between.as_nanos().max(1)).unwrap_or(u64::MAX);
        let due = Arc::new(Semaphore::new(0));
        let (clock, first) = (due.clone(), start.into_std());
        // A thread of its own, since the runtime's timers go by whole milliseconds.
        std::thread::spawn(move || {
            for at in 0..count {
                let due = first + times(between, at);
                std::thread::sleep(due.saturating_duration_since(std::time::Instant::now()));
                clock.add_permits(1);
            }
            clock.close();
        });
        Schedule { due, start, between, count, taken: AtomicU64::new(0) }
    }

    async fn next(&self) -> Option<Instant> {
        // The clock closes at the last request, which may be before callers have taken all.
        if let Ok(permit) = self.due.acquire().await {
            permit.forget();
        }
        let at = self.taken.fetch_add(1, Ordering::Relaxed);
        (at < self.count).then(|| self.start + times(self.between, at))
    }
}

fn times(between: Duration, count: u64) -> Duration {
    let nanos = between.as_nanos().saturating_mul(u128::from(count));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_are_due_at_even_distances_however_late_they_are_taken() {
        let start = Instant::now();
        let arrivals = Arrivals::begin(
            Arrival::Open { per_second: 1000.0, connections: 1 },
            start,
            start + Duration::from_millis(10),
        );
        std::thread::sleep(Duration::from_millis(30));
        let mut due = Vec::new();
        while let Some(at) = arrivals.next().await {
            due.push((at - start).as_millis());
        }
        assert_eq!(due, (0..10).collect::<Vec<_>>());
    }
}
