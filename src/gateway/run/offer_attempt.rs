//! One attempt at an offer: what its choices have taken so far, and how their reservation grows.

use crate::execute::{ChoiceProgress, ChoiceTerms, ToolCallFilter, WholeAnswer};
use crate::gateway::feedback;
use crate::gateway::request::{RequestContext, scope};
use stint_sessions::agent::{AnswerCallLimits, ToolCallTrimmer};
use stint_types::catalog::{EnforcementClass, LimitedBy, Model, Offer};
use stint_types::chat::CompletionKind;
use stint_types::units::{Amount, Tokens};

use super::choice_terms::terms;
use super::growth::ReservationGrowth;

/// One attempt at an offer.
pub(super) struct OfferAttempt {
    /// One for every sample of every choice.
    pub(super) progress: Vec<ChoiceProgress>,
    /// How the answers grow beyond what is set aside at first, where they may.
    pub(super) growth: Option<ReservationGrowth>,
}

impl OfferAttempt {
    /// One that has not begun.
    pub(super) fn new(context: &RequestContext, offer: &Offer) -> OfferAttempt {
        let growth = ReservationGrowth::of(offer, context.request.choices);
        let filter = match &context.step {
            Some(step) => Some(step.passing(context.request.commentary)),
            None => undeclared_filter(context),
        };
        let terms = ChoiceTerms {
            whole: if growth.is_none() { whole_answer(context, offer) } else { WholeAnswer::Never },
            limits_thoughts: limits_thoughts(context, offer),
            ..terms(offer, context.model(offer), context.prompt(offer), &context.request)
        };
        let choice = |_| {
            let progress = feedback::with_transcript(&context.request, ChoiceProgress::new(terms.clone()))
                .with_turns(&context.state.relay_turns, &context.account);
            let progress = match &growth {
                Some(growth) => growth.join(progress, offer),
                None => progress,
            };
            match &filter {
                Some(filter) => progress.with_tool_filter(filter.clone()),
                None => progress,
            }
        };
        let progress = (0..context.request.choices * offer.samples.max(1)).map(choice).collect();
        OfferAttempt { progress, growth }
    }
}

/// What holds an answer whose request declares no tools, and is no step of a run, to what its model may call all the same; nothing where
/// that is not limited.
fn undeclared_filter(context: &RequestContext) -> Option<ToolCallFilter> {
    let (parts, request) = (context.parts(), &context.request);
    let (tools, ledger) = (&parts.episodes.inner.tools, &parts.ledger);
    let limits = ledger.statement(&context.account, &scope::of(&request.extra), ledger.now());
    let are_calls_limited = limits.iter().any(|limit| matches!(limit.max, Amount::ToolCalls(_)));
    let limits = AnswerCallLimits::undeclared(request, tools, are_calls_limited);
    let trimmer = || ToolCallTrimmer::within(limits.clone(), tools.clone());
    (!limits.is_unlimited()).then(|| ToolCallFilter::new(trimmer(), None, request.commentary))
}

/// Whether an account or an episode limits thinking tokens. Where one limit holds thought and answer, all of it is set aside for
/// both, and that does not matter.
pub(super) fn limits_thoughts(context: &RequestContext, offer: &Offer) -> bool {
    let is_apart = offer.class.is_resumed() || offer.class == EnforcementClass::Native;
    let of_step = || context.step.as_ref().is_some_and(|step| step.limits.thinking.is_some());
    is_apart && (of_step() || context.allowance().limits_thinking(&offer.model))
}

/// Whether nothing would be done with the answer while it is written: nobody reads it, no text of the caller's ends it, no other
/// attempt waits for its first token, no deadline would end it early, and the upstream keeps its limit: one that is sent, or its own.
fn whole_answer(context: &RequestContext, offer: &Offer) -> WholeAnswer {
    let request = &context.request;
    let is_awaited =
        !request.streams && request.kind == CompletionKind::Chat && request.sampling.stop.is_empty();
    let is_hedged = context.fleet(offer).is_ok_and(|fleet| fleet.hedge_after().is_some());
    let is_single = request.budget.deadline.is_none() && offer.samples <= 1;
    let is_limited = offer.tells_limit || offer.solution_by == LimitedBy::Model;
    // Twenty likely tokens beside each of an answer's are more than one event may have.
    let is_plain = request.logprobs.is_none();
    if !(is_awaited && !is_hedged && is_single && is_limited && is_plain) {
        return WholeAnswer::Never;
    }
    match offer.thinking + offer.solution + offer.overhead {
        most if most <= Model::WHOLE_MAX => WholeAnswer::Always,
        _ if hardly_exceeded(context, offer) <= Model::WHOLE_MAX => WholeAnswer::WhileMeasured,
        _ => WholeAnswer::Never,
    }
}

/// What thought and answer hardly exceed together.
fn hardly_exceeded(context: &RequestContext, offer: &Offer) -> Tokens {
    let quantile = context.parts().settings.opening_quantile;
    let likely = context.demand.models.get(&offer.model).map(|demand| demand.solution_within(quantile));
    offer.thinking + offer.solution.min(likely.unwrap_or(Tokens::MAX)) + offer.overhead
}
