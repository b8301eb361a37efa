//! Where in its run an agent's request stands: what the last results of its tools were, and how many there are to choose from.
//!
//! The task says how hard the run is, and the last results how hard this step is. Most steps read one result and make the next
//! call; one after an error has something to find out.

use stint_types::chat::{ContentPart, Message, Request, Role};

use super::asking::{last_asked, question_bytes};
use super::lengths::TextLengths;
use super::scale::{as_number, log};

/// How much of a result is looked at, from its beginning and its end.
const LOOKED_AT: usize = 1024;
/// Words of results that are not what was hoped for.
const TROUBLE: [&str; 17] = [
    "error",
    "failed",
    "failure",
    "exception",
    "traceback",
    "not found",
    "denied",
    "invalid",
    "timed out",
    "panicked at",
    "panic: ",
    "segmentation fault",
    "core dumped",
    "fatal: ",
    "undefined reference",
    "err!",
    "tool use was rejected",
];
/// What stands before a number that is not 0 where a program failed.
const EXITS: [&str; 5] = ["exit code", "exit status", "exited with code", "exit_code", "exitcode"];
/// What is made of it. Judgements: a step's thought is a usual one for its class, half way from there to the task's; each
/// result in trouble, in a row back from the last, adds to that, and so does each doubling of the tools.
const USUAL_STEP: f64 = 5.6;
const TASK_SHARE: f64 = 0.5;
const TROUBLE_EACH: f64 = 0.45;
const TROUBLE_MAX: usize = 4;
const TOOLS_EACH_FOLD: f64 = 0.25;
/// The more an agent is asked for in one message, the more calls it has to make: each e-fold of the text beyond a short sentence
/// adds so much, up to a most. Of what is known of a request with tools its length went best with how often models fail.
const LENGTH_EACH_FOLD: f64 = 0.4;
const LENGTH_USUAL: usize = 80;
const LENGTH_ADDS_MAX: f64 = 1.2;

/// An agent's request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AgentStep {
    /// How many tools there are; none of a request that is no agent's.
    tools: usize,
    /// True if it goes on from results of tools.
    goes_on: bool,
    /// How many bytes its task has, where there are tools.
    length: usize,
    /// How many of the last results were in trouble, in a row.
    trouble: usize,
}

impl AgentStep {
    pub(super) fn of(request: &Request) -> AgentStep {
        let since = last_asked(&request.messages);
        let run = request.messages.get(since.map_or(0, |at| at + 1)..).unwrap_or_default();
        let task = since.and_then(|at| request.messages.get(at)).filter(|_| !request.tools.is_empty());
        let results = run.iter().rev().filter(|message| message.role == Role::Tool);
        AgentStep {
            tools: request.tools.len(),
            length: task.map_or(0, question_bytes),
            goes_on: run.iter().any(|message| message.role == Role::Tool),
            trouble: results.take(TROUBLE_MAX).take_while(|result| is_in_trouble(result)).count(),
        }
    }
}

impl TextLengths {
    /// The lengths of a step of a run whose task has these.
    pub(super) fn of_step(self, step: &AgentStep) -> TextLengths {
        let longer = (as_number(step.length.max(LENGTH_USUAL)) / as_number(LENGTH_USUAL)).ln();
        let asked = (LENGTH_EACH_FOLD * longer).min(LENGTH_ADDS_MAX);
        let task =
            self.thought + if step.tools > 0 { asked + TOOLS_EACH_FOLD * log(step.tools) } else { 0.0 };
        if !step.goes_on {
            return TextLengths { thought: task, ..self };
        }
        let usual = USUAL_STEP + TASK_SHARE * (task - USUAL_STEP);
        TextLengths { thought: usual + TROUBLE_EACH * as_number(step.trouble), ..self }
    }
}

fn is_in_trouble(result: &Message) -> bool {
    result.content.iter().any(|part| match part {
        ContentPart::Text(text) if is_listing(text) => false,
        ContentPart::Text(text) if text.len() <= 2 * LOOKED_AT => has_trouble(text.as_bytes()),
        ContentPart::Text(text) => {
            let (head, tail) = (&text.as_bytes()[..LOOKED_AT], &text.as_bytes()[text.len() - LOOKED_AT..]);
            has_trouble(head) || has_trouble(tail)
        }
        ContentPart::Other(_) | ContentPart::AdditionStart { .. } | ContentPart::CacheBreakpoint(_) => false,
    })
}

/// Whether a file is shown with the numbers of its lines, as agents' tools for reading do. What stands in it is no result.
fn is_listing(text: &str) -> bool {
    let numbered = |line: &str| {
        let line = line.trim_start();
        let rest = line.trim_start_matches(|digit: char| digit.is_ascii_digit());
        rest.len() < line.len() && rest.starts_with(['→', '\t', '|'])
    };
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.next().is_some_and(numbered) && lines.next().is_none_or(numbered)
}

/// Without a copy of the text in small letters. What begins none of the words is passed at one look.
fn has_trouble(text: &[u8]) -> bool {
    let is_trouble = |at: usize| {
        let from = &text[at..];
        TROUBLE.iter().find(|word| begins(from, word)).is_some_and(|word| {
            let to = at + word.len();
            !is_part_of_a_name(text, at, to) && !is_denied(text, at, to) && !is_of_source(text, at, to)
        }) || EXITS.iter().any(|words| begins(from, words) && is_of_failure(&from[words.len()..]))
    };
    let may_begin = |letter: &u8| b"eftndipsuc".contains(&(letter | 0x20));
    text.iter().enumerate().any(|(at, letter)| may_begin(letter) && is_trouble(at))
        || text.split(|byte| *byte == b'\n').any(is_end_of_program)
}

fn begins(text: &[u8], word: &str) -> bool {
    text.get(..word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

/// As in `exit code: 1` and `"exit_code": 1`, but not in `exit code 2 is for misuse` and `exit_code == 1`.
fn is_of_failure(after: &[u8]) -> bool {
    let after = after.strip_prefix(b"\"").unwrap_or(after).trim_ascii_start();
    let after = after.strip_prefix(b":").or_else(|| after.strip_prefix(b">")).unwrap_or(after);
    let after = after.trim_ascii_start();
    let code = after.strip_prefix(b"-").unwrap_or(after);
    let (code, rest) = code.split_at(code.iter().take_while(|byte| byte.is_ascii_digit()).count());
    let is_all = matches!(
        rest,
        [] | [b'\n' | b'\r' | b',' | b';' | b':' | b')' | b']' | b'}' | b'"' | b'<', ..] | [b' ', b'(', ..]
    );
    is_all && code.iter().any(|digit| *digit != b'0')
}

/// A line that says no more than that a program was ended, or that tests fail: `Killed`, `2 failing`.
fn is_end_of_program(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let (count, rest) = line.split_at(line.iter().take_while(|byte| byte.is_ascii_digit()).count());
    let fails = count.iter().any(|digit| *digit != b'0') && rest.eq_ignore_ascii_case(b" failing");
    fails || [&b"killed"[..], b"aborted"].iter().any(|word| line.eq_ignore_ascii_case(word))
}

/// As in `error.py` and `test_failed_login`.
fn is_part_of_a_name(text: &[u8], from: usize, to: usize) -> bool {
    let before = from.checked_sub(1).map(|at| text[at]);
    let after = text.get(to..).unwrap_or_default();
    let after = after.strip_prefix(b"s").unwrap_or(after);
    let is_extended = matches!(after, [b'.', next, ..] if next.is_ascii_alphanumeric());
    matches!(before, Some(b'_' | b'/' | b'-')) || is_extended || matches!(after, [b'_' | b'-', ..])
}

/// As in `std::error::Error`, `console.error(`, `except ValueError:` and `new Error(`.
fn is_of_source(text: &[u8], from: usize, to: usize) -> bool {
    let begins = text[..from].iter().rposition(|byte| !byte.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
    let before = &text[..begins];
    let is_behind = |words: &[&str]| words.iter().any(|word| before.ends_with(word.as_bytes()));
    let after = text.get(to..).unwrap_or_default();
    let is_called = ["(", ">", "::"].iter().any(|sign| after.starts_with(sign.as_bytes()));
    // `java.io.IOException: no such file` is told, not written.
    let is_told = after.starts_with(b":");
    is_called
        || !is_told && is_behind(&["::", ".", "<", "&"])
        || is_behind(&[
            "new ", "except ", "raise ", "throw ", "catch (", "import ", "class ", "extends ", "impl ",
        ])
}

/// As in `0 errors`, `no failures`, `failed: 0` and `"error": null`.
fn is_denied(text: &[u8], from: usize, to: usize) -> bool {
    let before = text[..from].trim_ascii_end();
    let begins = before.iter().rposition(|byte| !byte.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
    let word = &before[begins..];
    if [&b"0"[..], b"no", b"zero", b"without"].iter().any(|none| word.eq_ignore_ascii_case(none)) {
        return true;
    }
    let after = text.get(to..).unwrap_or_default();
    let after = after.strip_prefix(b"s").unwrap_or(after);
    let after = after.strip_prefix(b"\"").unwrap_or(after).trim_ascii_start();
    let Some(value) = after.strip_prefix(b":").or_else(|| after.strip_prefix(b"=")) else { return false };
    let value = value.trim_ascii_start();
    let is_zero = matches!(value, [b'0'] | [b'0', b' ' | b',' | b';' | b')' | b'}' | b'\n' | b'\r', ..]);
    is_zero
        || [&b"null"[..], b"none", b"false", b"[]", b"\"\""]
            .iter()
            .any(|none| value.get(..none.len()).is_some_and(|value| value.eq_ignore_ascii_case(none)))
}

#[cfg(test)]
mod tests {
    use stint_types::chat::Tool;

    use super::*;

    fn chat(text: &str) -> Request {
        Request::new("auto", vec![Message::text(Role::User, text)])
    }

    fn run(results: &[&str]) -> Request {
        let mut messages = vec![Message::text(Role::User, "Fix the failing test.")];
        for result in results {
            messages.push(Message::text(Role::Assistant, "I call a tool."));
            messages.push(Message::text(Role::Tool, *result));
        }
        Request::new("auto", messages)
    }

    fn thought(results: &[&str]) -> f64 {
        let task = TextLengths { thought: 7.5, answer: 5.0 };
        task.of_step(&AgentStep::of(&run(results))).thought
    }

    #[test]
    fn a_step_is_easier_than_its_task_and_harder_the_more_results_failed_in_a_row() {
        assert!((thought(&[]) - 7.5).abs() < 1e-9, "the first step has the task before it");
        let (fine, failed) =
            (thought(&["42 lines read"]), thought(&["Traceback (most recent call last): …"]));
        assert!(fine < 7.0 && fine < failed);
        assert!(failed < thought(&["exit code 1: test FAILED", "error: no such file"]));
        assert!((thought(&["test failed", "all tests passed"]) - fine).abs() < 1e-9, "it was mended");
    }

    #[test]
    fn how_programs_end_is_seen() {
        let fine = thought(&["42 lines read"]);
        for result in [
            "thread 'main' panicked at src/lib.rs:3:5: index out of bounds",
            "panic: index out of range",
            "Segmentation fault",
            "Exit code 1",
            "exit code: 137 (out of memory)",
            "make: *** [all] exit status 2\n",
            r#"{"output": "", "exit_code": 1}"#,
            "<exit_code>1</exit_code>",
            "FATAL: role does not exist",
            "fatal: not a git repository",
            "main.o: undefined reference to `f'",
            "npm ERR! code 1",
            "starting\nKilled\n",
            "Aborted (core dumped)",
            "  1 passing\n  2 failing\n",
            "The tool use was rejected by the user.",
        ] {
            assert!(thought(&[result]) > fine, "{result}");
        }
        for result in [
            "exit code: 0",
            r#"{"exit_code": 0}"#,
            "Exit code 2 is for misuse.",
            "assert result.exit_code == 1",
            "use core::panic::Location;",
            "3 passing\n0 failing",
            "The process is killed, and what it wrote is aborted.",
            "Mends the failing test of fatal signals.",
        ] {
            assert!((thought(&[result]) - fine).abs() < 1e-9, "{result}");
        }
    }

    #[test]
    fn every_word_of_trouble_is_found_in_any_case_at_both_ends_of_a_long_result() {
        let long = "x".repeat(3 * LOOKED_AT);
        for word in TROUBLE {
            let (first, last) = (format!("{word}{long}"), format!("{long}{}", word.to_uppercase()));
            assert!(
                thought(&[&first]) > thought(&[&long]) && thought(&[&last]) > thought(&[&long]),
                "{word}"
            );
        }
    }

    #[test]
    fn a_result_that_says_that_all_is_well_is_no_trouble() {
        let fine = thought(&["42 lines read"]);
        for result in [
            "build done: 0 errors, 0 warnings",
            "12 passed, no failures",
            r#"{"rows": 3, "error": null}"#,
            "398 passed, 0 failed",
            "failed: 0, passed: 8",
            "src/error.py  src/not_found.html",
            "test_failed_login ... ok",
            "use std::error::Error;\nfn main() -> Result<(), Box<dyn Error>> {}",
            "try: run()\nexcept ValueError: pass",
            "promise.catch(console.error);\nthrow new Error('x')",
            "     1→// What is done after an error.\n     2→fn main() {}",
            "1\terror: bad\n2\tfailed",
        ] {
            assert!((thought(&[result]) - fine).abs() < 1e-9, "{result}");
        }
        let told = "Caused by: java.io.IOException: gone";
        for result in
            ["3 errors", "failed: 3", "KeyError: 'x'", r#"{"error": "no such table"}"#, "error=01", told]
        {
            assert!(thought(&[result]) > fine, "{result}");
        }
    }

    #[test]
    fn what_a_client_adds_beside_a_result_begins_none() {
        let mut request = run(&["test failed"]);
        let step = AgentStep::of(&request);
        request
            .messages
            .push(Message::text(Role::User, "<system-reminder>\nMind the list.\n</system-reminder>"));
        assert_eq!(AgentStep::of(&request), step);
        let mut asked = chat("hi");
        asked.tools.push(Tool::new("bash", serde_json::Value::Null));
        let mut noted = asked.clone();
        noted.messages =
            chat(&format!("hi\n<system-reminder>\n{}\n</system-reminder>", "Mind. ".repeat(99))).messages;
        assert_eq!(AgentStep::of(&noted), AgentStep::of(&asked));
    }

    #[test]
    fn a_new_message_of_the_user_begins_a_new_step() {
        let mut request = run(&["error", "error"]);
        request.messages.push(Message::text(Role::User, "Thanks."));
        assert_eq!(AgentStep::of(&request), AgentStep::default());
    }
}
