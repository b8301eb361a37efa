//! The part *thinking*: budgets given and used, how thoughts and answers ended, and each model's curve.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::gateway::Gateway;
use stint_sessions::history::RequestRecord;
use stint_types::metrics::{Metrics, ThinkingMetrics};

use super::curves;
use super::series::{self, ByLabel, Distribution, counts, whole};
use super::state::PageState;

/// How many of the latest requests the pictures of single thoughts and of curves are of.
const RECORDS_MAX: usize = 400;

/// All of it, with so many models at most.
pub(super) fn part(page: &PageState, gateway: &Gateway, most: usize) -> Value {
    let series = &page.metrics.thinking;
    let models = models(&page.metrics);
    let overshoot = Distribution::total(models.values().map(|model| &model.overshoot));
    let planned = Distribution::total(models.values().map(|model| &model.planned));
    let used = Distribution::total(models.values().map(|model| &model.used));
    let records = gateway.learning().latest_records(RECORDS_MAX);
    json!({
        "bounds": series::bounds(&series.planned),
        "planned": distribution(&planned),
        "used": distribution(&used),
        "thoughts": counts(&series::by_label(&series.ended, "ended")),
        "answers": counts(&series::by_label(&series.solution_ended, "ended")),
        "overshoot": {
            "thoughts": overshoot.count,
            "over": overshoot.count - overshoot.buckets.first().copied().unwrap_or_default(),
            "tokens": whole(overshoot.sum),
        },
        "models": shown(&models, most),
        "models_count": models.len(),
        "latest": records.iter().filter_map(single_thought).collect::<Vec<_>>(),
        "curves": curves::curves(gateway.catalog(), &records),
    })
}

fn distribution(found: &Distribution) -> Value {
    json!({ "count": found.count, "tokens": whole(found.sum), "buckets": found.buckets })
}

/// What is counted of a model's thoughts.
#[derive(Default)]
struct ModelThoughts {
    planned: Distribution,
    used: Distribution,
    overshoot: Distribution,
    ended: ByLabel,
    answers: ByLabel,
}

fn models(metrics: &Metrics) -> BTreeMap<String, ModelThoughts> {
    let ThinkingMetrics { planned, used, ended, overshoot, solution_ended, .. } = &metrics.thinking;
    let mut models = BTreeMap::<String, ModelThoughts>::new();
    let both = ["model", "ended"];
    for (model, found) in series::distributions(planned, "model") {
        models.entry(model).or_default().planned = found;
    }
    for (model, found) in series::distributions(used, "model") {
        models.entry(model).or_default().used = found;
    }
    for (model, found) in series::distributions(overshoot, "model") {
        models.entry(model).or_default().overshoot = found;
    }
    for (model, found) in series::by_labels(ended, both) {
        models.entry(model).or_default().ended = found;
    }
    for (model, found) in series::by_labels(solution_ended, both) {
        models.entry(model).or_default().answers = found;
    }
    models
}

/// The models that thought most.
fn shown(models: &BTreeMap<String, ModelThoughts>, most: usize) -> Vec<Value> {
    let mut by_use: Vec<_> = models.iter().filter(|(_, model)| model.used.count > 0).collect();
    by_use.sort_by_key(|(name, model)| (Reverse(whole(model.used.sum)), *name));
    let page = |(name, model): &(&String, &ModelThoughts)| {
        json!({
            "model": name,
            "thoughts": model.used.count,
            "planned_tokens": whole(model.planned.sum),
            "used_tokens": whole(model.used.sum),
            "overshoot_tokens": whole(model.overshoot.sum),
            "ended": counts(&model.ended),
            "answers": counts(&model.answers),
        })
    };
    by_use.iter().take(most).map(page).collect()
}

/// What one request was given and used, where it may think.
fn single_thought(record: &Arc<RequestRecord>) -> Option<Value> {
    let outcome = &record.outcome;
    let first = outcome.choices.first()?;
    json!({
        "model": outcome.model,
        "planned": outcome.thinking,
        "used": first.thinking,
        "ended": first.thinking_ended,
    })
    .into()
}
