//! The part *now*: what is served, by whom, and how they stand. Counters are given as they are: the page takes their differences.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::gateway::Gateway;
use crate::http::pages;
use stint_types::metrics::Metrics;

use super::history::Reading;
use super::series::{self, ByLabel, counts, whole};
use super::state::PageState;

/// How many models are listed by name.
const MODELS_MAX: usize = 12;

/// All of it, with so many targets at most.
pub(super) fn part(page: &PageState, gateway: &Gateway, most: usize) -> Value {
    let metrics = &*page.metrics;
    gateway.refresh_fleet_metrics();
    let targets = targets(metrics);
    let (reserved, open) = gateway.reserved();
    let in_flight: u64 = targets.iter().map(|target| target.in_flight).sum();
    let shown: Vec<Value> = targets.iter().take(most).map(|target| target.page(gateway)).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "not_ready": pages::why_not_ready(&gateway.readiness()),
        "configuration_refused": metrics.config.state.get() == 0,
        "counters": Reading::now(metrics).page(),
        "outcomes": counts(&series::by_label(&metrics.requests.total, "outcome")),
        "refusals": counts(&series::by_label(&metrics.requests.refusals, "limit")),
        "in_flight": in_flight,
        "queued": whole(series::sum(&metrics.backends.queue_depth)),
        "open_reservations": open,
        "reserved_usd": reserved.as_dollars(),
        "connections": metrics.requests.connections.get(),
        "models": models(metrics),
        "targets": shown,
        "targets_count": targets.len(),
    })
}

/// The models that answered most.
fn models(metrics: &Metrics) -> Vec<Value> {
    let requests = series::by_label(&metrics.requests.total, "model");
    let thinking = series::distributions(&metrics.thinking.used, "model");
    let solution = series::distributions(&metrics.thinking.solution_used, "model");
    let dollars = series::by_label(&metrics.money.spent, "model");
    let mut models: Vec<(&String, u64)> = requests
        .iter()
        .filter(|(name, _)| *name != "none")
        .map(|(name, count)| (name, whole(*count)))
        .collect();
    models.sort_by_key(|(name, count)| (Reverse(*count), *name));
    let page = |(name, count): &(&String, u64)| {
        let tokens = |found: &BTreeMap<String, series::Distribution>| {
            found.get(*name).map_or(0, |tokens| whole(tokens.sum))
        };
        json!({
            "model": name,
            "requests": count,
            "thinking_tokens": tokens(&thinking),
            "solution_tokens": tokens(&solution),
            "usd": dollars.get(*name).copied().unwrap_or_default(),
        })
    };
    models.iter().take(MODELS_MAX).map(page).collect()
}

/// A target and what is counted of it.
struct TargetRow {
    model: String,
    target: String,
    is_available: bool,
    in_flight: u64,
    limit: Option<u64>,
    queue: u64,
    trips: ByLabel,
    failures: ByLabel,
    retries: u64,
}

/// Every target: those that may not be asked come first, then the busiest.
fn targets(metrics: &Metrics) -> Vec<TargetRow> {
    let series = &metrics.backends;
    let both = ["model", "target"];
    let states = series::by_labels(&series.state, both);
    let (in_flight, limits) =
        (series::by_labels(&series.in_flight, both), series::by_labels(&series.concurrency_limit, both));
    let (queues, retries) =
        (series::by_label(&series.queue_depth, "model"), series::by_labels(&series.retries, both));
    let mut trips = series::by_three(&series.trips, ["model", "target", "cause"]);
    let mut failures = series::by_three(&series.attempt_failures, ["model", "target", "fault"]);
    let of = |found: &BTreeMap<String, ByLabel>, model: &str, target: &str| {
        found.get(model).and_then(|targets| targets.get(target)).copied().map(whole)
    };
    let mut rows = Vec::new();
    for (model, of_model) in &states {
        for (target, state) in of_model {
            let key = (model.clone(), target.clone());
            rows.push(TargetRow {
                is_available: *state > 0.0,
                in_flight: of(&in_flight, model, target).unwrap_or_default(),
                limit: of(&limits, model, target),
                queue: queues.get(model).copied().map_or(0, whole),
                trips: trips.remove(&key).unwrap_or_default(),
                failures: failures.remove(&key).unwrap_or_default(),
                retries: of(&retries, model, target).unwrap_or_default(),
                model: key.0,
                target: key.1,
            });
        }
    }
    rows.sort_by_key(|row| (row.is_available, Reverse(row.in_flight + row.queue)));
    rows
}

impl TargetRow {
    fn page(&self, gateway: &Gateway) -> Value {
        let some = |words: &ByLabel| {
            let found = counts(words).into_iter().filter(|(_, count)| *count > 0);
            found.map(|(word, count)| (word.to_owned(), count)).collect::<BTreeMap<_, _>>()
        };
        json!({
            "model": self.model,
            "target": self.target,
            "available": self.is_available,
            "why": gateway.outage(&self.model).map(|outage| outage.reason.to_string()),
            "loaded": gateway.is_loaded(&self.model),
            "in_flight": self.in_flight,
            "limit": self.limit,
            "queue": self.queue,
            "trips": some(&self.trips),
            "failures": some(&self.failures),
            "retries": self.retries,
        })
    }
}
