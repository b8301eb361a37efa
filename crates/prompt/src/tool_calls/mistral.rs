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
    let (calls, rest) = tagged_calls(text);
    (rest.is_empty() && !calls.is_empty()).then_some(calls)
}

/// The whole calls at the beginning of a text that broke off. Where it ends before a call's arguments, that call is none of them.
pub(super) fn leading_calls(text: &str) -> Vec<WrittenCall> {
    match text.strip_prefix('[') {
        Some(list) => json::leading_in_list(list),
        None => tagged_calls(text.strip_suffix(ARGUMENTS).unwrap_or(text)).0,
    }
}

/// The calls that a text begins with, each behind a tag, and what follows them.
fn tagged_calls(text: &str) -> (Vec<WrittenCall>, &str) {
    let (mut calls, mut rest) = (Vec::new(), text);
    while let Some((call, behind)) = read_one(rest) {
        calls.push(call);
        let behind = behind.trim_start();
        let Some(next) = behind.strip_prefix(START) else { return (calls, behind) };
        rest = next;
    }
    (calls, rest)
}

/// The call at the beginning, `name[ARGS]{…}`, and what follows its arguments, in which any tag may stand as text. There may be an id
/// between, and the tag before the arguments may be missing. Behind that tag there may be no arguments.
fn read_one(text: &str) -> Option<(WrittenCall, &str)> {
    // Behind the next tag nothing is looked for, so that many calls take no time with the square of their length.
    let next = text.find(START);
    let own = &text[..next.unwrap_or(text.len())];
    let begins = [ARGUMENTS, "{"].iter().filter_map(|mark| own.find(*mark)).min();
    let (head, rest) = text.split_at(begins.or(next)?);
    let name = head.split_once(CALL_ID).map_or(head, |(name, _)| name).trim();
    if name.contains('[') {
        return None;
    }
    let tagged = rest.strip_prefix(ARGUMENTS);
    let written = tagged.unwrap_or(rest).trim_start();
    if tagged.is_some() && (written.is_empty() || written.starts_with(START)) {
        return Some((json::call_from_parts(name, "")?, written));
    }
    let mut values = serde_json::Deserializer::from_str(written).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    let (arguments, behind) = written.split_at(values.byte_offset());
    Some((json::call_from_parts(name, arguments)?, behind))
}

/// Whether what the end of the text left open is a call that broke off.
pub(super) fn is_truncated(text: &str) -> bool {
    let is_name = |head: &str| !head.trim().contains(char::is_whitespace);
    let has_calls = || text.contains(START) && !tagged_calls(text).0.is_empty();
    text.split_once(ARGUMENTS).is_some_and(|(head, _)| is_name(head))
        || json::is_unfinished(text)
        || has_calls()
}

/// Whether a text ends in a call's name or id, or where its arguments may begin.
pub(super) fn ends_before_arguments(text: &str) -> bool {
    let text = text.trim();
    text.ends_with(ARGUMENTS) || !text.contains(|letter: char| letter == '{' || letter.is_whitespace())
}
