//! Calls as Mistral's models write them: a list of JSON objects behind one tag, or, since Devstral and Magistral, each behind a tag
//! of its own, with its arguments behind another.

use super::json::{self, WrittenCall};

/// Begins a list of calls, or one.
pub(super) const START: &str = "[TOOL_CALLS]";

const CALL_ID: &str = "[CALL_ID]";
const ARGUMENTS: &str = "[ARGS]";

/// All of its tags.
pub(super) const TAGS: [&str; 3] = [START, CALL_ID, ARGUMENTS];

/// The calls of a text behind the first tag; nothing if one of them is none.
pub(super) fn read(text: &str) -> Option<Vec<WrittenCall>> {
    if text.starts_with('[') {
        return json::parse_list(text);
    }
    text.split(START).map(|call| read_one(call.trim())).collect()
}

/// `name[ARGS]{…}`, with an id between or not. The tag before the arguments may be missing, too.
fn read_one(call: &str) -> Option<WrittenCall> {
    let (head, arguments) = call.split_once(ARGUMENTS).or_else(|| Some(call.split_at(call.find('{')?)))?;
    let name = head.split_once(CALL_ID).map_or(head, |(name, _)| name);
    json::call_from_parts(name.trim(), arguments)
}

/// Whether what the end of the text left open is a call that broke off.
pub(super) fn is_truncated(text: &str) -> bool {
    let last = text.rsplit(START).next().unwrap_or_default();
    last.contains(ARGUMENTS) || json::is_unfinished(text)
}
