//! Answers whose beginning the caller has written: the last message, which the model is to continue.

use serde_json::{Map, Value, json};

use crate::Failure;
use crate::remote::begun_answer;
use stint_types::chat::{Message, Request};

use super::dialect::{Dialect, PrefillMethod};

/// Says that the last message is to be continued, in the dialect's words.
///
/// # Errors
/// Where it has none.
pub(super) fn mark(dialect: &Dialect, body: &mut Map<String, Value>) -> Result<(), Failure> {
    match dialect.prefill {
        PrefillMethod::Never => return Err(begun_answer::cannot_continue()),
        PrefillMethod::Always => {}
        PrefillMethod::Member(name) => {
            let last = body.get_mut("messages").and_then(Value::as_array_mut).and_then(|all| all.last_mut());
            last.into_iter().for_each(|last| last[name] = json!(true));
        }
        PrefillMethod::FinalMessage => continue_final_message(body),
    }
    Ok(())
}

/// Both exclude each other, and the latter is the usual one.
pub(super) fn continue_final_message(body: &mut Map<String, Value>) {
    body.insert("continue_final_message".to_owned(), json!(true));
    body.insert("add_generation_prompt".to_owned(), json!(false));
}

/// The conversation without the beginning of the answer, and that beginning: empty where there is none.
pub(super) fn split(request: &Request) -> (&[Message], String) {
    match request.messages.split_last() {
        Some((last, before)) if request.continues_last => (before, last.plain_text()),
        _ => (&request.messages, String::new()),
    }
}
