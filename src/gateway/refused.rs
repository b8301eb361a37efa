//! What refused a request, for metrics and for those who watch limits.

use crate::ledger::Refused;
use crate::plan;
use crate::units::Limit;

use super::Refusal;

/// The limit under which a request did not fit.
pub(super) fn limit(refusal: &Refusal) -> Option<&Limit> {
    match refusal {
        Refusal::Spent(Refused::Shortfall(shortfall)) => Some(&shortfall.limit),
        Refusal::Plan(plan::Refusal::DoesNotFit { limit, .. }) => Some(&**limit),
        Refusal::Held { shortfall: Some(shortfall), .. } => Some(&shortfall.limit),
        _ => None,
    }
}

/// What refused a request, in bounded words.
pub(super) fn limit_label(refusal: &Refusal) -> String {
    if let Some(limit) = limit(refusal) {
        return limit.kind();
    }
    match refusal {
        Refusal::Plan(refusal) => refusal.code().to_owned(),
        Refusal::Beyond { .. } => "model_not_capable".to_owned(),
        Refusal::UnknownModel { .. } | Refusal::SeveralEmbedders(_) => "model".to_owned(),
        Refusal::TooManyChoices { .. } => "choices".to_owned(),
        Refusal::Overloaded { .. } | Refusal::Stopping => "flights".to_owned(),
        Refusal::Resting { .. } => "targets".to_owned(),
        Refusal::Spent(_) | Refusal::Ledger(_) => "ledger".to_owned(),
        Refusal::Idempotency(_) => "idempotency".to_owned(),
        Refusal::Busy { .. } => "episode busy".to_owned(),
        Refusal::Held { .. } => "held".to_owned(),
        Refusal::NoEpisode { .. } => "episode store".to_owned(),
        Refusal::TooLong(_) => "messages".to_owned(),
        Refusal::TooManyTools { .. } => "tools".to_owned(),
        Refusal::Failed(failure) => failure.fault.word().to_owned(),
        Refusal::Incapable { failure, .. } => failure.fault.word().to_owned(),
    }
}
