//! Refusals that only Responses and Conversations know: something is not stored for this key, or a store does not answer.

use std::error::Error;
use std::time::Duration;

use crate::http::error::ApiError;
use stint_sessions::agent::conversations::ConversationsError;
use stint_sessions::agent::stored::ResponsesError;

/// The same for a response that never was, that is gone, and that belongs to another key.
pub(super) fn response_not_found() -> ApiError {
    let why = "names no response that is stored for this key; send the whole conversation as input";
    ApiError::invalid(Some("previous_response_id"), why).with_code("previous_response_not_found")
}

/// The store of responses does not answer.
pub(super) fn responses_unavailable(error: &ResponsesError) -> ApiError {
    tracing::error!(error = error as &dyn Error, "responses cannot be read");
    let message = "stored responses cannot be read right now; try again shortly";
    ApiError::overloaded(message.to_owned(), Duration::from_secs(2))
}

/// The same for a conversation that never was, that is gone, and that belongs to another key.
pub(super) fn conversation_not_found() -> ApiError {
    ApiError::not_found("this key has no conversation of that id, or it is no longer stored")
        .with_code("conversation_not_found")
}

/// The conversation would be longer than one may be.
pub(super) fn conversation_full(param: &str) -> ApiError {
    let why = "would make the conversation longer than allowed; delete items of it, or begin another one";
    ApiError::invalid(Some(param), why).with_code("context_length_exceeded")
}

/// The operator stores nothing.
pub(super) fn storage_disabled() -> ApiError {
    let why = "cannot be stored: this gateway stores no responses; send all of it as input";
    ApiError::invalid(Some("conversation"), why).with_code("conversations_not_kept")
}

/// The store of conversations does not answer.
pub(super) fn conversations_unavailable(error: &ConversationsError) -> ApiError {
    tracing::error!(error = error as &dyn Error, "the store of conversations failed");
    let message = "stored conversations cannot be read or changed right now; try again shortly";
    ApiError::overloaded(message.to_owned(), Duration::from_secs(2))
}
