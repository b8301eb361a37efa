//! Watches the gateway's processes while it is measured.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::processes::{Usage, usage};
use crate::report::GatewayReport;

const EVERY: Duration = Duration::from_secs(1);
const SECONDS_PER_MINUTE: f64 = 60.0;

/// What the processes had taken at each second, the begin and the end among them.
#[derive(Debug)]
pub(super) struct Watch(Vec<(f64, Usage)>);

impl Watch {
    pub(super) async fn until(processes: Vec<u32>, end: Instant) -> Watch {
        let begin = Instant::now();
        let mut samples = Vec::new();
        loop {
            let now = Instant::now();
            samples.push(((now - begin).as_secs_f64(), usage(&processes)));
            if now >= end {
                return Watch(samples);
            }
            sleep_until((now + EVERY).min(end)).await;
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts and bytes are far below 2^53")]
    pub(super) fn report(self, requests: u64, events: u64) -> GatewayReport {
        let first = self.0.first().copied().unwrap_or_default();
        let last = self.0.last().copied().unwrap_or_default();
        let taken = last.1.processor_seconds - first.1.processor_seconds;
        let slope = |value: fn(&Usage) -> u64| {
            // At the end callers are leaving.
            let steady = self.0.split_last().map_or(&[][..], |(_, steady)| steady);
            let points: Vec<_> = steady.iter().map(|(at, usage)| (*at, value(usage) as f64)).collect();
            slope(&points) * SECONDS_PER_MINUTE
        };
        GatewayReport {
            micros_per_request: 1e6 * taken / requests.max(1) as f64,
            micros_per_event: (events > 0).then(|| 1e6 * taken / events as f64),
            processors: taken / (last.0 - first.0).max(f64::EPSILON),
            usage: last.1,
            resident_slope: slope(|usage| usage.resident),
            descriptor_slope: slope(|usage| usage.descriptors),
            samples: self.0.iter().map(|(at, usage)| (*at, usage.resident, usage.descriptors)).collect(),
        }
    }
}

/// Of the straight line through these points with the least squares.
#[expect(clippy::cast_precision_loss, reason = "a run has few seconds")]
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len().max(1) as f64;
    let middle = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (middle(|point| point.0), middle(|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let together: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    if spread > 0.0 { together / spread } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_is_that_of_the_line() {
        let points: Vec<_> = (0..10).map(|at| (f64::from(at), 3.0 * f64::from(at) + 7.0)).collect();
        assert!((slope(&points) - 3.0).abs() < 1e-9);
        assert!(slope(&points[..1]).abs() < 1e-9);
    }
}
