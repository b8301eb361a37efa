//! Who asks, and for what: 401 to 405.

use crate::http::error::code::ErrorCode;

pub(in crate::http) const MISSING_API_KEY: ErrorCode = ErrorCode {
    word: "missing_api_key",
    status: 401,
    also: None,
    when: "There are keys, and the request has none",
    remedy: "Send one as `Authorization: Bearer …` or as `x-api-key`",
};
pub(in crate::http) const INVALID_API_KEY: ErrorCode = ErrorCode {
    word: "invalid_api_key",
    status: 401,
    also: None,
    when: "The key is unknown, has expired or was revoked",
    remedy: "Send another; `stint keys list` shows which there are",
};
pub(in crate::http) const INVALID_TOKEN: ErrorCode = ErrorCode {
    word: "invalid_token",
    status: 401,
    also: None,
    when: "The identity provider's token fails a check, which the message names",
    remedy: "Get a new token from the provider",
};
pub(in crate::http) const NOT_ADMIN: ErrorCode = ErrorCode {
    word: "not_admin",
    status: 403,
    also: None,
    when: "The key has no role, and the path is for admins",
    remedy: "Use the token of `[admin]`, or a key with a `role`",
};
pub(in crate::http) const ROLE_TOO_LOW: ErrorCode = ErrorCode {
    word: "role_too_low",
    status: 403,
    also: None,
    when: "The key's role does not reach for this",
    remedy: "Use a key with the role that the message names",
};
pub(in crate::http) const TOKEN_NOT_ALLOWED: ErrorCode = ErrorCode {
    word: "token_not_allowed",
    status: 403,
    also: None,
    when: "The token is right, but its claims fit no profile, or its account belongs to a key",
    remedy: "Ask the operator for a profile that fits or to revoke the key, or the provider for the claims",
};
pub(in crate::http) const BAD_HOST: ErrorCode = ErrorCode {
    word: "bad_host",
    status: 403,
    also: Some(400),
    when: "The admin API, the page, or the API while no key exists, is called by a name that it does not have; 400 where a request has no Host header, several, or one that differs from its own address",
    remedy: "Add the name to `hosts` in `[admin]`, or in `[server]` for the API, or call it by another",
};
pub(in crate::http) const BAD_ORIGIN: ErrorCode = ErrorCode {
    word: "bad_origin",
    status: 403,
    also: None,
    when: "A page of another site asks for the page's data, or asks the API while no key exists",
    remedy: "Ask from the gateway's own page or from no page, or add the origin to `[server.cors]` for the API",
};
pub(in crate::http) const NOT_FOUND: ErrorCode = ErrorCode {
    word: "not_found",
    status: 404,
    also: None,
    when: "There is no such path, or no such thing for this key",
    remedy: "Look at the message: it has the nearest path",
};
pub(in crate::http) const ENDPOINT_NOT_SERVED: ErrorCode = ErrorCode {
    word: "endpoint_not_served",
    status: 404,
    also: None,
    when: "OpenAI or Anthropic has the endpoint, and this gateway has not",
    remedy: "Ask the provider itself for it",
};
pub(in crate::http) const MODEL_NOT_FOUND: ErrorCode = ErrorCode {
    word: "model_not_found",
    status: 404,
    also: None,
    when: "There is no such model for this key",
    remedy: "Write the name that the message suggests; `GET /v1/models` lists them",
};
pub(in crate::http) const REQUEST_NOT_FOUND: ErrorCode = ErrorCode {
    word: "request_not_found",
    status: 404,
    also: None,
    when: "There is no such request of this key, or it was too long ago",
    remedy: "Nothing: it is not kept any more",
};
pub(in crate::http) const EPISODE_NOT_FOUND: ErrorCode = ErrorCode {
    word: "episode_not_found",
    status: 404,
    also: None,
    when: "There is no such run of this key, or it was too long ago",
    remedy: "Begin a run with that name",
};
pub(in crate::http) const RESPONSE_NOT_FOUND: ErrorCode = ErrorCode {
    word: "response_not_found",
    status: 404,
    also: None,
    when: "No response of that id is kept for this key",
    remedy: "Nothing: it was deleted, is too old, or was never stored",
};
pub(in crate::http) const CONVERSATION_NOT_FOUND: ErrorCode = ErrorCode {
    word: "conversation_not_found",
    status: 404,
    also: None,
    when: "No conversation of that id is kept for this key",
    remedy: "Begin another one",
};
pub(in crate::http) const METHOD_NOT_ALLOWED: ErrorCode = ErrorCode {
    word: "method_not_allowed",
    status: 405,
    also: None,
    when: "The path does not take that method",
    remedy: "Use the method that [the API](../api.md) names",
};
