//! What is wrong with a request itself: 400.

use crate::http::error::code::ErrorCode;

pub(in crate::http) const MISSING_REQUIRED_PARAMETER: ErrorCode = ErrorCode {
    word: "missing_required_parameter",
    status: 400,
    also: None,
    when: "A member that must be there is not",
    remedy: "Send the member that `param` names",
};
pub(in crate::http) const UNKNOWN_PARAMETER: ErrorCode = ErrorCode {
    word: "unknown_parameter",
    status: 400,
    also: None,
    when: "A member or a parameter that nobody here knows",
    remedy: "Leave it out, or write it as the message says",
};
pub(in crate::http) const TOO_MANY_VALUES: ErrorCode = ErrorCode {
    word: "too_many_values",
    status: 400,
    also: None,
    when: "The body has more values than any request needs",
    remedy: "Send less: of tool schemas and arguments each value counts",
};
pub(in crate::http) const BAD_FRAMING: ErrorCode = ErrorCode {
    word: "bad_framing",
    status: 400,
    also: None,
    when: "The bytes of the request can be read in two ways",
    remedy: "Use an HTTP client that keeps to RFC 9112; the message says which line is wrong",
};
pub(in crate::http) const CONTEXT_LENGTH_EXCEEDED: ErrorCode = ErrorCode {
    word: "context_length_exceeded",
    status: 400,
    also: None,
    when: "The prompt does not fit the model's context; or a conversation would be longer than is kept",
    remedy: "Shorten the prompt, or name a model with more context; the message has the figures. Nothing is cut off by itself",
};
pub(in crate::http) const BUDGET_TOO_SMALL: ErrorCode = ErrorCode {
    word: "budget_too_small",
    status: 400,
    also: None,
    when: "The request's own budget does not pay for the least that such an answer takes",
    remedy: "Raise the member that `param` names; the message has what is needed",
};
pub(in crate::http) const BUDGET_TOO_LARGE: ErrorCode = ErrorCode {
    word: "budget_too_large",
    status: 400,
    also: None,
    when: "The numbers of the request are more than can be counted",
    remedy: "State smaller ones",
};
pub(in crate::http) const DEADLINE_UNREACHABLE: ErrorCode = ErrorCode {
    word: "deadline_unreachable",
    status: 400,
    also: None,
    when: "No model answers within the stated deadline, even without a thought",
    remedy: "Allow more time, or ask for less",
};
pub(in crate::http) const MODEL_NOT_CAPABLE: ErrorCode = ErrorCode {
    word: "model_not_capable",
    status: 400,
    also: None,
    when: "No model that may serve the request can do what it asks for",
    remedy: "Name another model, or leave out what `param` names",
};
pub(in crate::http) const MODEL_UNPRICED: ErrorCode = ErrorCode {
    word: "model_unpriced",
    status: 400,
    also: None,
    when: "What the model costs is not known, and money is limited or the request leaves the choice open",
    remedy: "Name another model; without a limit on money, this one by its name. The operator can set its price",
};
pub(in crate::http) const UPSTREAM_REFUSED: ErrorCode = ErrorCode {
    word: "upstream_refused",
    status: 400,
    also: None,
    when: "The model's provider refuses the request for what it is",
    remedy: "Mend what the message says; it has the provider's words",
};
pub(in crate::http) const GUARDRAIL_REFUSED: ErrorCode = ErrorCode {
    word: "guardrail_refused",
    status: 400,
    also: None,
    when: "A guardrail of the operator refuses the request or its answer",
    remedy: "Change the request as the message says; the same again is refused again",
};
pub(in crate::http) const CONVERSATION_LOCKED: ErrorCode = ErrorCode {
    word: "conversation_locked",
    status: 400,
    also: None,
    when: "Another request goes on from the conversation just now",
    remedy: "Ask again after `Retry-After`",
};
pub(in crate::http) const MUTUALLY_EXCLUSIVE_PARAMETERS: ErrorCode = ErrorCode {
    word: "mutually_exclusive_parameters",
    status: 400,
    also: None,
    when: "The request names a response and a conversation to go on from",
    remedy: "Name one of them",
};
pub(in crate::http) const CONVERSATIONS_NOT_KEPT: ErrorCode = ErrorCode {
    word: "conversations_not_kept",
    status: 400,
    also: None,
    when: "This gateway keeps nothing of responses",
    remedy: "Send all of the conversation as `input`",
};
pub(in crate::http) const PREVIOUS_RESPONSE_NOT_FOUND: ErrorCode = ErrorCode {
    word: "previous_response_not_found",
    status: 400,
    also: None,
    when: "No response of that id is kept for this key",
    remedy: "Send the whole conversation as `input`",
};
pub(in crate::http) const ITEM_NOT_FOUND: ErrorCode = ErrorCode {
    word: "item_not_found",
    status: 400,
    also: Some(404),
    when: "The request refers to an item that is not kept for this key; 404 where an item of a conversation is asked for",
    remedy: "Send the item itself",
};
pub(in crate::http) const THREAD_UNSUPPORTED_REQUEST: ErrorCode = ErrorCode {
    word: "thread_unsupported_request",
    status: 400,
    also: None,
    when: "The request is to be kept as a thread, which Anthropic alone does",
    remedy: "Leave it out; Anthropic's SDK does so by itself",
};
