//! Reads series of the metrics: sums, sums by a label, and histograms.

use std::collections::BTreeMap;

use prometheus::core::Collector;
use prometheus::proto::{Bucket, Metric, MetricFamily};

/// A sum for each value of one label.
pub(super) type ByLabel = BTreeMap<String, f64>;

/// A count, which is whole though the metrics have it as a fraction.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates; counts are far below"
)]
pub(super) fn whole(count: f64) -> u64 {
    count.max(0.0).round() as u64
}

/// The counts of each word.
pub(super) fn counts(sums: &ByLabel) -> BTreeMap<&str, u64> {
    sums.iter().map(|(word, count)| (word.as_str(), whole(*count))).collect()
}

/// The sum over all labels.
pub(super) fn sum(series: &impl Collector) -> f64 {
    series.collect().iter().flat_map(MetricFamily::get_metric).map(value).sum()
}

/// The sum for each value of a label.
pub(super) fn by_label(series: &impl Collector, name: &str) -> ByLabel {
    let mut sums = ByLabel::new();
    each(series, |metric| *sums.entry(label(metric, name).to_owned()).or_default() += value(metric));
    sums
}

/// The same within each value of another label.
pub(super) fn by_labels(series: &impl Collector, [outer, inner]: [&str; 2]) -> BTreeMap<String, ByLabel> {
    let mut sums = BTreeMap::<String, ByLabel>::new();
    each(series, |metric| {
        let of_outer = sums.entry(label(metric, outer).to_owned()).or_default();
        *of_outer.entry(label(metric, inner).to_owned()).or_default() += value(metric);
    });
    sums
}

/// The sums for each value of a third label within the values of two others.
pub(super) fn by_three(
    series: &impl Collector,
    [first, second, third]: [&str; 3],
) -> BTreeMap<(String, String), ByLabel> {
    let mut sums = BTreeMap::<(String, String), ByLabel>::new();
    each(series, |metric| {
        let key = (label(metric, first).to_owned(), label(metric, second).to_owned());
        *sums.entry(key).or_default().entry(label(metric, third).to_owned()).or_default() += value(metric);
    });
    sums
}

/// What a histogram holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Distribution {
    /// How many.
    pub(super) count: u64,
    /// All of them together.
    pub(super) sum: f64,
    /// How many are in each bucket alone; the last one has no bound.
    pub(super) buckets: Vec<u64>,
}

/// A histogram for each value of a label.
pub(super) fn distributions(series: &impl Collector, name: &str) -> BTreeMap<String, Distribution> {
    let mut found = BTreeMap::<String, Distribution>::new();
    each(series, |metric| found.entry(label(metric, name).to_owned()).or_default().add(&of(metric)));
    found
}

/// The upper bounds of a histogram's buckets.
pub(super) fn bounds(series: &impl Collector) -> Vec<f64> {
    let families = series.collect();
    let first = families.iter().flat_map(MetricFamily::get_metric).next();
    let buckets = first.map(|metric| metric.get_histogram().get_bucket()).unwrap_or_default();
    buckets.iter().map(Bucket::upper_bound).filter(|bound| bound.is_finite()).collect()
}

impl Distribution {
    pub(super) fn add(&mut self, more: &Distribution) {
        self.count += more.count;
        self.sum += more.sum;
        self.buckets.resize(self.buckets.len().max(more.buckets.len()), 0);
        self.buckets.iter_mut().zip(&more.buckets).for_each(|(all, more)| *all += more);
    }

    /// Of all labels together.
    pub(super) fn total<'a>(all: impl Iterator<Item = &'a Distribution>) -> Distribution {
        all.fold(Distribution::default(), |mut total, more| {
            total.add(more);
            total
        })
    }
}

fn of(metric: &Metric) -> Distribution {
    let histogram = metric.get_histogram();
    let count = histogram.get_sample_count();
    let bounded = histogram.get_bucket().iter().filter(|bucket| bucket.upper_bound().is_finite());
    let up_to = bounded.map(Bucket::cumulative_count).chain([count]);
    let buckets = up_to.scan(0, |before, up_to| Some(up_to - std::mem::replace(before, up_to))).collect();
    Distribution { count, sum: histogram.get_sample_sum(), buckets }
}

fn each(series: &impl Collector, mut take: impl FnMut(&Metric)) {
    series.collect().iter().flat_map(MetricFamily::get_metric).for_each(&mut take);
}

/// A series is one or the other; the one that it is not is 0.
fn value(metric: &Metric) -> f64 {
    metric.get_counter().get_value() + metric.get_gauge().get_value()
}

fn label<'m>(metric: &'m Metric, name: &str) -> &'m str {
    metric.get_label().iter().find(|label| label.name() == name).map_or("", |label| label.value())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::metrics::Metrics;

    #[test]
    fn series_are_summed_by_their_labels() {
        let metrics = Metrics::new().unwrap();
        let total = &metrics.requests.total;
        for (model, outcome, count) in [("a", "answered", 2), ("b", "answered", 3), ("b", "failed", 1)] {
            total.with_label_values(&["auto", model, outcome]).inc_by(count);
        }
        assert!((sum(total) - 6.0).abs() < f64::EPSILON);
        let outcomes = by_label(total, "outcome");
        assert_eq!(outcomes, ByLabel::from([("answered".to_owned(), 5.0), ("failed".to_owned(), 1.0)]));
        let models = by_labels(total, ["model", "outcome"]);
        assert!((models["b"]["failed"] - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn a_histogram_has_what_is_in_each_bucket_alone() {
        let metrics = Metrics::new().unwrap();
        let used = &metrics.thinking.used;
        for tokens in [0.0, 3.0, 4.0, 100_000.0] {
            used.with_label_values(&["m", "inline"]).observe(tokens);
        }
        let bounds = bounds(used);
        let found = &distributions(used, "model")["m"];
        let of_four = bounds.iter().position(|bound| *bound >= 4.0).unwrap();
        assert_eq!((found.count, found.buckets.len()), (4, bounds.len() + 1));
        assert_eq!((found.buckets[0], found.buckets[of_four], found.buckets[bounds.len()]), (1, 2, 1));
    }
}
