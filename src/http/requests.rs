//! `GET /v1/requests/{id}`: the record of one request, shown to its own key.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Value, json};

use stint_sessions::history::RequestRecord;
use stint_types::catalog::{Candidate, ChoiceOutcome, Decision, DecisionOutcome, Verdict};

use super::api_state::ApiState;
use super::error::ApiError;
use super::json_response::json_response;
use super::path_params::PathParams;
use super::rounding::rounded;
use super::{auth, feedback};

/// What was planned, what came of it, what it cost, and the verdicts on it.
pub(super) async fn request_record(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
    PathParams(id): PathParams<String>,
) -> Result<Response, ApiError> {
    let tenant = auth::tenant(&service, &headers)?;
    let found = service.gateway.learning().request_record(&tenant, feedback::parse_request_id(&id)?).await;
    let record = found
        .map_err(|error| ApiError::history_unavailable(&error))?
        .ok_or_else(ApiError::unknown_request)?;
    Ok(json_response(&rounded(page(&record))))
}

/// What the page shows of a request.
pub(super) fn page(record: &RequestRecord) -> Value {
    let RequestRecord { account, decision, outcome, verdicts, .. } = record;
    json!({
        "object": "request",
        "id": decision.id,
        "account": account,
        "created_at": decision.at,
        "route": decision.route,
        "episode": decision.episode,
        "demand": { "class": decision.class, "difficulty": decision.difficulty },
        "plan": plan(decision),
        "outcome": outcome_page(outcome),
        "feedback": verdicts.iter().map(verdict_page).collect::<Vec<_>>(),
    })
}

fn plan(decision: &Decision) -> Value {
    json!({
        "offers": decision.candidates.iter().map(offer).collect::<Vec<_>>(),
        "chosen": decision.chosen,
        "explored": decision.explored,
        "policy": decision.policy,
        "why": decision.why,
    })
}

fn offer(candidate: &Candidate) -> Value {
    json!({
        "model": candidate.model,
        "thinking_tokens": candidate.thinking,
        "solution_tokens": candidate.solution,
        "samples": candidate.samples,
        "success": candidate.success,
        "cost_usd": candidate.cost,
        "worst_case_usd": candidate.worst,
        "seconds": candidate.seconds,
        "propensity": candidate.propensity,
    })
}

fn outcome_page(outcome: &DecisionOutcome) -> Value {
    json!({
        "ended": outcome.ended,
        "error": outcome.error,
        "settled_at": outcome.at,
        "model": outcome.model,
        "enforced": outcome.enforced,
        "choices": outcome.choices.iter().map(|choice| phases(outcome, choice)).collect::<Vec<_>>(),
        "attempts_given_up": outcome.attempts,
        "fell_back": outcome.fell_back,
        "cost_usd": (!outcome.unbooked).then_some(outcome.cost),
        "reserved_usd": outcome.reserved,
        "seconds": outcome.seconds,
        "first_token_seconds": outcome.first_token,
        "first_solution_token_seconds": outcome.first_answer,
    })
}

fn phases(outcome: &DecisionOutcome, choice: &ChoiceOutcome) -> Value {
    json!({
        "prompt_tokens": choice.prompt,
        "thinking":
            { "budget": outcome.thinking, "used": choice.thinking, "ended": choice.thinking_ended },
        "solution":
            { "budget": outcome.solution, "used": choice.solution, "ended": choice.solution_ended.as_str() },
        "overhead_tokens": choice.overhead,
        "other_tokens": choice.other,
        "rescued": choice.rescued,
        "estimated": choice.estimated,
    })
}

fn verdict_page(verdict: &Verdict) -> Value {
    json!({
        "source": verdict.source,
        "at": verdict.at,
        "success": verdict.success,
        "weight": verdict.weight,
    })
}
