//! Turns the objection of a guardrail into an `ApiError`.

use std::time::Duration;

use crate::guardrail::Objection;

use super::{ApiError, codes};

/// When a hook may work again.
const SHORTLY: Duration = Duration::from_secs(2);

impl From<Objection> for ApiError {
    fn from(objection: Objection) -> ApiError {
        let message = objection.to_string();
        match objection {
            Objection::Refused(_) => ApiError::invalid(None, message).with_code(codes::GUARDRAIL_REFUSED),
            Objection::Tokens => {
                ApiError::invalid(None, message).with_code(codes::GUARDRAIL_REFUSED).with_param("prompt")
            }
            Objection::Unjudged => {
                ApiError::overloaded(message, SHORTLY).with_code(codes::GUARDRAIL_UNAVAILABLE)
            }
        }
    }
}

impl ApiError {
    /// True if a guardrail could not judge what it is about.
    pub(in crate::http) fn is_unjudged(&self) -> bool {
        self.0.code.as_deref() == Some(codes::GUARDRAIL_UNAVAILABLE.word)
    }

    /// The same, and another try would not help.
    #[must_use]
    pub(in crate::http) fn with_final(mut self) -> ApiError {
        self.0.is_final = true;
        self.0.retry_after = None;
        self
    }
}
