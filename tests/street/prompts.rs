//! The prompts, and how to know one again in what an upstream is asked.

use serde_json::Value;

/// The committed table: kind, tokens of answer, tokens of thought, prompt.
const TABLE: &str = include_str!("prompts.tsv");

/// What stands around a prompt's number in what is asked.
const MARKS: (&str, &str) = ("[no ", "]");

/// A prompt, and what a model would write on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prompt {
    pub(super) number: usize,
    pub(super) answer: u64,
    pub(super) thought: u64,
    text: &'static str,
}

impl Prompt {
    /// As it is asked.
    pub(super) fn asked(&self) -> String {
        format!("{} {}{}{}", self.text, MARKS.0, self.number, MARKS.1)
    }
}

/// All of them, in order.
pub(super) fn all() -> Vec<Prompt> {
    let rows = TABLE.lines().filter(|line| !line.starts_with('#')).enumerate();
    let prompt = |(number, row): (usize, &'static str)| {
        let [_, answer, thought, text] = row.split('\t').collect::<Vec<_>>()[..] else { panic!("{row}") };
        Prompt { number, answer: answer.parse().unwrap(), thought: thought.parse().unwrap(), text }
    };
    rows.map(prompt).collect()
}

/// Which prompt a request is about, in whatever dialect it is made. Tokens of a raw prompt stand for characters.
pub(super) fn number(body: &Value) -> Option<usize> {
    let ids = body["prompt"].as_array().filter(|ids| ids.iter().all(Value::is_u64));
    let text = match ids {
        Some(ids) => ids.iter().filter_map(character).collect(),
        None => body.to_string(),
    };
    let (_, rest) = text.rsplit_once(MARKS.0)?;
    rest.split_once(MARKS.1)?.0.parse().ok()
}

fn character(id: &Value) -> Option<char> {
    char::from_u32(u32::try_from(id.as_u64()?).ok()?.checked_sub(100)?)
}
