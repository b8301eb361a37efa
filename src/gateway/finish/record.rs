//! Builds the record of a request: what was decided, and what came of it.

use std::sync::Arc;

use tokio::time::Instant;

use crate::gateway::request::{DecisionContext, RequestContext, SHUTTING_DOWN};
use crate::gateway::run::{AttemptResult, RequestOutcome};
use stint_decide::plan;
use stint_sessions::history::RequestRecord;
use stint_types::catalog::{
    Candidate, ChoiceOutcome, Decision, DecisionOutcome, EnforcementClass, Offer, Verdict,
};
use stint_types::units::Timestamp;

use super::settle::Settlement;

/// The record of a settled request.
pub(super) fn request_record(
    context: &RequestContext,
    decided: &DecisionContext,
    outcome: &RequestOutcome<'_>,
    settlement: &Settlement,
) -> Arc<RequestRecord> {
    let (id, account, key) = (context.id, context.account.clone(), Some(context.key));
    let (decision, ended) = (decision(context, decided), decision_outcome(context, outcome, settlement));
    let at = ended.at;
    let mut record = RequestRecord { account, key, decision, outcome: ended, verdicts: Vec::new() };
    for (source, success, weight) in outcome.signals.iter().copied() {
        record.set_verdict(Verdict { id, source, at, success, weight });
    }
    Arc::new(record)
}

fn decision(context: &RequestContext, decided: &DecisionContext) -> Decision {
    let plan = &context.plan;
    let predicted = |model: &str| Some((decided.prior.models.get(model)?, context.demand.models.get(model)?));
    let candidates = Candidate::of_plan(plan, predicted);
    let chosen = candidates.iter().position(|candidate| candidate.model == plan.best.model);
    let mut decision = Decision {
        id: context.id,
        at: decided.at,
        route: context.route.clone(),
        policy: [&*decided.policy, "/", plan::POLICY].concat().into(),
        class: decided.prior.class,
        difficulty: decided.prior.difficulty,
        confidence: decided.prior.confidence,
        context: decided.prior.request.clone(),
        stakes: decided.stakes,
        choices: context.request.choices,
        candidates,
        chosen: chosen.unwrap_or_default(),
        explored: false,
        why: plan.why.clone(),
        episode: context.step.as_ref().map(|step| step.id().clone()),
    };
    decision.explored = plan.propensity < 1.0 && decision.regret() > 0.0;
    decision
}

/// What failed, in one word. Whose answer the end of this process cut off did not leave by themselves.
fn error(context: &RequestContext, outcome: &RequestOutcome<'_>) -> Option<&'static str> {
    let is_cut_off =
        matches!(outcome.result, AttemptResult::HungUp) && context.parts().tasks.is_force_stopping();
    outcome.result.error().or(is_cut_off.then_some(SHUTTING_DOWN))
}

/// How long thoughts are at the word that an offer sends, of a model that nothing but words holds.
fn effort_length(context: &RequestContext, offer: &Offer) -> Option<f64> {
    let word = offer.effort.as_deref().filter(|_| offer.class == EnforcementClass::Effort)?;
    context.parts().catalog.models.get(&offer.model)?.effort_length(word)
}

fn decision_outcome(
    context: &RequestContext,
    outcome: &RequestOutcome<'_>,
    settlement: &Settlement,
) -> DecisionOutcome {
    let offer = outcome.offer;
    let since = |at: Instant| at.duration_since(context.arrived).as_secs_f64();
    let choices = outcome.progress.iter().zip(&outcome.spent);
    let choices = choices.map(|(choice, spent)| ChoiceOutcome::new(spent, choice.phases.was_rescued()));
    DecisionOutcome {
        at: Timestamp::now(),
        ended: outcome.ended().into(),
        error: error(context, outcome).map(Into::into),
        model: offer.model.clone(),
        enforced: offer.class,
        thinking: offer.thinking,
        solution: offer.solution,
        effort: effort_length(context, offer),
        choices: choices.collect(),
        cost: settlement.cost,
        unbooked: settlement.booked_cost().is_none(),
        reserved: settlement.reserved,
        attempts: settlement.attempts,
        given_up: settlement.given_up,
        fell_back: offer.model != context.plan.best.model,
        seconds: context.arrived.elapsed().as_secs_f64(),
        first_token: outcome.progress.iter().filter_map(|choice| choice.first).min().map(since),
        first_answer: outcome.progress.iter().filter_map(|choice| choice.first_answer).min().map(since),
    }
}
