//! One attempt at an offer: what its choices have taken so far, and how their reservation grows.

use crate::execute::{ChoiceProgress, ChoiceTerms};
use crate::gateway::feedback;
use crate::gateway::request::RequestContext;
use stint_decide::plan::WHOLE_MAX;
use stint_types::catalog::Offer;
use stint_types::chat::CompletionKind;

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
        let terms = ChoiceTerms {
            whole: growth.is_none() && may_come_whole(context, offer),
            ..terms(offer, context.model(offer), context.prompt(offer), &context.request)
        };
        let choice = |_| {
            let progress = feedback::with_transcript(&context.request, ChoiceProgress::new(terms.clone()))
                .with_turns(&context.state.relay_turns, &context.account);
            let progress = match &growth {
                Some(growth) => growth.join(progress, offer),
                None => progress,
            };
            match &context.step {
                Some(step) => progress.with_tool_filter(step.passing()),
                None => progress,
            }
        };
        let progress = (0..context.request.choices * offer.samples.max(1)).map(choice).collect();
        OfferAttempt { progress, growth }
    }
}

/// Whether nothing would be done with the answer while it is written: nobody reads it, no text of the caller's ends it, no other
/// attempt waits for its first token, and no deadline would end it early.
fn may_come_whole(context: &RequestContext, offer: &Offer) -> bool {
    let request = &context.request;
    let is_awaited =
        !request.streams && request.kind == CompletionKind::Chat && request.sampling.stop.is_empty();
    let is_hedged = context.fleet(offer).is_ok_and(|fleet| fleet.hedge_after().is_some());
    let is_single = request.budget.deadline.is_none() && offer.samples <= 1;
    // Twenty likely tokens beside each of an answer's are more than one event may have.
    let is_small =
        offer.thinking + offer.solution + offer.overhead <= WHOLE_MAX && request.logprobs.is_none();
    is_awaited && !is_hedged && is_single && is_small
}
