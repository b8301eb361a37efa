//! What a flight tells Prometheus.

use std::sync::Arc;

use crate::catalog::{Ended, Offer, Spent};
use crate::execute::Progress;
use crate::metrics::Metrics;
use crate::units::Money;

use super::flying::Flying;

/// Counts a model's requests in flight for as long as it lives.
pub(super) struct Aloft(prometheus::IntGauge);

impl Aloft {
    pub(super) fn new(metrics: &Metrics, model: &str) -> Aloft {
        let gauge = metrics.backends.queue_depth.with_label_values(&[model]);
        gauge.inc();
        Aloft(gauge)
    }
}

impl Drop for Aloft {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Whether a model's backend worked.
pub(super) fn backend(metrics: &Metrics, model: &str, works: bool) {
    metrics.backends.state.with_label_values(&[model]).set(i64::from(works));
}

/// How a request ended.
pub(super) fn outcome(flying: &Flying, offer: Option<&Offer>, outcome: &str) {
    let metrics = &flying.parts.metrics;
    let model = offer.map_or("none", |offer| &*offer.model);
    metrics.requests.total.with_label_values(&[&*flying.route, model, outcome]).inc();
    metrics
        .requests
        .seconds
        .with_label_values(&[&*flying.route])
        .observe(flying.arrived.elapsed().as_secs_f64());
}

/// Everything about a settled request.
pub(super) fn landed(
    flying: &Flying,
    offer: &Offer,
    progress: &[Progress],
    spent: &[Spent],
    (cost, overrun, ended): (Money, Money, &str),
) {
    let metrics: &Arc<Metrics> = &flying.parts.metrics;
    let model = &*offer.model;
    outcome(flying, Some(offer), ended);
    if ended != "hung_up" {
        backend(metrics, model, ended == "finished");
    }
    metrics.money.spent.with_label_values(&[model, &*flying.tenant]).inc_by(cost.as_dollars());
    if overrun > Money::ZERO {
        metrics.money.overrun.with_label_values(&[model]).inc_by(overrun.as_dollars());
    }
    metrics.requests.success_predicted.with_label_values(&[model]).observe(offer.success.get());
    for (choice, spent) in progress.iter().zip(spent) {
        timing(flying, model, choice, spent);
        tokens(metrics, offer, spent);
        if choice.phases.was_rescued() {
            metrics.requests.rescues.with_label_values(&[model]).inc();
        }
    }
}

fn timing(flying: &Flying, model: &str, choice: &Progress, spent: &Spent) {
    let metrics = &flying.parts.metrics;
    if let Some(first) = choice.first {
        let waited = first.duration_since(flying.arrived).as_secs_f64();
        metrics.requests.first_token_seconds.with_label_values(&[model]).observe(waited);
        let written = spent.completion().as_f64();
        if written > 1.0 {
            let each = first.elapsed().as_secs_f64() / (written - 1.0);
            metrics.requests.token_seconds.with_label_values(&[model]).observe(each);
        }
    }
    if let Some(first) = choice.first_answer {
        let waited = first.duration_since(flying.arrived).as_secs_f64();
        metrics.requests.first_solution_token_seconds.with_label_values(&[model]).observe(waited);
    }
}

fn tokens(metrics: &Metrics, offer: &Offer, spent: &Spent) {
    let (model, class) = (&*offer.model, offer.class.word());
    metrics.thinking.planned.with_label_values(&[model, class]).observe(offer.thinking.as_f64());
    metrics.thinking.used.with_label_values(&[model, class]).observe(spent.thinking.as_f64());
    metrics.thinking.solution_used.with_label_values(&[model]).observe(spent.solution.as_f64());
    let overshoot = spent.thinking.saturating_sub(offer.thinking);
    metrics.thinking.overshoot.with_label_values(&[model]).observe(overshoot.as_f64());
    let ended = match spent.thinking_ended {
        Ended::None => "none",
        Ended::Closed => "closed",
        Ended::Cut => "cut",
        Ended::Stopped => "stopped",
    };
    metrics.thinking.ended.with_label_values(&[model, ended]).inc();
    if spent.estimated {
        metrics.thinking.estimated.with_label_values(&[model]).inc();
    }
}
