//! What a flight tells Prometheus.

use crate::catalog::{ChoiceUsage, Offer, ThinkingStopReason};
use crate::execute::ChoiceProgress;
use crate::metrics::Metrics;

use crate::gateway::run::running_request::RunningRequest;

/// A request that was settled.
pub(in crate::gateway) struct SettledRequest<'a> {
    pub(in crate::gateway) offer: &'a Offer,
    pub(in crate::gateway) progress: &'a [ChoiceProgress],
    pub(in crate::gateway) spent: &'a [ChoiceUsage],
    pub(in crate::gateway) outcome: &'static str,
}

/// How a request ended.
pub(in crate::gateway) fn request(flying: &RunningRequest, model: &str, outcome: &str) {
    let requests = &flying.parts.metrics.requests;
    requests.total.with_label_values(&[&*flying.route, model, outcome]).inc();
    requests.seconds.with_label_values(&[&*flying.route]).observe(flying.arrived.elapsed().as_secs_f64());
}

/// Everything about a settled request but its money, which the ledger tells of.
pub(in crate::gateway) fn settled(flying: &RunningRequest, landed: &SettledRequest) {
    let (metrics, model) = (&flying.parts.metrics, &*landed.offer.model);
    request(flying, model, landed.outcome);
    metrics.requests.success_predicted.with_label_values(&[model]).observe(landed.offer.success.get());
    for (choice, spent) in landed.progress.iter().zip(landed.spent) {
        timing(flying, model, choice, spent);
        tokens(metrics, landed.offer, spent);
        if choice.phases.was_rescued() {
            metrics.requests.rescues.with_label_values(&[model]).inc();
        }
    }
}

fn timing(flying: &RunningRequest, model: &str, choice: &ChoiceProgress, spent: &ChoiceUsage) {
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

fn tokens(metrics: &Metrics, offer: &Offer, spent: &ChoiceUsage) {
    let (model, class) = (&*offer.model, offer.class.as_str());
    metrics.thinking.planned.with_label_values(&[model, class]).observe(offer.thinking.as_f64());
    metrics.thinking.used.with_label_values(&[model, class]).observe(spent.thinking.as_f64());
    metrics.thinking.solution_used.with_label_values(&[model]).observe(spent.solution.as_f64());
    let overshoot = spent.thinking.saturating_sub(offer.thinking);
    metrics.thinking.overshoot.with_label_values(&[model]).observe(overshoot.as_f64());
    let ended = match spent.thinking_ended {
        ThinkingStopReason::None => "none",
        ThinkingStopReason::Closed => "closed",
        ThinkingStopReason::Cut => "cut",
        ThinkingStopReason::Stopped => "stopped",
    };
    metrics.thinking.ended.with_label_values(&[model, ended]).inc();
    let answer = spent.solution_ended.as_str();
    metrics.thinking.solution_ended.with_label_values(&[model, answer]).inc();
    metrics.thinking.leaks.with_label_values(&[model]).inc_by(spent.leaks.into());
    if spent.estimated {
        metrics.thinking.estimated.with_label_values(&[model]).inc();
    }
}
