//! The part *decisions*: the last ones, with why and with the offers that lost. Of the requests themselves nothing is remembered
//! but numbers, so that no word of a prompt or an answer can be in it.

use std::cmp::Reverse;

use serde_json::{Value, json};

use crate::gateway::Gateway;
use stint_sessions::history::RequestRecord;
use stint_types::catalog::{Candidate, Decision, DecisionOutcome, Verdict};

/// How many offers that lost are listed with each decision: the best ones.
const OFFERS_MAX: usize = 5;

/// The last decisions, the latest first.
pub(super) fn part(gateway: &Gateway, most: usize) -> Value {
    let learning = gateway.learning();
    let records = learning.latest_records(most);
    json!({
        "remembered": learning.is_on(),
        "decisions": records.iter().map(|record| page(record)).collect::<Vec<_>>(),
    })
}

fn page(RequestRecord { account, decision, outcome, verdicts, .. }: &RequestRecord) -> Value {
    json!({
        "id": decision.id,
        "at": decision.at,
        "account": account.as_str(),
        "route": decision.route,
        "episode": decision.episode,
        "class": decision.class,
        "difficulty": decision.difficulty,
        "why": decision.why,
        "explored": decision.explored,
        "shadow_price": decision.stakes.shadow_price,
        "chosen": decision.choice().map(offer),
        "lost": lost(decision).into_iter().map(offer).collect::<Vec<_>>(),
        "lost_count": decision.candidates.len().saturating_sub(1),
        "outcome": came_of_it(outcome),
        "verdicts": verdicts.iter().map(verdict).collect::<Vec<_>>(),
    })
}

/// The best of the offers that were not chosen.
fn lost(decision: &Decision) -> Vec<&Candidate> {
    let others = decision.candidates.iter().enumerate().filter(|(place, _)| *place != decision.chosen);
    let mut others: Vec<&Candidate> = others.map(|(_, candidate)| candidate).collect();
    others.sort_by(|a, b| b.value.total_cmp(&a.value));
    others.sort_by_key(|candidate| Reverse(candidate.propensity > 0.0));
    others.truncate(OFFERS_MAX);
    others
}

fn offer(candidate: &Candidate) -> Value {
    json!({
        "model": candidate.model,
        "thinking_tokens": candidate.thinking,
        "samples": candidate.samples,
        "escalates": candidate.escalates,
        "success": candidate.success,
        "usd": candidate.cost.as_dollars(),
        "seconds": candidate.seconds,
        "value_usd": candidate.value,
        "propensity": candidate.propensity,
    })
}

fn came_of_it(outcome: &DecisionOutcome) -> Value {
    let first = outcome.choices.first();
    json!({
        "ended": outcome.ended,
        "error": outcome.error,
        "model": outcome.model,
        "fell_back": outcome.fell_back,
        "attempts_given_up": outcome.attempts,
        "enforced": outcome.enforced,
        "thinking": {
            "budget": outcome.thinking,
            "used": first.map(|choice| choice.thinking),
            "ended": first.map(|choice| choice.thinking_ended),
        },
        "solution": {
            "budget": outcome.solution,
            "used": first.map(|choice| choice.solution),
            "ended": first.map(|choice| choice.solution_ended.as_str()),
        },
        "usd": (!outcome.unbooked).then(|| outcome.cost.as_dollars()),
        "reserved_usd": outcome.reserved.as_dollars(),
        "seconds": outcome.seconds,
        "first_token_seconds": outcome.first_token,
    })
}

fn verdict(verdict: &Verdict) -> Value {
    json!({ "source": verdict.source, "success": verdict.success })
}
