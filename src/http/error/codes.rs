//! Every code of an error that the API answers: its status, when it comes, and what to do. The reference page is made of this list.

mod access;
mod failure;
mod request;
mod state;

use super::code::ErrorCode;

pub(in crate::http) use access::{
    BAD_HOST, BAD_ORIGIN, CONVERSATION_NOT_FOUND, ENDPOINT_NOT_SERVED, EPISODE_NOT_FOUND, INVALID_API_KEY,
    INVALID_TOKEN, METHOD_NOT_ALLOWED, MISSING_API_KEY, MODEL_NOT_FOUND, NOT_ADMIN, NOT_FOUND,
    REQUEST_NOT_FOUND, RESPONSE_NOT_FOUND, ROLE_TOO_LOW, TOKEN_NOT_ALLOWED,
};
pub(in crate::http) use failure::{
    DEADLINE_EXCEEDED, ENGINE_RESTARTING, GUARDRAIL_UNAVAILABLE, INTERNAL_ERROR, NO_ANSWER, OVERLOADED,
    SHUTTING_DOWN, TOKEN_NOT_CHECKED, UPSTREAM_FAILED, UPSTREAM_TIMEOUT,
};
pub(in crate::http) use request::{
    BAD_FRAMING, BUDGET_TOO_LARGE, BUDGET_TOO_SMALL, CONTEXT_LENGTH_EXCEEDED, CONVERSATION_LOCKED,
    CONVERSATIONS_NOT_KEPT, DEADLINE_UNREACHABLE, GUARDRAIL_REFUSED, ITEM_NOT_FOUND,
    MISSING_REQUIRED_PARAMETER, MODEL_NOT_CAPABLE, MODEL_UNPRICED, MUTUALLY_EXCLUSIVE_PARAMETERS,
    PREVIOUS_RESPONSE_NOT_FOUND, THREAD_UNSUPPORTED_REQUEST, TOO_MANY_VALUES, UNKNOWN_PARAMETER,
    UPSTREAM_REFUSED,
};
pub(in crate::http) use state::{
    ALREADY_EXISTS, BODY_TIMEOUT, BODY_TOO_LARGE, CONFIG_REFUSED, CONFLICT, DECLARED_IN_CONFIGURATION, ENDED,
    EPISODE_BUSY, HEAD_TOO_LARGE, IDEMPOTENCY_IN_FLIGHT, IDEMPOTENCY_INTERRUPTED, IDEMPOTENCY_KEY_REUSED,
    IDEMPOTENCY_STREAM_DONE, IDEMPOTENCY_TOO_LARGE, INSUFFICIENT_QUOTA, RATE_LIMIT_EXCEEDED,
    REQUEST_TOO_LARGE, RESERVED_FOR_TOKENS, REVOKED, SECRET_IN_USE, UNSUPPORTED_CONTENT_ENCODING,
    UNSUPPORTED_MEDIA_TYPE,
};

/// The code of that word. What a part below the wire named and is not listed here is refused for what the request is.
pub(in crate::http) fn named(word: &str) -> ErrorCode {
    ERROR_CODES.into_iter().find(|code| code.word == word).unwrap_or(UPSTREAM_REFUSED)
}

/// All codes, by their status.
pub const ERROR_CODES: [ErrorCode; 66] = [
    MISSING_REQUIRED_PARAMETER,
    UNKNOWN_PARAMETER,
    TOO_MANY_VALUES,
    BAD_FRAMING,
    CONTEXT_LENGTH_EXCEEDED,
    BUDGET_TOO_SMALL,
    BUDGET_TOO_LARGE,
    DEADLINE_UNREACHABLE,
    MODEL_NOT_CAPABLE,
    MODEL_UNPRICED,
    UPSTREAM_REFUSED,
    GUARDRAIL_REFUSED,
    CONVERSATION_LOCKED,
    MUTUALLY_EXCLUSIVE_PARAMETERS,
    CONVERSATIONS_NOT_KEPT,
    PREVIOUS_RESPONSE_NOT_FOUND,
    ITEM_NOT_FOUND,
    THREAD_UNSUPPORTED_REQUEST,
    MISSING_API_KEY,
    INVALID_API_KEY,
    INVALID_TOKEN,
    NOT_ADMIN,
    ROLE_TOO_LOW,
    TOKEN_NOT_ALLOWED,
    BAD_HOST,
    BAD_ORIGIN,
    NOT_FOUND,
    ENDPOINT_NOT_SERVED,
    MODEL_NOT_FOUND,
    REQUEST_NOT_FOUND,
    EPISODE_NOT_FOUND,
    RESPONSE_NOT_FOUND,
    CONVERSATION_NOT_FOUND,
    METHOD_NOT_ALLOWED,
    BODY_TIMEOUT,
    IDEMPOTENCY_IN_FLIGHT,
    IDEMPOTENCY_INTERRUPTED,
    IDEMPOTENCY_STREAM_DONE,
    IDEMPOTENCY_TOO_LARGE,
    DECLARED_IN_CONFIGURATION,
    RESERVED_FOR_TOKENS,
    ALREADY_EXISTS,
    REVOKED,
    SECRET_IN_USE,
    ENDED,
    CONFLICT,
    BODY_TOO_LARGE,
    REQUEST_TOO_LARGE,
    UNSUPPORTED_MEDIA_TYPE,
    UNSUPPORTED_CONTENT_ENCODING,
    IDEMPOTENCY_KEY_REUSED,
    CONFIG_REFUSED,
    RATE_LIMIT_EXCEEDED,
    INSUFFICIENT_QUOTA,
    EPISODE_BUSY,
    HEAD_TOO_LARGE,
    INTERNAL_ERROR,
    UPSTREAM_FAILED,
    NO_ANSWER,
    OVERLOADED,
    TOKEN_NOT_CHECKED,
    GUARDRAIL_UNAVAILABLE,
    ENGINE_RESTARTING,
    SHUTTING_DOWN,
    UPSTREAM_TIMEOUT,
    DEADLINE_EXCEEDED,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_listed_once_by_its_status() {
        assert!(ERROR_CODES.is_sorted_by_key(|code| code.status));
        for code in ERROR_CODES {
            assert_eq!(
                ERROR_CODES.iter().filter(|other| other.word == code.word).count(),
                1,
                "{}",
                code.word
            );
        }
        let declared = [
            include_str!("codes/access.rs"),
            include_str!("codes/failure.rs"),
            include_str!("codes/request.rs"),
            include_str!("codes/state.rs"),
        ];
        let declared: usize = declared.iter().map(|text| text.matches(": ErrorCode =").count()).sum();
        assert_eq!(ERROR_CODES.len(), declared);
    }
}
