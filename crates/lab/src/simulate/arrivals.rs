//! When requests arrive.

use std::sync::Arc;
use std::time::Duration;

use stint_types::units::{SeededRng, mix64};

use super::scenario::{self, Scenario};
use super::trace::RequestTrace;
use super::virtual_time::VirtualTime;

/// A day's seconds.
const DAY: f64 = 86_400.0;
/// A minute's seconds.
const MINUTE: f64 = 60.0;

/// A Poisson stream whose rate changes, by thinning (Lewis and Shedler, *Simulation of nonhomogeneous Poisson processes by
/// thinning*, 1979): candidates at the highest rate there is, of which each stays by the share that holds then.
#[derive(Debug, Clone)]
pub(super) struct ArrivalProcess {
    stream: scenario::ArrivalPattern,
    dice: SeededRng,
    now: VirtualTime,
    /// Where they were recorded, and how many of them have come.
    trace: Option<(Arc<RequestTrace>, u64)>,
}

impl ArrivalProcess {
    /// The arrivals of a scenario, the same for everybody who asks with one seed.
    pub(super) fn new(scenario: &Scenario, trace: Option<Arc<RequestTrace>>) -> ArrivalProcess {
        ArrivalProcess {
            stream: scenario.arrivals,
            dice: SeededRng::new(mix64(scenario.seed ^ 0xa771_0a15)),
            now: VirtualTime::default(),
            trace: trace.map(|trace| (trace, 0)),
        }
    }

    /// When the next one comes.
    pub(super) fn next(&mut self) -> VirtualTime {
        if let Some((trace, number)) = &mut self.trace {
            let after = trace.after(*number);
            *number += 1;
            return VirtualTime::default().after(after.as_secs_f64());
        }
        let most = self.stream.per_second * (1.0 + self.stream.wave) * self.stream.burst.max(1.0);
        loop {
            self.now = self.now.after(-(1.0 - self.dice.next_f64()).ln() / most);
            if self.dice.next_f64() * most <= self.rate() {
                return self.now;
            }
        }
    }

    /// When the last of so many comes.
    pub(super) fn last(mut self, requests: u64) -> Duration {
        let last = (0..requests).map(|_| self.next()).last();
        Duration::from_nanos(last.unwrap_or_default().0)
    }

    /// The rate at this moment: least at midnight, most at noon.
    fn rate(&self) -> f64 {
        let scenario::ArrivalPattern { per_second, wave, burst_every, burst_length, burst } = self.stream;
        let seconds = self.now.seconds();
        let by_day = 1.0 - wave * (std::f64::consts::TAU * seconds / DAY).cos();
        let bursts = burst_every > 0.0 && (seconds / MINUTE) % burst_every < burst_length;
        per_second * by_day * if bursts { burst } else { 1.0 }
    }
}
