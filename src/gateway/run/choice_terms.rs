//! The terms on which each choice of an offer runs.

use crate::execute::{ChoiceTerms, WholeAnswer};
use stint_types::catalog::{Model, Offer};
use stint_types::chat::{CompletionKind, Request};
use stint_types::units::Tokens;

/// How an offer is run on a request whose prompt is at most so long.
pub(super) fn terms(offer: &Offer, model: Option<&Model>, prompt: Tokens, request: &Request) -> ChoiceTerms {
    let least = model.and_then(|model| model.efforts.first());
    ChoiceTerms {
        class: offer.class,
        resume: offer.resume,
        thinking: offer.thinking,
        solution: offer.solution,
        answer_takes_rest: offer.answer_takes_rest,
        solution_by: offer.solution_by,
        whole: WholeAnswer::Never,
        tells_limit: offer.tells_limit,
        output_min: model.map_or(Tokens(1), |model| model.output_min),
        overhead: offer.overhead,
        effort: offer.effort.clone(),
        visible_max: visible_max(offer, request),
        limits_thoughts: false,
        continuation: offer.continuation,
        rescue: offer.rescue,
        effort_least: least.map(|level| level.word.clone()),
        prompt,
        has_free_input: model.and_then(|model| model.tariff).is_none_or(|tariff| tariff.has_free_input()),
        cache_ttl: request.cache_ttl(),
        stop: request.sampling.stop.clone(),
        kind: if request.continues_last { CompletionKind::Text } else { request.kind },
    }
}

/// A part of what a stated limit leaves a thought that shows though it was to be hidden: the rest is its answer's.
const THOUGHT_PARTS: (u64, u64) = (3, 4);

/// Where a thought is cut that shows, though its upstream was taken to hide it. A word for how hard to think cuts nothing by
/// itself: only where a limit was stated too must the thought leave room for its answer.
fn visible_max(offer: &Offer, request: &Request) -> Option<Tokens> {
    if let Some(stated) = request.budget.thinking {
        return Some(stated);
    }
    let (part, whole) = THOUGHT_PARTS;
    let most = Tokens((offer.thinking + offer.solution).0 / whole * part);
    offer.tells_limit.then(|| offer.thinking.max(most))
}
