//! Sets counters to 0 at the start: a counter that first appears with its first increment hides that increment from an
//! alert on its rate.

use crate::execute::SamplingStopReason;
use stint_types::catalog::{Route, SolutionStopReason};
use stint_types::metrics::Metrics;

use super::feedback;
use super::run::{cascade, hedge, judge, probe, selection, voting};
use super::state::GatewayParts;

/// Begins every count whose labels are known beforehand.
pub(super) fn zero_all(parts: &GatewayParts) {
    let metrics = &parts.metrics;
    for (model, known) in &parts.catalog.models {
        metrics.zero_model(model);
        for ended in SolutionStopReason::ALL {
            metrics.thinking.solution_ended.with_label_values(&[&**model, ended.as_str()]);
        }
        for capability in &known.capabilities {
            metrics.backends.withdrawals.with_label_values(&[&**model, capability.as_str()]);
        }
        metrics.learning.observations.with_label_values(&[&**model]);
        metrics.learning.alarms.with_label_values(&[&**model]);
        metrics.learning.feedback_score.with_label_values(&[&**model]);
        hedge::zero_metrics(metrics, model);
    }
    for ended in SamplingStopReason::ALL {
        metrics.votes.ended.with_label_values(&[ended.as_str()]);
    }
    voting::VERDICTS.iter().for_each(|outcome| drop(metrics.votes.verdicts.with_label_values(&[*outcome])));
    feedback::LOST_AT.iter().for_each(|at| drop(metrics.learning.dropped.with_label_values(&[*at])));
    parts.catalog.routes.values().for_each(|route| zero_route(metrics, route, parts));
}

/// Those of what a route may do.
fn zero_route(metrics: &Metrics, route: &Route, parts: &GatewayParts) {
    let votes = &metrics.votes;
    metrics.learning.regret.with_label_values(&[&*route.name]);
    let all = parts.catalog.models.keys();
    let own: Vec<_> = if route.models.is_empty() { all.collect() } else { route.models.iter().collect() };
    if route.vote.is_some() {
        for model in own {
            selection::OUTCOMES.iter().for_each(|it| drop(votes.samples.with_label_values(&[&**model, it])));
            cascade::OUTCOMES.iter().for_each(|it| drop(votes.cascades.with_label_values(&[&**model, it])));
        }
    }
    if let Some(judge) = &route.judge {
        judge::OUTCOMES.iter().for_each(|it| drop(votes.judgements.with_label_values(&[&**judge, it])));
    }
    if let Some(probe) = &route.probe {
        probe::OUTCOMES.iter().for_each(|it| drop(votes.probes.with_label_values(&[&*probe.model, it])));
    }
}
