//! What went wrong on this side: 500 to 504.

use crate::gateway::SHUTTING_DOWN as SHUTTING_DOWN_WORD;
use crate::http::error::code::ErrorCode;

pub(in crate::http) const INTERNAL_ERROR: ErrorCode = ErrorCode {
    word: "internal_error",
    status: 500,
    also: None,
    when: "The gateway made a mistake",
    remedy: "Tell the operator the request's id: the log has the mistake under it",
};
pub(in crate::http) const UPSTREAM_FAILED: ErrorCode = ErrorCode {
    word: "upstream_failed",
    status: 502,
    also: None,
    when: "The model's backend failed",
    remedy: "Ask again, unless `x-should-retry` is `false`; the operator's log has the reason",
};
pub(in crate::http) const NO_ANSWER: ErrorCode = ErrorCode {
    word: "no_answer",
    status: 502,
    also: None,
    when: "A limit left nothing of the answer",
    remedy: "Allow more tokens, or less thinking; another try would most likely end alike",
};
pub(in crate::http) const OVERLOADED: ErrorCode = ErrorCode {
    word: "overloaded",
    status: 503,
    also: None,
    when: "There is no room just now, or a store does not answer. On `/v1/messages` the status is 529",
    remedy: "Ask again after `Retry-After`",
};
pub(in crate::http) const TOKEN_NOT_CHECKED: ErrorCode = ErrorCode {
    word: "token_not_checked",
    status: 503,
    also: None,
    when: "The identity provider's keys cannot be had just now",
    remedy: "Ask again after `Retry-After`",
};
pub(in crate::http) const GUARDRAIL_UNAVAILABLE: ErrorCode = ErrorCode {
    word: "guardrail_unavailable",
    status: 503,
    also: None,
    when: "A guardrail did not judge in time, and nothing passes without it",
    remedy: "Ask again after `Retry-After`, if there is one: an answer that was not judged is paid for",
};
pub(in crate::http) const ENGINE_RESTARTING: ErrorCode = ErrorCode {
    word: "engine_restarting",
    status: 503,
    also: None,
    when: "The model in this process failed or could not be loaded, and is started again by itself",
    remedy: "Ask again after `Retry-After`",
};
pub(in crate::http) const SHUTTING_DOWN: ErrorCode = ErrorCode {
    word: SHUTTING_DOWN_WORD,
    status: 503,
    also: None,
    when: "The gateway is stopping, and takes no new requests or cut this one off",
    remedy: "Ask again: another gateway, or this one in a moment",
};
pub(in crate::http) const UPSTREAM_TIMEOUT: ErrorCode = ErrorCode {
    word: "upstream_timeout",
    status: 504,
    also: None,
    when: "The model took longer than its backend is given (`first_byte_timeout`, `idle_timeout` or `total_timeout`)",
    remedy: "Ask again, unless `x-should-retry` is `false`; where the message names one of them, it is to be raised under its `[[backend]]`",
};
pub(in crate::http) const DEADLINE_EXCEEDED: ErrorCode = ErrorCode {
    word: "deadline_exceeded",
    status: 504,
    also: None,
    when: "Nothing of the answer came before the stated deadline",
    remedy: "Allow more time, or ask for less thinking",
};
