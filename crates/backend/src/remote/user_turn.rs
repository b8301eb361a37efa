//! Conversations of instructions alone. APIs that want a turn of the user get the last instruction as one.

use std::sync::Arc;

use crate::{BackendCall, Failure, UnsupportedFeature};
use stint_types::chat::{Request, Role};

/// The request, with a turn of the user.
pub(super) fn ensured(request: &Arc<Request>) -> Arc<Request> {
    let is_alone = request.messages.iter().all(|message| message.role == Role::System);
    if !is_alone || request.messages.is_empty() {
        return request.clone();
    }
    let mut messages = request.messages.clone();
    messages.iter_mut().rev().take(1).for_each(|last| last.role = Role::User);
    Arc::new(Request { messages, ..(**request).clone() })
}

/// The same of a call.
pub(super) fn ensured_in(call: &BackendCall) -> BackendCall {
    BackendCall { request: ensured(&call.request), ..call.clone() }
}

/// Why a conversation is refused in which nothing is left to be sent: the user's texts are empty, or there are none.
pub(super) fn missing(request: &Request) -> Failure {
    let is_empty = request.messages.iter().any(|message| message.role == Role::User);
    let why = if is_empty {
        "this model takes no empty message: the text of the user's is empty"
    } else {
        "this model needs a message of the user"
    };
    Failure::incapable(UnsupportedFeature::Prompt, why)
}
