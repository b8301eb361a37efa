//! Passes the end of a request on to everything that learns or counts: Prometheus, the beliefs about models, the price of
//! money, the request records.

use std::sync::Arc;

use crate::gateway::request::{ActualUsage, DecisionContext, RequestContext, canary_policy};
use crate::gateway::run::{AttemptResult, RequestOutcome};
use crate::gateway::{RequestStage, feedback};
use stint_decide::learn::CanaryEvidence;
use stint_prompt::prompt_text;
use stint_sessions::history::RequestRecord;
use stint_types::catalog::{Offer, PromptText};
use stint_types::chat::Request;
use stint_types::units::{Chance, Money};

use super::metrics;
use super::model_checks::verify_native_budget;
use super::record::request_record;
use super::settle::Settlement;

/// Makes the outcome known, and gives back its record.
pub(super) fn learn(
    context: &RequestContext,
    decision: &DecisionContext,
    outcome: &RequestOutcome<'_>,
    settlement: &Settlement,
) -> Arc<RequestRecord> {
    metrics::settled(context, outcome);
    verify_native_budget(context, outcome.offer, &outcome.spent);
    record_prompt(context, outcome);
    let is_answered = outcome.is_answered();
    record_pace(context, decision, settlement.cost);
    record_recipe(context, decision, outcome);
    if let Some(success) = unlimited_success(context, outcome.offer).filter(|_| is_answered) {
        context.state.pacing.record_success(&context.policy, success);
    }
    if let Some(observed) = decision.observed.as_ref().filter(|_| is_answered) {
        let used = ActualUsage { model: &outcome.offer.model, spent: &outcome.spent, cost: settlement.cost };
        observed.record_outcome(&context.parts().metrics, context.id, &context.route, &used);
    }
    let passed = settlement.passed.tools.all.0;
    context.reached(RequestStage::ToolCalls(passed));
    let record = request_record(context, decision, outcome, settlement);
    context.observer.iter().for_each(|observer| observer.settled(&record));
    let learning = &context.parts().learning;
    learning.record_finished(&record, decision.question);
    learning.record_signals(&record, feedback::of_ending(&record, &context.request));
    record
}

/// How likely its answer was to be right whatever limit was set on it. Who wants one token says nothing of the models.
fn unlimited_success(context: &RequestContext, offer: &Offer) -> Option<Chance> {
    let whole =
        context.demand.models.get(&offer.model).map_or(1.0, |demand| context.answer_fits(demand, offer));
    (whole >= 0.5).then(|| Chance::new(offer.success.get() / whole))
}

/// Lets the expected lengths of prompts follow what the upstream reported of this one.
fn record_prompt(context: &RequestContext, outcome: &RequestOutcome<'_>) {
    let reported = outcome.progress.iter().filter_map(|choice| choice.phases.prompt_reported()).max();
    if let Some(reported) = reported
        && let Some(text) = prompt_to_learn_of(&context.request)
    {
        context.state.prompt_ratios.record(&outcome.offer.model, &text, reported);
    }
}

/// The text whose tokens a report counts. How many tokens a file or an image has is not known, so that a report of a prompt with
/// one says nothing of the bytes of its text.
fn prompt_to_learn_of(request: &Request) -> Option<PromptText> {
    (!request.has_media()).then(|| prompt_text::of_request(request))
}

/// Counts the request for its route's recipe. Who hangs up says nothing of a model.
fn record_recipe(context: &RequestContext, decision: &DecisionContext, outcome: &RequestOutcome<'_>) {
    let (route, metrics, recipes) = (&context.policy, &context.parts().metrics, &context.state.recipes);
    if route.recipe.is_none() {
        return;
    }
    recipes.record_request(&route.name, metrics);
    let Some(canary) = &route.canary else { return };
    let of_canary = *decision.policy == *canary_policy(&route.name);
    let meant = if of_canary { &canary.model } else { &context.plan.best.model };
    // A new model that failed so often that it is left alone for a while fails this conversation too.
    let is_left_alone = *meant != context.plan.best.model;
    if is_left_alone && context.market.conditions(meant).healthy {
        return;
    }
    let failed = match outcome.result {
        AttemptResult::Finished(_) | AttemptResult::Sampled(_) => {
            outcome.offer.model != *meant || !outcome.is_answered()
        }
        AttemptResult::Failed(_) => true,
        AttemptResult::HungUp => return,
    };
    recipes.record_canary(&route.name, of_canary, CanaryEvidence::Ended { failed }, metrics);
}

/// Lets the prices, and what may be tried, follow what was spent.
pub(super) fn record_pace(context: &RequestContext, decision: &DecisionContext, cost: Money) {
    let pacing = &context.state.pacing;
    pacing.record_settlement(&context.account, &decision.paced, decision.expected, cost);
    context.state.trials.record_settlement(decision.trial, decision.expected, cost);
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stint_types::chat::{ContentPart, Message, Role};

    use super::*;

    #[test]
    fn a_prompt_with_a_file_teaches_nothing_of_the_tokens_of_texts() {
        let mut request = Request::new("m", vec![Message::text(Role::User, "Summarise it.")]);
        assert!(prompt_to_learn_of(&request).is_some_and(|text| text.length() > 12.0));
        let file = json!({ "type": "file", "file": { "filename": "a.pdf" } });
        request.messages[0].content.push(ContentPart::Other(file));
        assert_eq!(prompt_to_learn_of(&request), None);
    }
}
