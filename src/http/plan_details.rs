//! What `POST /v1/plan` shows on request: `?explain=true`, what a decision rests on; `?sweep=worth`, what would be chosen at
//! other worths.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::gateway::{LevelSource, ModelLevels, QuoteDetails, QuoteEvidence};
use stint_decide::plan::WorthRange;
use stint_types::catalog::{AbilityLevel, Demand, Feature, ModelDemand};
use stint_types::units::{Chance, Money};

use super::error::ApiError;

/// The parameters, and what each may be.
const PARAMETERS: [(&str, &[&str]); 2] = [("explain", &["true", "false"]), ("sweep", &["worth"])];

/// Reads what is wanted beside the offers.
pub(super) fn read(query: &str) -> Result<QuoteDetails, ApiError> {
    let mut details = QuoteDetails::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let Some((_, words)) = PARAMETERS.iter().find(|(known, _)| *known == name) else {
            let known = PARAMETERS.map(|(known, _)| known).join(", ");
            return Err(ApiError::invalid(Some(&name), format!("is not known here; there are {known}")));
        };
        if !words.contains(&&*value) {
            return Err(ApiError::invalid(Some(&name), format!("is none of {}", words.join(", "))));
        }
        match &*name {
            "sweep" => details.sweeps = true,
            _ => details.explains = value == "true",
        }
    }
    Ok(details)
}

/// What was seen of the request, and what is known and predicted of each model.
pub(super) fn explanation(demand: &Demand, evidence: &QuoteEvidence) -> Value {
    let features: BTreeMap<Feature, f64> = evidence.features.into();
    let models = demand.models.iter().map(|(name, now)| {
        let (prior, levels) = (evidence.prior.models.get(name), evidence.levels.get(name));
        (name.to_string(), model(now, prior, levels))
    });
    json!({
        "features": features,
        "traits": demand.request.traits,
        "known_words": demand.request.words.len(),
        "models": models.collect::<Map<_, _>>(),
    })
}

fn model(now: &ModelDemand, prior: Option<&ModelDemand>, levels: Option<&ModelLevels>) -> Value {
    let share = |share| now.solution_within(Chance::new(share)).0;
    let mut page = json!({
        "prompt_tokens": { "expected": now.prompt_expected().0, "most": now.prompt.0 },
        "thinking_tokens": quantiles(now),
        "solution_tokens": { "expected": now.solution.0, "reserved_p90": share(0.9), "reserved_p99": share(0.99) },
        "measured": { "thinking": now.measured.thinking, "solution": now.measured.solution },
        "success": { "without_thought": now.blind, "after_thought": now.done, "spread": now.spread },
    });
    if let Some(prior) = prior {
        page["before_learning"] = json!({
            "thinking_tokens": quantiles(prior),
            "success": { "without_thought": prior.blind, "after_thought": prior.done },
        });
    }
    if let Some(known) = levels {
        page["level"] = level(known);
    }
    page
}

fn quantiles(of: &ModelDemand) -> Value {
    let median = of.thinking.median().round();
    json!({ "p50": median, "p90": of.thinking_p90().round(), "p99": of.thinking_p99().round() })
}

/// The levels as shares of MMLU-Pro, and from where they are known.
fn level(known: &ModelLevels) -> Value {
    let (source, guessed_from) = match &known.source {
        LevelSource::Fitted => ("fitted", None),
        LevelSource::Catalog => ("catalog", None),
        LevelSource::Guessed(guess) => ("guessed", Some(guess.to_string())),
    };
    let share = |level: AbilityLevel| json!({ "share": logistic(level.logit), "spread": level.spread });
    let mut page = json!({ "source": source, "observations": known.observations });
    if let Some(from) = guessed_from {
        page["guessed"] = from.into();
    }
    for (name, level) in [("after_thought", known.thinking), ("without_thought", known.plain)] {
        if let Some(level) = level {
            page[name] = share(level);
        }
    }
    page
}

fn logistic(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
}

/// What would be chosen from which worth to which, and what a right answer is worth now.
pub(super) fn sweep(ranges: &[WorthRange], worth: Money) -> Value {
    json!({ "worth_usd": worth, "ranges": ranges.iter().map(range).collect::<Vec<_>>() })
}

fn range(range: &WorthRange) -> Value {
    let mut page = json!({
        "worth_usd": [range.worth.start(), range.worth.end()],
        "model": &*range.model,
        "thinking_tokens": [range.thinking.start().0, range.thinking.end().0],
        "samples": range.samples,
        "success": [range.success.start(), range.success.end()],
        "cost_usd": [range.cost.start(), range.cost.end()],
    });
    if let Some(word) = &range.effort {
        page["reasoning_effort"] = word.as_str().into();
    }
    if let Some(second) = &range.escalates_to {
        page["escalates_to"] = (&**second).into();
    }
    page
}
