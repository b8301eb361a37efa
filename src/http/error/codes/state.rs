//! What stands against a request just now: 408 to 431.

use crate::http::error::code::ErrorCode;

pub(in crate::http) const BODY_TIMEOUT: ErrorCode = ErrorCode {
    word: "body_timeout",
    status: 408,
    also: None,
    when: "The body paused or took too long",
    remedy: "Send it in one go",
};
pub(in crate::http) const IDEMPOTENCY_IN_FLIGHT: ErrorCode = ErrorCode {
    word: "idempotency_in_flight",
    status: 409,
    also: None,
    when: "The request that uses the same idempotency key still runs",
    remedy: "Ask again after `Retry-After`",
};
pub(in crate::http) const IDEMPOTENCY_INTERRUPTED: ErrorCode = ErrorCode {
    word: "idempotency_interrupted",
    status: 409,
    also: None,
    when: "The request with this idempotency key was cut off; what it may have used is charged",
    remedy: "Ask with a new key",
};
pub(in crate::http) const IDEMPOTENCY_STREAM_DONE: ErrorCode = ErrorCode {
    word: "idempotency_stream_done",
    status: 409,
    also: None,
    when: "The request with this idempotency key was answered by a stream, which is not kept",
    remedy: "Ask with a new key, and pay again; the operator can keep streams with `replay_streams`",
};
pub(in crate::http) const IDEMPOTENCY_TOO_LARGE: ErrorCode = ErrorCode {
    word: "idempotency_too_large",
    status: 409,
    also: None,
    when: "The answer to the request with this idempotency key was too large to keep",
    remedy: "Ask with a new key, and pay again; the operator can raise `answer_max`",
};
pub(in crate::http) const DECLARED_IN_CONFIGURATION: ErrorCode = ErrorCode {
    word: "declared_in_configuration",
    status: 409,
    also: None,
    when: "The key or the account stands in the configuration file",
    remedy: "Change it there",
};
pub(in crate::http) const RESERVED_FOR_TOKENS: ErrorCode = ErrorCode {
    word: "reserved_for_tokens",
    status: 409,
    also: None,
    when: "The account is in the tree of an identity provider's tokens",
    remedy: "Name the key's account otherwise",
};
pub(in crate::http) const ALREADY_EXISTS: ErrorCode = ErrorCode {
    word: "already_exists",
    status: 409,
    also: None,
    when: "There is a key of that name",
    remedy: "Give the new one another name, or rotate the old one",
};
pub(in crate::http) const REVOKED: ErrorCode = ErrorCode {
    word: "revoked",
    status: 409,
    also: None,
    when: "The key was revoked, which is for good",
    remedy: "Make another one",
};
pub(in crate::http) const SECRET_IN_USE: ErrorCode = ErrorCode {
    word: "secret_in_use",
    status: 409,
    also: None,
    when: "The secret is that of another key, or was replaced",
    remedy: "Let the gateway make one",
};
pub(in crate::http) const ENDED: ErrorCode = ErrorCode {
    word: "ended",
    status: 409,
    also: None,
    when: "The run was ended, which is for good",
    remedy: "Begin another one",
};
pub(in crate::http) const CONFLICT: ErrorCode = ErrorCode {
    word: "conflict",
    status: 409,
    also: None,
    when: "The change contradicts what exists",
    remedy: "Look at the message: it says what is in the way",
};
pub(in crate::http) const BODY_TOO_LARGE: ErrorCode = ErrorCode {
    word: "body_too_large",
    status: 413,
    also: None,
    when: "The body is larger than `body_max`",
    remedy: "Send less; the operator can raise it",
};
pub(in crate::http) const REQUEST_TOO_LARGE: ErrorCode = ErrorCode {
    word: "request_too_large",
    status: 413,
    also: None,
    when: "The request has more tokens than its provider takes from this gateway in a minute, or more bytes than the model's server takes",
    remedy: "Shorten it, state a smaller limit of tokens, or name another model; waiting does not help",
};
pub(in crate::http) const UNSUPPORTED_MEDIA_TYPE: ErrorCode = ErrorCode {
    word: "unsupported_media_type",
    status: 415,
    also: None,
    when: "The content type is another than the path takes",
    remedy: "Send `content-type: application/json`, or `application/toml` where keys are taken in",
};
pub(in crate::http) const UNSUPPORTED_CONTENT_ENCODING: ErrorCode = ErrorCode {
    word: "unsupported_content_encoding",
    status: 415,
    also: None,
    when: "The body is compressed",
    remedy: "Send it as it is",
};
pub(in crate::http) const IDEMPOTENCY_KEY_REUSED: ErrorCode = ErrorCode {
    word: "idempotency_key_reused",
    status: 422,
    also: None,
    when: "The idempotency key was used for another request",
    remedy: "Use a new key for a new request",
};
pub(in crate::http) const CONFIG_REFUSED: ErrorCode = ErrorCode {
    word: "config_refused",
    status: 422,
    also: None,
    when: "A reload found mistakes; the configuration before stays in force",
    remedy: "Mend the lines that the message names; `stint check` finds the same",
};
pub(in crate::http) const RATE_LIMIT_EXCEEDED: ErrorCode = ErrorCode {
    word: "rate_limit_exceeded",
    status: 429,
    also: None,
    when: "A rate is used up, other requests in flight hold what is left, the account has too many of them, or the provider has asked for a \
           pause",
    remedy: "Ask again after `Retry-After`",
};
pub(in crate::http) const INSUFFICIENT_QUOTA: ErrorCode = ErrorCode {
    word: "insufficient_quota",
    status: 429,
    also: None,
    when: "A budget is spent, or the request needs more than a whole limit. `budget` says which, what was needed and left, and its reset",
    remedy: "Wait for the reset, ask for less, or have the limit raised; the SDKs do not try again",
};
pub(in crate::http) const EPISODE_BUSY: ErrorCode = ErrorCode {
    word: "episode_busy",
    status: 429,
    also: None,
    when: "Parallel steps of the run have set aside what is left of its budget",
    remedy: "Ask again after `Retry-After`",
};
pub(in crate::http) const HEAD_TOO_LARGE: ErrorCode = ErrorCode {
    word: "head_too_large",
    status: 431,
    also: None,
    when: "The head has more bytes than `head_max`, or more lines than `headers_max`",
    remedy: "Send fewer headers",
};
