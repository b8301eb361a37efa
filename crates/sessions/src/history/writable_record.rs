//! Records as JSON. It is made once, by the log or the store, which write nearly the same.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use stint_types::catalog::Decision;
use stint_types::units::EpisodeId;

use super::log_line::VERSION;
use super::record::RequestRecord;

/// The texts of a request for a named model have about so many bytes. What is longer grows.
const DECISION_BYTES: usize = 2048;
const OUTCOME_BYTES: usize = 512;
const PRIVATE_BYTES: usize = 512;

/// A record on its way to the log and to the store.
#[derive(Debug)]
pub struct WritableRecord {
    record: Arc<RequestRecord>,
    text: OnceLock<RecordText>,
}

/// What the log and the store both have.
#[derive(Debug)]
struct RecordText {
    decision: String,
    outcome: String,
}

/// What the store alone has of a decision, before what the log has of it.
#[derive(Serialize)]
struct PrivateMembers<'d> {
    #[serde(skip_serializing_if = "str::is_empty")]
    why: &'d str,
    #[serde(skip_serializing_if = "Option::is_none")]
    episode: Option<&'d EpisodeId>,
    words: &'d [u16],
}

/// The one of those that is no member of the decision itself. Earlier versions have it in the decision's `context`.
#[derive(Deserialize)]
struct WordsMember {
    words: Option<Vec<u16>>,
}

impl WritableRecord {
    /// A record of which no text is made yet.
    pub fn new(record: Arc<RequestRecord>) -> Arc<WritableRecord> {
        Arc::new(WritableRecord { record, text: OnceLock::new() })
    }

    /// The record itself.
    pub fn record(&self) -> &Arc<RequestRecord> {
        &self.record
    }

    /// The decision as the store has it, with room for the outcome behind it.
    pub fn stored_decision(&self) -> String {
        let Decision { why, episode, context, .. } = &self.record.decision;
        let private = PrivateMembers { why, episode: episode.as_ref(), words: &context.words };
        let RecordText { decision: public, outcome } = self.text();
        let mut text = json(&private, PRIVATE_BYTES + public.len() + outcome.len() + 1);
        // Both are objects, and neither is empty.
        text.pop();
        text.push(',');
        text.push_str(public.get(1..).unwrap_or_default());
        text
    }

    /// The outcome as the store has it.
    pub fn stored_outcome(&self) -> &str {
        &self.text().outcome
    }

    /// Adds its line of the log. Its verdicts have lines of their own.
    pub fn write_log_line(&self, log: &mut Vec<u8>) {
        let RecordText { decision, outcome } = self.text();
        let version = VERSION.to_string();
        let parts = [
            "{\"kind\":\"decision\",\"version\":",
            &version,
            ",\"decision\":",
            decision,
            ",\"outcome\":",
            outcome,
            "}\n",
        ];
        parts.iter().for_each(|part| log.extend_from_slice(part.as_bytes()));
    }

    fn text(&self) -> &RecordText {
        let RequestRecord { decision, outcome, .. } = &*self.record;
        self.text.get_or_init(|| RecordText {
            decision: json(decision, DECISION_BYTES),
            outcome: json(outcome, OUTCOME_BYTES),
        })
    }
}

/// The decision that the store has as this text.
///
/// # Errors
/// When it is none.
pub fn read_stored_decision(text: &str) -> Result<Decision, serde_json::Error> {
    let mut decision: Decision = serde_json::from_str(text)?;
    if let WordsMember { words: Some(words) } = serde_json::from_str(text)? {
        decision.context.words = words;
    }
    Ok(decision)
}

/// Every part of a record is made of numbers, words and lists of them: it can be written as JSON. `bytes` is how long it may get
/// before its text must grow.
fn json(part: &impl Serialize, bytes: usize) -> String {
    let mut text = Vec::with_capacity(bytes);
    let written = serde_json::to_writer(&mut text, part);
    debug_assert!(written.is_ok(), "a record has numbers, words and lists of them alone: {written:?}");
    written.ok().and_then(|()| String::from_utf8(text).ok()).unwrap_or_else(|| "null".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::conformance::story;

    #[test]
    fn what_is_private_is_in_the_store_alone_and_comes_back() {
        let mut story = story(1_000);
        story.decision.context.words = vec![17, 4001];
        story.decision.episode = Some("run-7".parse().unwrap());
        let record = WritableRecord::new(Arc::new(story.clone()));
        assert_eq!(read_stored_decision(&record.stored_decision()).unwrap(), story.decision);
        let mut line = Vec::new();
        record.write_log_line(&mut line);
        let line = String::from_utf8(line).unwrap();
        assert!(!line.contains("4001") && !line.contains("because") && !line.contains("run-7"), "{line}");
    }

    #[test]
    fn what_earlier_versions_stored_is_read() {
        let mut story = story(1_000);
        let mut old = serde_json::to_value(&story.decision).unwrap();
        old["context"]["words"] = vec![7, 70].into();
        old["why"] = "because".into();
        story.decision.context.words = vec![7, 70];
        assert_eq!(read_stored_decision(&old.to_string()).unwrap(), story.decision);
    }
}
