//! Makes series, registers them, and notes what each of them is.

use std::cell::RefCell;

use prometheus::core::Collector;
use prometheus::{
    Counter, CounterVec, Error, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter,
    IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

use super::description::{SeriesDescription, SeriesKind};

/// Put before the name of every series that is not about the process.
const PREFIX: &str = "stint";

/// Makes series in one registry, each with its help text, and describes them.
#[derive(Clone, Copy)]
pub(super) struct MetricFactory<'a> {
    registry: &'a Registry,
    described: &'a RefCell<Vec<SeriesDescription>>,
    subject: &'static str,
}

fn opts(name: &str, help: &str) -> Opts {
    Opts::new(name, help).namespace(PREFIX)
}

impl<'a> MetricFactory<'a> {
    pub(super) fn new(registry: &'a Registry, described: &'a RefCell<Vec<SeriesDescription>>) -> Self {
        MetricFactory { registry, described, subject: "" }
    }

    /// The same for the series of one subject.
    pub(super) fn about(&self, subject: &'static str) -> MetricFactory<'a> {
        MetricFactory { subject, ..*self }
    }

    /// Registers a collector that makes series by itself, with what these are: kind, whole name, help.
    pub(super) fn collector<C: Collector + 'static>(
        &self,
        collector: C,
        series: &[(SeriesKind, &str, &str)],
    ) -> Result<(), Error> {
        for (kind, name, help) in series {
            self.describe(*kind, (*name).to_owned(), help, &[]);
        }
        self.registry.register(Box::new(collector))
    }

    fn describe(&self, kind: SeriesKind, name: String, help: &str, labels: &[&str]) {
        let (help, labels) = (help.to_owned(), labels.iter().map(|label| (*label).to_owned()).collect());
        self.described.borrow_mut().push(SeriesDescription {
            subject: self.subject,
            kind,
            name,
            help,
            labels,
        });
    }

    fn register<C: Collector + Clone + 'static>(
        &self,
        series: C,
        kind: SeriesKind,
        (name, help, labels): (&str, &str, &[&str]),
    ) -> Result<C, Error> {
        self.registry.register(Box::new(series.clone()))?;
        self.describe(kind, format!("{PREFIX}_{name}"), help, labels);
        Ok(series)
    }

    pub(super) fn counter(&self, name: &str, help: &str) -> Result<IntCounter, Error> {
        let series = IntCounter::with_opts(opts(name, help))?;
        self.register(series, SeriesKind::Counter, (name, help, &[]))
    }

    pub(super) fn counter_vec(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> Result<IntCounterVec, Error> {
        let series = IntCounterVec::new(opts(name, help), labels)?;
        self.register(series, SeriesKind::Counter, (name, help, labels))
    }

    pub(super) fn float_counter(&self, name: &str, help: &str) -> Result<Counter, Error> {
        self.register(Counter::with_opts(opts(name, help))?, SeriesKind::Counter, (name, help, &[]))
    }

    pub(super) fn float_counter_vec(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> Result<CounterVec, Error> {
        let series = CounterVec::new(opts(name, help), labels)?;
        self.register(series, SeriesKind::Counter, (name, help, labels))
    }

    pub(super) fn float_gauge(&self, name: &str, help: &str) -> Result<Gauge, Error> {
        self.register(Gauge::with_opts(opts(name, help))?, SeriesKind::Gauge, (name, help, &[]))
    }

    pub(super) fn float_gauge_vec(&self, name: &str, help: &str, labels: &[&str]) -> Result<GaugeVec, Error> {
        let series = GaugeVec::new(opts(name, help), labels)?;
        self.register(series, SeriesKind::Gauge, (name, help, labels))
    }

    pub(super) fn gauge(&self, name: &str, help: &str) -> Result<IntGauge, Error> {
        self.register(IntGauge::with_opts(opts(name, help))?, SeriesKind::Gauge, (name, help, &[]))
    }

    pub(super) fn gauge_vec(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec, Error> {
        let series = IntGaugeVec::new(opts(name, help), labels)?;
        self.register(series, SeriesKind::Gauge, (name, help, labels))
    }

    pub(super) fn histogram(&self, name: &str, help: &str, buckets: Vec<f64>) -> Result<Histogram, Error> {
        let series = Histogram::with_opts(HistogramOpts::from(opts(name, help)).buckets(buckets))?;
        self.register(series, SeriesKind::Histogram, (name, help, &[]))
    }

    pub(super) fn histogram_vec(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        buckets: Vec<f64>,
    ) -> Result<HistogramVec, Error> {
        let series = HistogramVec::new(HistogramOpts::from(opts(name, help)).buckets(buckets), labels)?;
        self.register(series, SeriesKind::Histogram, (name, help, labels))
    }
}
