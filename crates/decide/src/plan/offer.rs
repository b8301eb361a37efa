//! Offers in full, of the candidates that were taken.

use std::sync::Arc;

use stint_types::catalog::{Contender, EffortLevel, EnforcementClass, Offer, effort_rank};
use stint_types::units::{Money, Tokens};

use super::candidate_pool::{CandidatePool, worth};
use super::eligible_model::{EligibleModel, PricedCandidate};
use super::explore::BanditArm;
use super::reason::BudgetReason;
use super::request::PlanRequest;
use super::terms::usual_at;

/// A candidate as an offer.
pub(super) fn offer(
    request: &PlanRequest,
    pool: &CandidatePool,
    candidate: &PricedCandidate,
    reason: BudgetReason,
) -> Offer {
    let eligible = &pool.models[candidate.model_index];
    let terms = &eligible.terms;
    let second = candidate.escalation.map(|at| {
        let second = &pool.candidates[at];
        offer(request, pool, second, pool.reason(second))
    });
    let answer = &candidate.answer;
    let alone = terms.worst_case(candidate.thinking, answer.opening) * candidate.samples;
    Offer {
        model: terms.model.name.clone(),
        class: terms.class,
        resume: terms.resume(candidate.thinking),
        thinking: candidate.thinking,
        solution: answer.most,
        solution_by: answer.by,
        answer_takes_rest: eligible.bounds.shares_limit(candidate.thinking + answer.most),
        opening: answer.opening,
        continuation: answer.continuation,
        tells_limit: answer.tells_limit,
        overhead: terms.overhead(candidate.thinking),
        rescue: terms.may_be_rescued(),
        effort: effort(request, eligible, candidate.thinking, reason),
        samples: candidate.samples,
        success: candidate.success(),
        cost: Money::from_dollars_up(candidate.dollars),
        worst: second.as_ref().map_or(alone, |second| alone + second.worst),
        escalate: second.map(Arc::new),
        seconds: candidate.seconds,
        seconds_guess: eligible.seconds_guess(candidate),
        value: candidate.value(worth(request)),
    }
}

/// A model's best candidate for the decision log.
pub(super) fn contender(
    request: &PlanRequest,
    pool: &CandidatePool,
    BanditArm { best, propensity }: &BanditArm,
) -> Contender {
    Contender {
        model: pool.models[best.model_index].terms.model.name.clone(),
        thinking: best.thinking,
        samples: best.samples,
        escalates: best.escalation.is_some(),
        success: best.success(),
        cost: Money::from_dollars_up(best.dollars),
        seconds: best.seconds,
        value: best.value(worth(request)),
        propensity: *propensity,
        conditions: Some(pool.models[best.model_index].terms.conditions),
    }
}

/// The word to send. The caller's own, where nothing else says how long its thought is to be; to a model that hides its thoughts,
/// if nothing lowered it, its own word for that, the next lower one or its least; else the highest whose usual thought fits the budget,
/// or the least ([`usual_at`]). None is ever higher than the caller's.
fn effort(
    request: &PlanRequest,
    eligible: &EligibleModel,
    thinking: Tokens,
    reason: BudgetReason,
) -> Option<String> {
    let model = eligible.terms.model;
    let stated = request.budget.reasoning_effort.as_ref().and_then(|depth| depth.word.as_deref());
    if eligible.terms.class != EnforcementClass::Effort {
        let leaves_it_open = request.budget.thinking.is_none()
            && !eligible.terms.has_known_thinking()
            && !matches!(reason, BudgetReason::LeastEffort(_));
        return stated.filter(|_| leaves_it_open && thinking > Tokens::ZERO).map(str::to_owned);
    }
    // As long as it likes is as its provider has it where nothing is said.
    if reason == BudgetReason::Uncapped {
        return None;
    }
    let by_effort = stated.filter(|_| matches!(reason, BudgetReason::Effort(_)));
    if !eligible.terms.takes_efforts() {
        return None;
    }
    if model.efforts.is_empty() {
        return by_effort.map(str::to_owned);
    }
    let has = |word: &str| model.efforts.iter().any(|level| level.word == word);
    let is_word = by_effort.is_some_and(|word| effort_rank(word).is_some() || has(word));
    let fits = |level: &EffortLevel| usual_at(level, model, eligible.terms.demand) <= thinking;
    let fitting = model.efforts.iter().rposition(|level| thinking > Tokens::ZERO && fits(level));
    let most = request.budget.reasoning_effort.as_ref().and_then(|depth| model.effort_place(depth));
    let level = match (most, fitting.unwrap_or_default()) {
        (Some(most), _) if is_word => most,
        (Some(most), fitting) => fitting.min(most),
        (None, fitting) => fitting,
    };
    model.efforts.get(level).map(|level| level.word.clone())
}
