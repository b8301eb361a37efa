//! Updates the Prometheus metrics at the end of a request.

use std::time::Duration;

use crate::execute::ChoiceProgress;
use crate::gateway::request::RequestContext;
use crate::gateway::run::RequestOutcome;
use stint_types::catalog::{ChoiceUsage, Offer};
use stint_types::metrics::Metrics;
use stint_types::units::Tokens;

use super::ended_word;

/// How a request ended.
pub(super) fn request(context: &RequestContext, model: &str, outcome: &str) {
    let requests = &context.parts().metrics.requests;
    requests.total.with_label_values(&[&*context.route, model, outcome]).inc();
    requests.seconds.with_label_values(&[&*context.route]).observe(context.arrived.elapsed().as_secs_f64());
}

/// What the gateway itself took of a request.
pub(super) fn overhead(context: &RequestContext, took: Duration) {
    context.parts().metrics.requests.overhead_seconds.observe(took.as_secs_f64());
}

/// Everything about a settled request but its money, which the ledger's metrics cover.
pub(super) fn settled(context: &RequestContext, outcome: &RequestOutcome<'_>) {
    let (metrics, model) = (&context.parts().metrics, &*outcome.offer.model);
    request(context, model, ended_word::of_outcome(context, outcome));
    metrics.requests.success_predicted.with_label_values(&[model]).observe(outcome.offer.success.get());
    read(metrics, model, &outcome.spent);
    for (choice, spent) in outcome.progress.iter().zip(&outcome.spent) {
        timing(context, model, choice, spent);
        tokens(metrics, outcome.offer, spent);
        if choice.phases.was_rescued() {
            metrics.requests.rescues.with_label_values(&[model]).inc();
        }
    }
}

fn timing(context: &RequestContext, model: &str, choice: &ChoiceProgress, spent: &ChoiceUsage) {
    let metrics = &context.parts().metrics;
    if let Some(first) = choice.first {
        let waited = first.duration_since(context.arrived).as_secs_f64();
        metrics.requests.first_token_seconds.with_label_values(&[model]).observe(waited);
        let written = spent.completion().as_f64();
        if written > 1.0 {
            let each = first.elapsed().as_secs_f64() / (written - 1.0);
            metrics.requests.token_seconds.with_label_values(&[model]).observe(each);
        }
    }
    if let Some(first) = choice.first_answer {
        let waited = first.duration_since(context.arrived).as_secs_f64();
        metrics.requests.first_solution_token_seconds.with_label_values(&[model]).observe(waited);
    }
}

/// What was read, and what of it came from a cache. The prompt is the same for every choice.
fn read(metrics: &Metrics, model: &str, spent: &[ChoiceUsage]) {
    let prompt = spent.first().map_or(Tokens::ZERO, |spent| spent.prompt);
    let cached: Tokens = spent.iter().flat_map(|spent| &spent.calls).map(|call| call.cache_read).sum();
    metrics.requests.prompt_tokens.with_label_values(&[model]).inc_by(prompt.0);
    if cached > Tokens::ZERO {
        metrics.requests.cached_tokens.with_label_values(&[model]).inc_by(cached.0);
    }
}

fn tokens(metrics: &Metrics, offer: &Offer, spent: &ChoiceUsage) {
    let (model, class) = (&*offer.model, offer.class.as_str());
    metrics.thinking.planned.with_label_values(&[model, class]).observe(offer.thinking.as_f64());
    metrics.thinking.used.with_label_values(&[model, class]).observe(spent.thinking.as_f64());
    metrics.thinking.solution_used.with_label_values(&[model]).observe(spent.solution.as_f64());
    let overshoot = spent.thinking.saturating_sub(offer.thinking);
    metrics.thinking.overshoot.with_label_values(&[model]).observe(overshoot.as_f64());
    let ended = spent.thinking_ended.as_str();
    metrics.thinking.ended.with_label_values(&[model, ended]).inc();
    let answer = spent.solution_ended.as_str();
    metrics.thinking.solution_ended.with_label_values(&[model, answer]).inc();
    metrics.thinking.leaks.with_label_values(&[model]).inc_by(spent.leaks.into());
    if spent.estimated {
        metrics.thinking.estimated.with_label_values(&[model]).inc();
    }
}
