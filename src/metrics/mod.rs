//! What Prometheus sees: every series of the design, named, explained and bounded in its labels.
//!
//! Labels are names from the configuration or words of an enumeration, never a key, a prompt or free text;
//! a caller's unknown name is counted as `other`.

mod buckets;

use prometheus::core::Collector;
use prometheus::{
    CounterVec, Encoder, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, TextEncoder,
};

/// The label of what is not known by name.
pub const OTHER: &str = "other";

/// Every series. Cheap to share behind an `Arc`.
#[derive(Debug)]
#[expect(missing_docs, reason = "each series carries its help text, below")]
pub struct Metrics {
    registry: Registry,
    pub requests: IntCounterVec,
    pub request_seconds: HistogramVec,
    pub first_token_seconds: HistogramVec,
    pub first_solution_token_seconds: HistogramVec,
    pub token_seconds: HistogramVec,
    pub thinking_planned: HistogramVec,
    pub thinking_used: HistogramVec,
    pub thinking_ended: IntCounterVec,
    pub thinking_overshoot: HistogramVec,
    pub solution_used: HistogramVec,
    pub money_reserved: Gauge,
    pub money_spent: CounterVec,
    pub money_overrun: CounterVec,
    pub refusals: IntCounterVec,
    pub success_predicted: HistogramVec,
    pub rescues: IntCounterVec,
    pub fallbacks: IntCounterVec,
    pub queue_depth: IntGaugeVec,
    pub backend_state: IntGaugeVec,
    pub ledger_commit_seconds: Histogram,
    pub ledger_pending: IntGauge,
    pub budget_left: GaugeVec,
    pub engine_tokens: IntCounterVec,
    pub estimated_usage: IntCounterVec,
    pub connections: IntGauge,
}

/// A series could not be registered: its name is taken or malformed.
#[derive(Debug, thiserror::Error)]
#[error("metrics could not be set up: {0}")]
pub struct MetricsError(#[from] prometheus::Error);

impl Metrics {
    /// A registry of its own with every series in it.
    ///
    /// # Errors
    /// Never, unless two series below share a name.
    pub fn new() -> Result<Metrics, MetricsError> {
        let r = Registry::new();
        Ok(Metrics {
            requests: counts(
                &r,
                "requests_total",
                "Requests by how they ended",
                &["route", "model", "outcome"],
            )?,
            request_seconds: seconds(
                &r,
                "request_seconds",
                "Time from a request's arrival to its settled end",
                &["route"],
            )?,
            first_token_seconds: seconds(
                &r,
                "first_token_seconds",
                "Time to the first token, of thought or answer",
                &["model"],
            )?,
            first_solution_token_seconds: seconds(
                &r,
                "first_solution_token_seconds",
                "Time to the first token of the answer",
                &["model"],
            )?,
            token_seconds: histogram(
                &r,
                "token_seconds",
                "Time per token written, thought and answer together",
                &["model"],
                buckets::token_seconds(),
            )?,
            thinking_planned: histogram(
                &r,
                "thinking_tokens_planned",
                "Thinking budgets given",
                &["model", "class"],
                buckets::tokens(),
            )?,
            thinking_used: histogram(
                &r,
                "thinking_tokens_used",
                "Thinking tokens used",
                &["model", "class"],
                buckets::tokens(),
            )?,
            thinking_ended: counts(
                &r,
                "thinking_ended_total",
                "Thoughts by how they ended",
                &["model", "ended"],
            )?,
            thinking_overshoot: histogram(
                &r,
                "thinking_overshoot_tokens",
                "Thinking tokens used beyond the budget",
                &["model"],
                buckets::tokens(),
            )?,
            solution_used: histogram(
                &r,
                "solution_tokens_used",
                "Solution tokens used",
                &["model"],
                buckets::tokens(),
            )?,
            money_reserved: one(
                &r,
                Gauge::new("stint_money_reserved_usd", "Money set aside and not yet settled, in dollars")?,
            )?,
            money_spent: one(
                &r,
                CounterVec::new(
                    opts("money_spent_usd_total", "Money settled, in dollars"),
                    &["model", "tenant"],
                )?,
            )?,
            money_overrun: one(
                &r,
                CounterVec::new(
                    opts("money_overrun_usd_total", "Money settled beyond what was reserved, in dollars"),
                    &["model"],
                )?,
            )?,
            refusals: counts(
                &r,
                "refusals_total",
                "Requests refused, by the limit that refused them",
                &["limit"],
            )?,
            success_predicted: histogram(
                &r,
                "success_predicted",
                "Predicted chance of a right answer",
                &["model"],
                buckets::shares(),
            )?,
            rescues: counts(
                &r,
                "rescues_total",
                "Empty answers tried again with the least thinking",
                &["model"],
            )?,
            fallbacks: counts(
                &r,
                "fallbacks_total",
                "Offers given up for the next one, by the model that failed",
                &["model"],
            )?,
            queue_depth: gauges(&r, "queue_depth", "Requests in flight", &["model"])?,
            backend_state: gauges(
                &r,
                "backend_state",
                "1 where the last call of the model's backend worked, else 0",
                &["model"],
            )?,
            ledger_commit_seconds: one(
                &r,
                Histogram::with_opts(
                    HistogramOpts::new("stint_ledger_commit_seconds", "Time of one group commit")
                        .buckets(buckets::commit_seconds()),
                )?,
            )?,
            ledger_pending: one(
                &r,
                IntGauge::new("stint_ledger_pending", "Ledger entries that wait for their commit")?,
            )?,
            budget_left: one(
                &r,
                GaugeVec::new(
                    opts("budget_left_ratio", "What is left of a declared tenant's tightest limit, 0 to 1"),
                    &["tenant"],
                )?,
            )?,
            engine_tokens: counts(
                &r,
                "engine_tokens_total",
                "Tokens that the local engine read and wrote",
                &["model", "phase"],
            )?,
            estimated_usage: counts(
                &r,
                "estimated_usage_total",
                "Answers whose usage was reckoned, not reported",
                &["model"],
            )?,
            connections: one(&r, IntGauge::new("stint_connections", "Open connections of callers")?)?,
            registry: r,
        })
    }

    /// All series in Prometheus' text format 0.0.4.
    pub fn text(&self) -> String {
        let mut text = Vec::new();
        // Encoding fails only on a family without a name, and every family above has one.
        let encoded = TextEncoder::new().encode(&self.registry.gather(), &mut text);
        debug_assert!(encoded.is_ok(), "every series has a name");
        String::from_utf8_lossy(&text).into_owned()
    }
}

fn opts(name: &str, help: &str) -> Opts {
    Opts::new(name, help).namespace("stint")
}

fn one<C: Collector + Clone + 'static>(registry: &Registry, series: C) -> Result<C, prometheus::Error> {
    registry.register(Box::new(series.clone()))?;
    Ok(series)
}

fn counts(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntCounterVec, prometheus::Error> {
    one(registry, IntCounterVec::new(opts(name, help), labels)?)
}

fn gauges(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<IntGaugeVec, prometheus::Error> {
    one(registry, IntGaugeVec::new(opts(name, help), labels)?)
}

fn seconds(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> Result<HistogramVec, prometheus::Error> {
    histogram(registry, name, help, labels, buckets::seconds())
}

fn histogram(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
    buckets: Vec<f64>,
) -> Result<HistogramVec, prometheus::Error> {
    let opts = HistogramOpts::from(opts(name, help)).buckets(buckets);
    one(registry, HistogramVec::new(opts, labels)?)
}
