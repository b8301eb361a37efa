//! Turns the refusal of an issuer's token into an `ApiError`, with the check that failed (RFC 6750).

use crate::oidc::{TokenError, TokenFault};

use super::convert::SHORTLY;
use super::{ApiError, codes};

impl From<TokenError> for ApiError {
    fn from(error: TokenError) -> ApiError {
        let message = error.to_string();
        match error.fault() {
            TokenFault::Token => {
                ApiError::unauthorized(codes::INVALID_TOKEN, &message).with_challenge("invalid_token")
            }
            TokenFault::Permission => {
                let refused = ApiError::forbidden(&message).with_code(codes::TOKEN_NOT_ALLOWED);
                refused.with_challenge("insufficient_scope")
            }
            TokenFault::Unavailable => {
                ApiError::overloaded(message, SHORTLY).with_code(codes::TOKEN_NOT_CHECKED)
            }
        }
    }
}

impl ApiError {
    #[must_use]
    fn with_challenge(mut self, error: &str) -> ApiError {
        let is_plain = |letter: &char| matches!(letter, ' '..='~') && !matches!(letter, '"' | '\\');
        let why: String = self.0.message.chars().filter(is_plain).collect();
        self.0.challenge = format!("Bearer error=\"{error}\", error_description=\"{why}\"").parse().ok();
        self
    }
}
