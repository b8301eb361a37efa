//! The operator's tasks: JSON Lines, each a question and how its answers are judged.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::execute::verify::{Verifier, VerifierError};
use crate::execute::vote::answer_key;
use stint_types::catalog::{AnswerComparison, Checker, VerifierSettings};
use stint_types::chat::{Message, Request, Role};
use stint_types::units::Chance;

/// How long a check of an answer may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(60);
/// How many checks run at once.
const CHECKS_MAX: usize = 4;

/// One task.
#[derive(Debug, Clone)]
pub(super) struct Task {
    /// What it is known by in the journal: a hash of its line's content.
    pub(super) key: String,
    /// As the API takes them.
    pub(super) messages: Value,
    /// Its last question, for those who check answers.
    question: String,
    judge: TaskJudge,
}

/// How an answer is judged.
#[derive(Debug, Clone)]
enum TaskJudge {
    /// It must be the same as this.
    Answer(String, AnswerComparison),
    /// The operator's own check must score it so high.
    Check(Verifier),
}

/// What is wrong with a file of tasks.
#[derive(Debug, thiserror::Error)]
pub(super) enum TaskError {
    #[error("line {0} is no task")]
    Json(usize, #[source] serde_json::Error),
    #[error("line {0}: {1}")]
    Task(usize, &'static str),
    #[error("there is no task in it; write {{\"prompt\": \"…\", \"answer\": \"…\"}}, one a line")]
    Empty,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskLine {
    prompt: Option<String>,
    messages: Option<Vec<Value>>,
    answer: Option<Value>,
    compare: Option<String>,
    check: Option<TaskCheck>,
}

/// As a route's `verifier`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskCheck {
    command: Option<Vec<String>>,
    url: Option<String>,
    floor: Option<f64>,
}

/// Reads all tasks of a file.
pub(super) fn parse(text: &str) -> Result<Vec<Task>, TaskError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let tasks: Result<Vec<Task>, TaskError> = lines
        .map(|(at, line)| {
            let read = serde_json::from_str(line).map_err(|cause| TaskError::Json(at + 1, cause))?;
            task(read, line).map_err(|what| TaskError::Task(at + 1, what))
        })
        .collect();
    let mut tasks = tasks?;
    let mut known = std::collections::BTreeSet::new();
    // The same task twice tells nothing more; more samples do.
    tasks.retain(|task| known.insert(task.key.clone()));
    if tasks.is_empty() { Err(TaskError::Empty) } else { Ok(tasks) }
}

fn task(line: TaskLine, text: &str) -> Result<Task, &'static str> {
    let messages = match (line.prompt, line.messages) {
        (Some(prompt), None) => vec![json!({ "role": "user", "content": prompt })],
        (None, Some(messages)) if !messages.is_empty() => messages,
        _ => return Err("write prompt or messages"),
    };
    let last_message = messages.iter().rev().find(|message| message["role"] == "user");
    let question =
        last_message.and_then(|message| message["content"].as_str()).unwrap_or_default().to_owned();
    let judge = match (line.answer, line.check) {
        (Some(answer), None) => expected(&answer, line.compare.as_deref())?,
        (None, Some(_)) if line.compare.is_some() => return Err("compare goes with answer"),
        (None, Some(check)) => TaskJudge::Check(verifier(check)?),
        _ => return Err("write answer, or check with a command or a url"),
    };
    let hash = Sha256::digest(text.trim());
    let key: String = hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Ok(Task { key, messages: messages.into(), question, judge })
}

/// The answer that is right. Where nobody says how it is compared, its form tells.
fn expected(answer: &Value, compare: Option<&str>) -> Result<TaskJudge, &'static str> {
    let text = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
    let compare = match (compare, compare.and_then(|word| word.strip_prefix("json:"))) {
        (Some("number"), _) => AnswerComparison::Number,
        (Some("choice"), _) => AnswerComparison::Choice,
        (Some("exact"), _) => AnswerComparison::Exact,
        (Some("json"), _) => AnswerComparison::Json("".into()),
        (_, Some(pointer)) if pointer.starts_with('/') => AnswerComparison::Json(pointer.into()),
        (Some(_), _) => {
            return Err("compare is \"number\", \"choice\", \"exact\", \"json\" or \"json:/member\"");
        }
        (None, _) => usual_comparison(&text),
    };
    let key = match &compare {
        // The member alone is written, not an object that has it.
        AnswerComparison::Json(_) => answer_key(&text, &AnswerComparison::Json("".into())),
        AnswerComparison::Number | AnswerComparison::Choice | AnswerComparison::Exact => {
            answer_key(&text, &compare)
        }
    };
    key.map(|key| TaskJudge::Answer(key, compare)).ok_or("its answer has nothing that can be compared so")
}

fn usual_comparison(answer: &str) -> AnswerComparison {
    let trimmed = answer.trim();
    if trimmed.parse::<f64>().is_ok() {
        AnswerComparison::Number
    } else if trimmed.len() == 1 && trimmed.chars().all(|letter| ('A'..='J').contains(&letter)) {
        AnswerComparison::Choice
    } else {
        AnswerComparison::Exact
    }
}

fn verifier(check: TaskCheck) -> Result<Verifier, &'static str> {
    let by = match (check.command, check.url) {
        (Some(words), None) if !words.is_empty() => Checker::Command(words),
        (None, Some(address)) => Checker::Url(address),
        _ => return Err("check has a command or a url"),
    };
    let floor = check.floor.unwrap_or(0.5);
    if !(0.0..=1.0).contains(&floor) {
        return Err("the floor of a check is from 0 to 1");
    }
    let settings =
        VerifierSettings { by, floor: Chance::new(floor), timeout: CHECK_TIMEOUT, concurrency: CHECKS_MAX };
    Ok(Verifier::new(settings))
}

impl Task {
    /// Whether an answer is right.
    pub(super) async fn is_right(&self, answer: &str) -> Result<bool, VerifierError> {
        match &self.judge {
            TaskJudge::Answer(key, compare) => Ok(answer_key(answer, compare).as_ref() == Some(key)),
            TaskJudge::Check(verifier) => {
                Ok(verifier.score(&self.question, answer).await? >= verifier.floor())
            }
        }
    }

    /// As the estimate reads it.
    pub(super) fn request(&self, model: &str) -> Request {
        let message = |written: &Value| {
            let role = match written["role"].as_str() {
                Some("system" | "developer") => Role::System,
                Some("assistant") => Role::Assistant,
                _ => Role::User,
            };
            Message::text(role, written["content"].as_str().unwrap_or_default())
        };
        let messages = self.messages.as_array().into_iter().flatten().map(message).collect();
        Request::new(&*Arc::<str>::from(model), messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(line: &str, right: &[&str], wrong: &[&str]) {
        let task = parse(line).unwrap().remove(0);
        for (answers, expected) in [(right, true), (wrong, false)] {
            for answer in answers {
                assert_eq!(task.is_right(answer).await.unwrap(), expected, "{answer} to {line}");
            }
        }
    }

    #[tokio::test]
    async fn an_answer_is_compared_as_its_form_says_or_as_the_task_does() {
        check(r#"{"prompt": "6*7", "answer": "42"}"#, &["42", "It is 42."], &["41"]).await;
        check(r#"{"prompt": "6*7", "answer": 42}"#, &["\\boxed{42}"], &["24"]).await;
        check(r#"{"prompt": "A or B?", "answer": "B"}"#, &["B", "The answer is (B)."], &["A"]).await;
        check(r#"{"prompt": "Capital?", "answer": "Paris"}"#, &["paris."], &["London"]).await;
        check(
            r#"{"prompt": "Say JSON", "answer": {"a": 1}, "compare": "json"}"#,
            &[r#"{"a": 1.0}"#],
            &["{}"],
        )
        .await;
        check(r#"{"prompt": "x", "answer": 7, "compare": "json:/a"}"#, &[r#"{"a": 7}"#], &["7"]).await;
        let program = r#"{"prompt": "x", "check": {"command": ["sh", "-c", "grep -q good && echo '{\"score\": 1}' || echo '{\"score\": 0}'"]}}"#;
        check(program, &["good"], &["bad"]).await;
    }

    #[test]
    fn a_mistake_names_its_line() {
        let check = |text: &str, expected: &str| assert_eq!(parse(text).unwrap_err().to_string(), expected);
        let good = r#"{"prompt": "x", "answer": "1"}"#;
        check(&format!("{good}\n{{}}"), "line 2: write prompt or messages");
        check(r#"{"prompt": "x"}"#, "line 1: write answer, or check with a command or a url");
        check(
            r#"{"prompt": "x", "answer": "no", "compare": "number"}"#,
            "line 1: its answer has nothing that can be compared so",
        );
        check("nonsense", "line 1 is no task");
        assert!(matches!(parse("\n"), Err(TaskError::Empty)));
        assert_eq!(parse(&format!("{good}\n{good}\n")).unwrap().len(), 1);
    }
}
