//! Makes series and registers them.

use prometheus::core::Collector;
use prometheus::{
    Counter, CounterVec, Error, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter,
    IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

/// Makes series in one registry, each with its help text.
pub(super) struct Maker<'a>(pub(super) &'a Registry);

fn opts(name: &str, help: &str) -> Opts {
    Opts::new(name, help).namespace("stint")
}

impl Maker<'_> {
    fn keep<C: Collector + Clone + 'static>(&self, series: C) -> Result<C, Error> {
        self.0.register(Box::new(series.clone()))?;
        Ok(series)
    }

    pub(super) fn count(&self, name: &str, help: &str) -> Result<IntCounter, Error> {
        self.keep(IntCounter::with_opts(opts(name, help))?)
    }

    pub(super) fn counts(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec, Error> {
        self.keep(IntCounterVec::new(opts(name, help), labels)?)
    }

    pub(super) fn sum(&self, name: &str, help: &str) -> Result<Counter, Error> {
        self.keep(Counter::with_opts(opts(name, help))?)
    }

    pub(super) fn sums(&self, name: &str, help: &str, labels: &[&str]) -> Result<CounterVec, Error> {
        self.keep(CounterVec::new(opts(name, help), labels)?)
    }

    pub(super) fn level(&self, name: &str, help: &str) -> Result<Gauge, Error> {
        self.keep(Gauge::with_opts(opts(name, help))?)
    }

    pub(super) fn levels(&self, name: &str, help: &str, labels: &[&str]) -> Result<GaugeVec, Error> {
        self.keep(GaugeVec::new(opts(name, help), labels)?)
    }

    pub(super) fn number(&self, name: &str, help: &str) -> Result<IntGauge, Error> {
        self.keep(IntGauge::with_opts(opts(name, help))?)
    }

    pub(super) fn numbers(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec, Error> {
        self.keep(IntGaugeVec::new(opts(name, help), labels)?)
    }

    pub(super) fn spread(&self, name: &str, help: &str, buckets: Vec<f64>) -> Result<Histogram, Error> {
        self.keep(Histogram::with_opts(HistogramOpts::from(opts(name, help)).buckets(buckets))?)
    }

    pub(super) fn spreads(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        buckets: Vec<f64>,
    ) -> Result<HistogramVec, Error> {
        self.keep(HistogramVec::new(HistogramOpts::from(opts(name, help)).buckets(buckets), labels)?)
    }
}
