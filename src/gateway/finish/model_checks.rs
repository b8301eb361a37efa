//! Checks at the end of a request whether its model behaved as configured. If its thinking budget did not hold, or it
//! thought unexpectedly, it is planned for differently from the next request on.

use crate::gateway::request::RequestContext;
use stint_types::catalog::{ChoiceUsage, EnforcementClass, Offer};
use stint_types::units::Tokens;

/// Believes a native budget only as long as it holds.
pub(super) fn verify_native_budget(context: &RequestContext, offer: &Offer, spent: &[ChoiceUsage]) {
    detect_thinking(context, offer, spent);
    detect_non_thinking(context, offer);
    if offer.class != EnforcementClass::Native || spent.iter().all(|spent| !spent.overran) {
        return;
    }
    let used = spent.iter().map(|spent| spent.thinking).max();
    context.parts().metrics.thinking.overran.with_label_values(&[&*offer.model]).inc();
    let demotions = &context.state.demotions;
    let demoted = context.model(offer).and_then(|model| demotions.demote(model, Some(context.flow)));
    if let Some((class, corrected_for)) = demoted {
        context.parts().metrics.thinking.demotions.with_label_values(&[&*offer.model]).inc();
        tracing::warn!(
            request = %context.id, model = %offer.model, budget = %offer.thinking, used = ?used, now = class.as_str(),
            corrected_for = corrected_for.as_str(), "demoted: the provider's thinking budget did not hold"
        );
    }
}

/// A model whose own server reports that it does not think is planned for as one that does not.
fn detect_non_thinking(context: &RequestContext, offer: &Offer) {
    let fleet = context.parts().fleets.get(&offer.model);
    let Some(model) = context.model(offer).filter(|_| fleet.is_some_and(|fleet| fleet.never_thinks())) else {
        return;
    };
    if context.state.demotions.mark_non_thinking(model) {
        tracing::info!(
            request = %context.id, model = %offer.model,
            "its chat template knows of no thoughts: nothing is held or handed over there"
        );
    }
}

/// A model that thinks unexpectedly is planned for as one that thinks.
fn detect_thinking(context: &RequestContext, offer: &Offer, spent: &[ChoiceUsage]) {
    let used = spent.iter().map(ChoiceUsage::thinking_total).max().unwrap_or_default();
    let Some(model) = context.model(offer).filter(|_| used > Tokens::ZERO) else { return };
    let marked = context.state.demotions.mark_thinking(model, context.flow, used);
    if let Some((room, corrected_for)) = marked {
        tracing::warn!(
            request = %context.id, model = %offer.model, %used, %room, corrected_for = corrected_for.as_str(),
            "it thinks, though nothing says so: say its kind and thinking_max, or run `stint probe`"
        );
    }
}
