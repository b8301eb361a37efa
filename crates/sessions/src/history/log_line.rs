//! The lines of the decision log: one JSON object each, with the version of its form.

use serde::{Deserialize, Serialize};

use stint_types::catalog::{Decision, DecisionOutcome, Verdict};

/// The form of lines that this version writes. A new member does not change it; one that means something else does.
pub const VERSION: u32 = 1;

/// One line. Those who read it leave out kinds that they do not know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DecisionLogLine {
    /// A request that was decided and has ended.
    Decision {
        /// The form of the line.
        version: u32,
        /// What was decided.
        decision: Box<Decision>,
        /// What came of it.
        outcome: Box<DecisionOutcome>,
    },
    /// A verdict on an answer, which replaces an earlier one of the same source.
    Verdict {
        /// The form of the line.
        version: u32,
        /// The verdict.
        verdict: Verdict,
    },
}

impl DecisionLogLine {
    /// The line of a verdict.
    pub fn from_verdict(verdict: Verdict) -> DecisionLogLine {
        DecisionLogLine::Verdict { version: VERSION, verdict }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::history::WritableRecord;
    use crate::history::conformance::story;

    #[test]
    fn a_line_tells_of_a_story_but_not_whose_it_is_nor_what_limits_were_near() {
        let mut story = story(1_000);
        story.decision.context.words = vec![17, 4001];
        story.decision.why = "limited by what key money day of user bob has left".into();
        let mut line = Vec::new();
        WritableRecord::new(Arc::new(story.clone())).write_log_line(&mut line);
        let text = String::from_utf8(line).unwrap();
        assert!(!text.contains("bob") && !text.contains("acme"), "{text}");
        assert!(text.contains("traits") && !text.contains("4001"), "{text}");
        let DecisionLogLine::Decision { version: VERSION, decision, outcome } =
            serde_json::from_str(&text).unwrap()
        else {
            panic!("{text}")
        };
        assert_eq!((&decision.candidates, *outcome), (&story.decision.candidates, story.outcome));
    }
}
