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
    let mut calls = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (call, after) = rest.strip_prefix(BEGIN)?.split_once(END)?;
        let (before, behind) = call.split_once(PARTED)?;
        calls.push(match behind.split_once("```json") {
            Some((name, fenced)) if before.trim() == "function" => {
                json::call_from_parts(name.trim(), fenced.trim_end().strip_suffix("```")?)?
            }
            _ => json::call_from_parts(before.trim(), behind)?,
        });
        rest = after.trim_start();
    }
    (!calls.is_empty()).then_some(calls)
}
