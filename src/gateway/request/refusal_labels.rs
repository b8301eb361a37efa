//! Labels for refusals, for metrics and for alerts on limits.

use crate::gateway::RequestRefusal;
use stint_backend::Fault;
use stint_decide::plan;
use stint_ledger::ReserveError;
use stint_types::units::Limit;

/// The limit under which a request did not fit.
pub(crate) fn limit(refusal: &RequestRefusal) -> Option<&Limit> {
    match refusal {
        RequestRefusal::LimitExceeded(ReserveError::Shortfall(shortfall)) => Some(&shortfall.limit),
        RequestRefusal::Plan(plan::PlanRefusal::InsufficientQuota { limit, .. }) => Some(&**limit),
        RequestRefusal::FundsReserved { shortfall: Some(shortfall), .. } => Some(&shortfall.limit),
        _ => None,
    }
}

/// What refused a request, in bounded words.
pub(crate) fn limit_label(refusal: &RequestRefusal) -> String {
    if let Some(limit) = limit(refusal) {
        return limit.kind();
    }
    match refusal {
        RequestRefusal::Plan(refusal) => refusal.code().to_owned(),
        RequestRefusal::WrongSpecialty { .. } => "model_not_capable".to_owned(),
        RequestRefusal::UnknownModel { .. } | RequestRefusal::SeveralEmbedders(_) => "model".to_owned(),
        RequestRefusal::TooManyChoices { .. } => "choices".to_owned(),
        RequestRefusal::Overloaded { .. } | RequestRefusal::Stopping | RequestRefusal::CutOff => {
            "flights".to_owned()
        }
        RequestRefusal::CoolingDown { .. } | RequestRefusal::RateLimited { .. } => "targets".to_owned(),
        RequestRefusal::CredentialRefused => Fault::Credential.as_str().to_owned(),
        RequestRefusal::LimitExceeded(_) | RequestRefusal::Ledger(_) => "ledger".to_owned(),
        RequestRefusal::Idempotency(_) => "idempotency".to_owned(),
        RequestRefusal::EpisodeBusy { .. } => "episode busy".to_owned(),
        RequestRefusal::FundsReserved { .. } => "held".to_owned(),
        RequestRefusal::EpisodeUnavailable { .. } => "episode store".to_owned(),
        RequestRefusal::TooLong(_) => "messages".to_owned(),
        RequestRefusal::TooManyTools { .. } => "tools".to_owned(),
        RequestRefusal::OtherKeysEpisode { .. } => "episode".to_owned(),
        RequestRefusal::Failed(failure) => failure.fault.as_str().to_owned(),
        RequestRefusal::Incapable { failure, .. } => failure.fault.as_str().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_backend::Failure;

    #[test]
    fn a_refused_credential_has_one_word_while_its_target_is_asked_and_while_it_is_left_alone() {
        let refused = RequestRefusal::Failed(Failure::new(Fault::Credential, "401"));
        assert_eq!(limit_label(&refused), "credential");
        assert_eq!(limit_label(&RequestRefusal::CredentialRefused), "credential");
    }
}
