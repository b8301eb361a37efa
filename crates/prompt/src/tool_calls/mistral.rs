//! Calls as Mistral's models write them: a list of JSON objects behind one tag, or, since Devstral and Magistral, each behind a tag
//! of its own, with its arguments behind another.

use serde::de::IgnoredAny;

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
    let (mut calls, mut rest) = (Vec::new(), text);
    loop {
        let (call, behind) = read_one(rest)?;
        calls.push(call);
        if behind.trim().is_empty() {
            return Some(calls);
        }
        rest = behind.trim_start().strip_prefix(START)?;
    }
}

/// The call at the beginning, `name[ARGS]{…}`, and what follows its arguments, in which any tag may stand as text. There may be an id
/// between, and the tag before the arguments may be missing.
fn read_one(text: &str) -> Option<(WrittenCall, &str)> {
    let (head, written) = text.split_at(text.find('{')?);
    let head = head.trim().strip_suffix(ARGUMENTS).unwrap_or(head);
    let name = head.split_once(CALL_ID).map_or(head, |(name, _)| name);
    let mut values = serde_json::Deserializer::from_str(written).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    let (arguments, behind) = written.split_at(values.byte_offset());
    Some((json::call_from_parts(name.trim(), arguments)?, behind))
}

/// Whether what the end of the text left open is a call that broke off.
pub(super) fn is_truncated(text: &str) -> bool {
    text.contains(ARGUMENTS) || json::is_unfinished(text)
}
