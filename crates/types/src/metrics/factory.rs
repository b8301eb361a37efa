//! Makes series and registers them.

use prometheus::core::Collector;
use prometheus::{
    Counter, CounterVec, Error, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter,
    IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

/// Makes series in one registry, each with its help text.
pub(super) struct MetricFactory<'a>(pub(super) &'a Registry);

fn opts(name: &str, help: &str) -> Opts {
    Opts::new(name, help).namespace("stint")
}

impl MetricFactory<'_> {
    fn register<C: Collector + Clone + 'static>(&self, series: C) -> Result<C, Error> {
        self.0.register(Box::new(series.clone()))?;
        Ok(series)
    }

    pub(super) fn counter(&self, name: &str, help: &str) -> Result<IntCounter, Error> {
        self.register(IntCounter::with_opts(opts(name, help))?)
    }

    pub(super) fn counter_vec(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> Result<IntCounterVec, Error> {
        self.register(IntCounterVec::new(opts(name, help), labels)?)
    }

    pub(super) fn float_counter(&self, name: &str, help: &str) -> Result<Counter, Error> {
        self.register(Counter::with_opts(opts(name, help))?)
    }

    pub(super) fn float_counter_vec(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
    ) -> Result<CounterVec, Error> {
        self.register(CounterVec::new(opts(name, help), labels)?)
    }

    pub(super) fn float_gauge(&self, name: &str, help: &str) -> Result<Gauge, Error> {
        self.register(Gauge::with_opts(opts(name, help))?)
    }

    pub(super) fn float_gauge_vec(&self, name: &str, help: &str, labels: &[&str]) -> Result<GaugeVec, Error> {
        self.register(GaugeVec::new(opts(name, help), labels)?)
    }

    pub(super) fn gauge(&self, name: &str, help: &str) -> Result<IntGauge, Error> {
        self.register(IntGauge::with_opts(opts(name, help))?)
    }

    pub(super) fn gauge_vec(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec, Error> {
        self.register(IntGaugeVec::new(opts(name, help), labels)?)
    }

    pub(super) fn histogram(&self, name: &str, help: &str, buckets: Vec<f64>) -> Result<Histogram, Error> {
        self.register(Histogram::with_opts(HistogramOpts::from(opts(name, help)).buckets(buckets))?)
    }

    pub(super) fn histogram_vec(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        buckets: Vec<f64>,
    ) -> Result<HistogramVec, Error> {
        self.register(HistogramVec::new(HistogramOpts::from(opts(name, help)).buckets(buckets), labels)?)
    }
}
