//! Times in buckets whose width grows with the time, so that each is known to a thousandth from nanoseconds to hours.

use std::time::Duration;

use serde::Serialize;

/// The highest bits of a time that are kept.
const KEPT_BITS: u32 = 10;
const BUCKETS_PER_POWER: usize = 1 << KEPT_BITS;
const POWERS: usize = 64 - KEPT_BITS as usize;

/// How often each time was seen.
#[derive(Debug, Clone)]
pub struct Histogram {
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
}

/// What is told of a histogram, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Summary {
    /// How many times were seen.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// Nine in ten were no longer.
    pub p90: f64,
    /// 99 in a hundred were no longer.
    pub p99: f64,
    /// 999 in a thousand were no longer.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { buckets: vec![0; (POWERS + 1) * BUCKETS_PER_POWER], count: 0, sum: 0, max: 0 }
    }
}

impl Histogram {
    /// Counts a time.
    pub fn record(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket(nanos)] += 1;
        self.count += 1;
        self.sum += u128::from(nanos);
        self.max = self.max.max(nanos);
    }

    /// The time that this share of all is not longer than, to a thousandth; zero where nothing was seen.
    pub fn quantile(&self, share: f64) -> Duration {
        let mut left = rank(share, self.count);
        for (at, count) in self.buckets.iter().enumerate() {
            if left <= *count && *count > 0 {
                return Duration::from_nanos(upper_end(at).min(self.max));
            }
            left = left.saturating_sub(*count);
        }
        Duration::from_nanos(self.max)
    }

    /// What is told of it.
    pub fn summary(&self) -> Summary {
        let at = |share| milliseconds(self.quantile(share));
        let mean = u64::try_from(self.sum / u128::from(self.count.max(1))).unwrap_or(u64::MAX);
        Summary {
            count: self.count,
            mean: milliseconds(Duration::from_nanos(mean)),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: milliseconds(Duration::from_nanos(self.max)),
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Which of `count` times in order stands at this share, from one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "counts of requests are far below 2^53"
)]
fn rank(share: f64, count: u64) -> u64 {
    ((share * count as f64).ceil() as u64).max(1)
}

fn bucket(nanos: u64) -> usize {
    let shift = (64 - nanos.leading_zeros()).saturating_sub(KEPT_BITS + 1);
    let kept = usize::try_from(nanos >> shift).unwrap_or(usize::MAX);
    shift as usize * BUCKETS_PER_POWER + kept
}

/// The longest time of a bucket.
fn upper_end(bucket: usize) -> u64 {
    if bucket < 2 * BUCKETS_PER_POWER {
        return bucket as u64;
    }
    let shift = bucket / BUCKETS_PER_POWER - 1;
    let kept = (bucket - shift * BUCKETS_PER_POWER) as u64;
    (kept << shift) | ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_known_to_a_thousandth() {
        for nanos in [0, 1, 1023, 1024, 2047, 2048, 2049, 999_999, 1 << 40, (1 << 50) + 12_345, u64::MAX] {
            let end = upper_end(bucket(nanos));
            assert!(end >= nanos, "{nanos} {end}");
            assert!(end - nanos <= nanos / 1000, "{nanos} {end}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_times_in_order() {
        let mut histogram = Histogram::default();
        for micros in 1..=1000 {
            histogram.record(Duration::from_micros(micros));
        }
        let summary = histogram.summary();
        assert!((summary.p50 - 0.5).abs() < 0.001, "{summary:?}");
        assert!((summary.p99 - 0.99).abs() < 0.002, "{summary:?}");
        assert!((summary.max - 1.0).abs() < 1e-9 && summary.count == 1000);
    }

    #[test]
    fn nothing_seen_is_told_as_zero() {
        assert_eq!(Histogram::default().summary(), Summary::default());
    }
}
