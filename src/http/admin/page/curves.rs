//! Each model's curve: the predicted chance of a right answer and the predicted cost against the thinking budget, on average over
//! the latest requests that it was weighed for, with the budgets that were chosen.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use stint_sessions::history::RequestRecord;
use stint_types::catalog::{Candidate, Catalog, Model, ModelDemand};
use stint_types::units::Tokens;

/// How many models have a curve, and over how many requests each is averaged.
const CURVES_MAX: usize = 8;
const DEMANDS_MAX: usize = 32;
/// How many chosen points of each are listed.
const POINTS_MAX: usize = 60;

/// The budgets of a curve beside 0, and the least of them.
const STEPS: u32 = 22;
const BUDGET_MIN: f64 = 8.0;

/// Requests by one model, the latest first.
#[derive(Default)]
struct Weighed<'r> {
    demands: Vec<&'r ModelDemand>,
    chosen: Vec<&'r Candidate>,
}

/// The curves of the models that were chosen most often, then of those that were weighed.
pub(super) fn curves(catalog: &Catalog, records: &[Arc<RequestRecord>]) -> Vec<Value> {
    let mut models = BTreeMap::<&str, Weighed<'_>>::new();
    for record in records {
        let decision = &record.decision;
        for (place, candidate) in decision.candidates.iter().enumerate() {
            let weighed = models.entry(&candidate.model).or_default();
            if weighed.demands.len() < DEMANDS_MAX {
                weighed.demands.push(&candidate.belief);
            }
            if place == decision.chosen && weighed.chosen.len() < POINTS_MAX {
                weighed.chosen.push(candidate);
            }
        }
    }
    let known = |(name, weighed)| Some((catalog.models.get(name)?, weighed));
    let mut models: Vec<(&Arc<Model>, Weighed<'_>)> = models.into_iter().filter_map(known).collect();
    models.retain(|(model, _)| model.thinking_max > Tokens::ZERO);
    models.sort_by_key(|(model, weighed)| {
        (Reverse(weighed.chosen.len()), Reverse(weighed.demands.len()), model.name.clone())
    });
    models.iter().take(CURVES_MAX).map(|(model, weighed)| curve(model, weighed)).collect()
}

fn curve(model: &Model, weighed: &Weighed<'_>) -> Value {
    let budgets = budgets(model, weighed);
    let average = |of: &dyn Fn(&ModelDemand) -> f64| {
        let demands = weighed.demands.iter().zip(1_u32..);
        let (sum, count) = demands.fold((0.0, 1), |(sum, _), (demand, count)| (sum + of(demand), count));
        sum / f64::from(count)
    };
    let success = budgets.iter().map(|budget| average(&|demand| demand.success(*budget).get()));
    let cost = budgets.iter().map(|budget| average(&|demand| dollars(model, demand, *budget)));
    let point = |candidate: &&Candidate| {
        json!({
            "thinking_tokens": candidate.thinking,
            "success": candidate.success,
            "usd": candidate.cost.as_dollars(),
        })
    };
    json!({
        "model": model.name,
        "requests": weighed.demands.len(),
        "budgets": budgets,
        "success": success.collect::<Vec<_>>(),
        "usd": cost.collect::<Vec<_>>(),
        "chosen": weighed.chosen.iter().map(point).collect::<Vec<_>>(),
    })
}

/// 0, and budgets in even ratios up to what thoughts hardly exceed, or the largest that was chosen.
fn budgets(model: &Model, weighed: &Weighed<'_>) -> Vec<Tokens> {
    let usual = weighed.demands.iter().map(|demand| demand.thinking_p99());
    let chosen = weighed.chosen.iter().map(|candidate| candidate.thinking.as_f64());
    let most = usual.chain(chosen).fold(BUDGET_MIN * 2.0, f64::max).min(model.thinking_max.as_f64());
    let ratio = (most / BUDGET_MIN).max(1.0);
    let step = |step: u32| Tokens::round(BUDGET_MIN * ratio.powf(f64::from(step) / f64::from(STEPS)));
    let mut budgets: Vec<Tokens> = std::iter::once(Tokens::ZERO).chain((0..=STEPS).map(step)).collect();
    budgets.dedup();
    budgets
}

/// What prompt, thought and answer are expected to cost at list prices under a thinking budget. What a cut reads and writes again
/// is left out.
fn dollars(model: &Model, demand: &ModelDemand, budget: Tokens) -> f64 {
    let Some(tariff) = model.planning_tariff() else { return 0.0 };
    let prompt = demand.prompt_expected();
    let list = tariff.list(prompt);
    let held = demand.thinking.truncated_at(budget.as_f64(), demand.thinking.mean());
    let written = held.within + demand.solution.as_f64();
    tariff.call.as_dollars()
        + list.input.dollars_per_token() * prompt.as_f64()
        + list.output.dollars_per_token() * written
}
