//! The beginning of an answer that a caller has written: the last message, which its model is to continue.
//!
//! `DeepSeek` and Mistral mark it with `prefix`, Alibaba and Moonshot with `partial`, and servers of open models with
//! `continue_final_message` beside the messages. Here all of them are taken, for whichever model.

use serde_json::Value;

use crate::http::error::ApiError;
use crate::http::fields::Fields;

/// The members of the message that say so.
const MARKS: [&str; 2] = ["prefix", "partial"];

/// Takes them out of what was sent; true if the last message is to be continued.
///
/// # Errors
/// 400 that names the member where there is nothing to continue.
pub(super) fn take(fields: &mut Fields, messages: &mut [Value]) -> Result<bool, ApiError> {
    let is_assistant = messages.last().is_some_and(|last| last["role"] == "assistant");
    let must = "is for the last message, where that is the assistant's: end with that, or leave this out";
    let continues = fields.boolean("continue_final_message")? == Some(true);
    if continues && !is_assistant {
        return Err(ApiError::invalid(Some("continue_final_message"), must));
    }
    if continues && fields.boolean("add_generation_prompt")? == Some(true) {
        let why = "begins another message, and continue_final_message goes on with the last: leave it out";
        return Err(ApiError::invalid(Some("add_generation_prompt"), why));
    }
    let (mut is_marked, last) = (false, messages.len().saturating_sub(1));
    for (at, message) in messages.iter_mut().enumerate() {
        for mark in MARKS {
            let path = format!("messages[{at}].{mark}");
            match message.as_object_mut().and_then(|message| message.shift_remove(mark)) {
                None | Some(Value::Null | Value::Bool(false)) => {}
                Some(Value::Bool(true)) if at == last && is_assistant => is_marked = true,
                Some(Value::Bool(true)) => return Err(ApiError::invalid(Some(&path), must)),
                Some(_) => return Err(ApiError::invalid(Some(&path), "must be true or false")),
            }
        }
    }
    Ok(continues || is_marked)
}
