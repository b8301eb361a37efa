//! What a caller notes of a request or a conversation: a few short texts by name, within OpenAI's limits.

use serde_json::{Map, Value};

use super::error::ApiError;

/// The most that may be noted, and how long names and texts may be, in characters.
const NOTES_MAX: usize = 16;
const NAME_MAX: usize = 64;
const NOTE_MAX: usize = 512;

/// Takes a `metadata` member.
///
/// # Errors
/// 400 that names what is too many, too long, or no text.
pub(super) fn read(value: Value) -> Result<Map<String, Value>, ApiError> {
    let Value::Object(notes) = value else {
        return Err(ApiError::invalid(Some("metadata"), "must be an object"));
    };
    check(&notes)?;
    Ok(notes)
}

/// The same of what other members stand beside, if there is any.
///
/// # Errors
/// As [`read`].
pub(super) fn check_in(members: &Map<String, Value>) -> Result<(), ApiError> {
    match members.get("metadata") {
        None => Ok(()),
        Some(Value::Object(notes)) => check(notes),
        Some(_) => Err(ApiError::invalid(Some("metadata"), "must be an object")),
    }
}

fn check(notes: &Map<String, Value>) -> Result<(), ApiError> {
    if notes.len() > NOTES_MAX {
        return Err(ApiError::invalid(Some("metadata"), format!("may have {NOTES_MAX} members")));
    }
    for (name, note) in notes {
        if name.chars().count() > NAME_MAX {
            let why = format!("has a name of more than {NAME_MAX} characters");
            return Err(ApiError::invalid(Some("metadata"), why));
        }
        if note.as_str().is_none_or(|text| text.chars().count() > NOTE_MAX) {
            let must = format!("must be a string of {NOTE_MAX} characters at most");
            return Err(ApiError::invalid(Some(&format!("metadata.{name}")), must));
        }
    }
    Ok(())
}
