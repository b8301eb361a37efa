//! Tasks that an application's instructions set for every message: extracting data, telling a kind, writing a query, reviewing a program.
//! The message is what that is done to, so its words do not tell what kind of work it is.

use super::scale::as_number;
use super::standing_task_words::{
    CLASSIFIES, CLASSIFIES_UNSPACED, CONDITIONS, CONVERTS, CONVERTS_UNSPACED, EXTRACTS, EXTRACTS_UNSPACED,
    GIVENS, MESSAGES, PREFIXES, PROGRAMMERS, PROGRAMS, QUERIES, RETURNS, REVIEWS, ROLE_NAMES, ROLES, SOURCES,
    StandingKind, TALKS, THOUGHT_OUT, WRITES, WRITES_UNSPACED,
};
use super::stated_length::stated_word;

/// A task stands in one of the first sentences, within so many bytes.
const LOOKED_AT: usize = 500;
const SENTENCES: usize = 3;
/// Instructions of more bytes are those of a whole application.
const PROMPT_MAX: usize = 4 * 1024;
/// Tokens of a label, a query and a review: judgements, the last two those that everyday prompts of their kinds have.
const LABEL: f64 = 12.0;
const QUERY: f64 = 150.0;
const REVIEW: f64 = 400.0;
/// What is extracted is half as long as its text, within these bounds: a judgement.
const BYTES_PER_TOKEN: f64 = 3.5;
const EXTRACTED: (f64, f64) = (40.0, 400.0);
/// So many signs of programs in so many bytes make a message one.
const SIGNS_LEAST: usize = 3;
const SIGNS_WITHIN: usize = 8 * 1024;
/// What is written about a change that is reviewed for it.
const WRITTEN_ABOUT: &str = "commit message";

/// A task and the instruction that sets it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StandingTask<'t> {
    pub kind: StandingKind,
    pub instruction: &'t str,
    /// How long an answer gets, as a logarithm of tokens.
    pub answer: f64,
}

impl<'t> StandingTask<'t> {
    /// The task that instructions set for a message.
    pub(super) fn of(prompt: &'t str, message: &[&str]) -> Option<StandingTask<'t>> {
        let prompt = prompt.trim();
        if prompt.len() > PROMPT_MAX {
            return None;
        }
        let (kind, instruction) = task_in(&prompt[..prompt.floor_char_boundary(LOOKED_AT)])?;
        let bytes: usize = message.iter().map(|part| part.len()).sum();
        let tokens = match kind {
            StandingKind::Extract => {
                (as_number(bytes) / BYTES_PER_TOKEN / 2.0).clamp(EXTRACTED.0, EXTRACTED.1)
            }
            StandingKind::Classify => LABEL,
            StandingKind::Query => QUERY,
            StandingKind::Review => REVIEW,
        };
        let is_done = kind != StandingKind::Review || is_program(message) && !prompt.contains(WRITTEN_ABOUT);
        let answer = stated_word(prompt).unwrap_or_else(|| tokens.ln());
        is_done.then_some(StandingTask { kind, instruction, answer })
    }
}

fn is_program(message: &[&str]) -> bool {
    let bytes = message.iter().flat_map(|part| part.bytes()).take(SIGNS_WITHIN);
    bytes.filter(|byte| b"{}();=<>_`".contains(byte)).take(SIGNS_LEAST).count() >= SIGNS_LEAST
}

/// The task that one of the first sentences sets. Those before it say who does it.
fn task_in(head: &str) -> Option<(StandingKind, &str)> {
    for sentence in sentences(head).take(SENTENCES) {
        let lower = sentence.to_lowercase();
        let is_role = ROLES.iter().any(|begins| lower.starts_with(begins));
        let kind = if is_role { kind_of_role(&lower) } else { kind_of_instruction(&lower) };
        match kind {
            Some(kind) => return Some((kind, sentence)),
            None if is_role => {}
            None => return None,
        }
    }
    None
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split_inclusive(". ").flat_map(|part| part.split_inclusive(['\n', '。']));
    parts.map(str::trim).filter(|sentence| !sentence.is_empty())
}

fn says(sentence: &str, words: &[&str]) -> bool {
    words.iter().any(|word| sentence.contains(word))
}

/// As in "You are a content moderator."
fn kind_of_role(sentence: &str) -> Option<StandingKind> {
    let is_other = says(sentence, TALKS) || says(sentence, CONDITIONS);
    let kind = ROLE_NAMES.iter().find(|(_, names)| says(sentence, names)).map(|(kind, _)| *kind);
    let is_of_data = |kind: StandingKind| matches!(kind, StandingKind::Extract | StandingKind::Classify);
    let of_programmers = |kind: StandingKind| is_of_data(kind) && says(sentence, PROGRAMMERS);
    kind.filter(|kind| !is_other && !of_programmers(*kind))
}

/// As in "Given a question, write a SQL query that answers it."
fn kind_of_instruction(sentence: &str) -> Option<StandingKind> {
    let given = GIVENS.iter().any(|begins| sentence.starts_with(begins));
    let rest = if given { sentence.split_once(", ")?.1 } else { sentence };
    let rest =
        PREFIXES.iter().fold(rest, |rest, prefix| rest.strip_prefix(prefix).map_or(rest, str::trim_start));
    let begins = |verbs: &[&str]| verbs.iter().any(|verb| rest.starts_with(verb));
    let is_written = begins(WRITES) || says(rest, WRITES_UNSPACED);
    if says(sentence, CONDITIONS) || sentence.starts_with("if ") || sentence.starts_with("when ") {
        None
    } else if is_written && says(rest, QUERIES) && says(sentence, SOURCES) {
        Some(StandingKind::Query)
    } else if begins(REVIEWS) && says(rest, PROGRAMS) {
        Some(StandingKind::Review)
    } else if says(sentence, THOUGHT_OUT) {
        None
    } else if begins(CLASSIFIES) && says(sentence, MESSAGES) || says(rest, CLASSIFIES_UNSPACED) {
        Some(StandingKind::Classify)
    } else {
        let is_returned = begins(RETURNS) && rest.contains(" from ");
        let is_converted = begins(CONVERTS) || says(rest, CONVERTS_UNSPACED) || is_returned;
        let is_data = is_converted && rest.contains("json") && says(sentence, MESSAGES);
        let is_extracted = begins(EXTRACTS) && says(sentence, MESSAGES) || says(rest, EXTRACTS_UNSPACED);
        (is_data || is_extracted).then_some(StandingKind::Extract)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(prompt: &str, message: &str) -> Option<StandingKind> {
        StandingTask::of(prompt, &[message]).map(|task| task.kind)
    }

    #[test]
    fn instructions_that_are_done_to_every_message_are_known() {
        for (prompt, kind) in [
            (
                "Extract these fields from the user's text and return JSON: name, email.",
                StandingKind::Extract,
            ),
            (
                "You are an information extraction engine. Extract all people from the text.",
                StandingKind::Extract,
            ),
            ("Parse the user's message into JSON with the keys intent and city.", StandingKind::Extract),
            ("Convert the message to JSON.", StandingKind::Extract),
            ("Return JSON with the name and the e-mail from the user's text.", StandingKind::Extract),
            ("从用户的文本中提取姓名和电话，以JSON格式返回。", StandingKind::Extract),
            ("Classify the support ticket into one of: billing, technical, other.", StandingKind::Classify),
            ("You are a content moderator. Label each message as SAFE or UNSAFE.", StandingKind::Classify),
            ("You will be given a review. Your task is to categorize the review.", StandingKind::Classify),
            ("Clasifica el mensaje del usuario como queja o elogio.", StandingKind::Classify),
            ("You convert natural language questions into PostgreSQL queries.", StandingKind::Query),
            ("You are a text-to-SQL assistant.", StandingKind::Query),
            ("Given a question, write a SQL query for the database below.", StandingKind::Query),
            ("Translate the user's request into a bash command.", StandingKind::Query),
        ] {
            assert_eq!(check(prompt, "Who signed up last month?"), Some(kind), "{prompt}");
        }
        assert_eq!(
            check("You are a code review bot.", "def f(x):\n  return (x)"),
            Some(StandingKind::Review)
        );
        let diff = "--- a/x.rs\n+++ b/x.rs\n+fn f() {}";
        let commits = "You are an engineer. Review the diffs. Generate a one-line commit message.";
        assert_eq!(check("Review the diffs.", diff), Some(StandingKind::Review));
        assert_eq!(check(commits, diff), None);
        assert_eq!(check("Review the code.", &format!("{}{diff}", "A word of prose. ".repeat(1_000))), None);
        let answer =
            |prompt: &str| StandingTask::of(prompt, &["It was awful."]).map(|task| task.answer.exp());
        assert!(answer("Classify the review. Reply with the label only.").is_some_and(|tokens| tokens < 5.0));
    }

    #[test]
    fn roles_and_what_is_so_of_some_messages_set_no_task() {
        for prompt in [
            "You are a helpful assistant.",
            "You are a SQL expert who helps with databases.",
            "You are a helpful assistant. If the user asks for SQL, write SQL.",
            "You are a support agent for a shop. Be friendly. Classify angry customers internally.",
            "You are an assistant. Never extract personal data from a message.",
            "You may translate questions into SQL and classify tickets.",
            "Classify each solution of the user as correct or not.",
            "Be brief.",
            "Generate a quiz about the user's topic as JSON.",
            "You are a senior engineer who works on a markdown parser.",
            "You are a data scientist with years of sentiment analysis.",
            "You are a code review bot.",
            "",
        ] {
            assert_eq!(check(prompt, "Write a story about a dog."), None, "{prompt}");
        }
    }
}
