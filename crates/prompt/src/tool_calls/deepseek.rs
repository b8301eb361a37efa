//! Calls as `DeepSeek`'s models write them: each between two tokens of its own, its name parted from its arguments by a
//! third. V3 and R1 put a kind before the name and fence the JSON; from V3.1 on there is neither.

use super::json::{self, WrittenCall};

/// Before the first call and behind the last.
pub(super) const START: &str = "<｜tool▁calls▁begin｜>";
pub(super) const LAST: &str = "<｜tool▁calls▁end｜>";

const BEGIN: &str = "<｜tool▁call▁begin｜>";
const PARTED: &str = "<｜tool▁sep｜>";
const END: &str = "<｜tool▁call▁end｜>";

/// All of them.
pub(super) const TAGS: [&str; 5] = [START, LAST, BEGIN, PARTED, END];

/// Calls one after another; nothing if one of them is none.
pub(super) fn read(text: &str) -> Option<Vec<WrittenCall>> {
    let (calls, rest) = leading_calls(text);
    (rest.is_empty() && !calls.is_empty()).then_some(calls)
}

/// The calls that a text begins with, and what follows them.
pub(super) fn leading_calls(text: &str) -> (Vec<WrittenCall>, &str) {
    let (mut calls, mut rest) = (Vec::new(), text);
    while let Some((call, behind)) = read_one(rest) {
        calls.push(call);
        rest = behind;
    }
    (calls, rest)
}

fn read_one(text: &str) -> Option<(WrittenCall, &str)> {
    let (call, after) = text.strip_prefix(BEGIN)?.split_once(END)?;
    let (before, behind) = call.split_once(PARTED)?;
    let call = match behind.split_once("```json") {
        Some((name, fenced)) if before.trim() == "function" => {
            json::call_from_parts(name.trim(), fenced.trim_end().strip_suffix("```")?)?
        }
        _ => json::call_from_parts(before.trim(), behind)?,
    };
    Some((call, after.trim_start()))
}
