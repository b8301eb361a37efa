//! How a stream of thought and answer looks, and the line about its budget.

use serde_json::Value;

use crate::app::server_call::harmless;

/// What a terminal shows faintly from here on, and as usual.
const DIM: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// A part of what a model says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TranscriptPart<'e> {
    Thought(&'e str),
    Answer(&'e str),
    /// What the answer came to.
    Budget(&'e Value),
}

/// What was shown so far.
#[derive(Debug)]
pub(super) struct Transcript {
    is_terminal: bool,
    shows_thought: bool,
    is_dimmed: bool,
    is_in_thought: bool,
    ends_line: bool,
    budget: Option<Value>,
}

impl<'e> TranscriptPart<'e> {
    /// The parts of an event, in their order.
    pub(super) fn of(event: &'e Value) -> Vec<TranscriptPart<'e>> {
        let delta = &event["choices"][0]["delta"];
        let text = |member: &str| delta[member].as_str().filter(|text| !text.is_empty());
        let budget = Some(&event["budget"]).filter(|budget| budget.is_object());
        let parts = [
            text("reasoning_content").map(TranscriptPart::Thought),
            text("content").map(TranscriptPart::Answer),
            budget.map(TranscriptPart::Budget),
        ];
        parts.into_iter().flatten().collect()
    }
}

impl Transcript {
    /// Where a terminal shows it, nothing in it may steer that; elsewhere an answer stays as it is.
    pub(super) fn new(is_terminal: bool, shows_thought: bool, is_dimmed: bool) -> Transcript {
        let (is_in_thought, ends_line, budget) = (false, true, None);
        Transcript { is_terminal, shows_thought, is_dimmed, is_in_thought, ends_line, budget }
    }

    /// What to print for a part.
    pub(super) fn show(&mut self, piece: TranscriptPart<'_>) -> String {
        match piece {
            TranscriptPart::Thought(text) if self.shows_thought => {
                let begins = self.is_dimmed && !self.is_in_thought;
                self.is_in_thought = true;
                self.ends_line = text.ends_with('\n');
                // What a model writes must not steer the terminal.
                format!("{}{}", if begins { DIM } else { "" }, harmless(text))
            }
            TranscriptPart::Thought(_) => String::new(),
            TranscriptPart::Answer(text) => {
                let ended = self.leave_thought();
                self.ends_line = text.ends_with('\n');
                format!("{ended}{}", if self.is_terminal { harmless(text) } else { text.to_owned() })
            }
            TranscriptPart::Budget(budget) => {
                self.budget = Some(budget.clone());
                let ended = self.leave_thought();
                let line = if self.ends_line { "" } else { "\n" };
                self.ends_line = true;
                format!("{ended}{line}")
            }
        }
    }

    /// The line about the budget.
    pub(super) fn end(self) -> String {
        self.budget.as_ref().map(|budget| harmless(&budget_line(budget))).unwrap_or_default()
    }

    fn leave_thought(&mut self) -> String {
        if !std::mem::take(&mut self.is_in_thought) {
            return String::new();
        }
        let line = if self.ends_line { "" } else { "\n" };
        let plain = if self.is_dimmed { PLAIN } else { "" };
        self.ends_line = true;
        format!("{line}{plain}\n")
    }
}

fn budget_line(budget: &Value) -> String {
    let phase = |name: &str| {
        let phase = &budget[name];
        let (used, most) = (phase["used"].as_u64()?, phase["budget"].as_u64());
        let most = most.map(|most| format!(" of {most}")).unwrap_or_default();
        Some(format!("{used}{most} ({})", phase["ended"].as_str().unwrap_or("unknown")))
    };
    let thought = phase("thinking").map(|phase| format!("thought {phase}"));
    let answer = phase("solution").map(|phase| format!("answer {phase}"));
    let cost = budget["cost_usd"].as_str().map(|dollars| format!("${dollars}"));
    let why = budget["why"].as_str().map(str::to_owned);
    let model = budget["model"].as_str().map(str::to_owned);
    [model, thought, answer, cost, why].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(shows_thought: bool, is_dimmed: bool) -> (String, String) {
        let delta = |delta: Value| json!({ "choices": [{ "delta": delta }] });
        let events = [
            delta(json!({ "role": "assistant" })),
            delta(json!({ "reasoning_content": "1+1" })),
            delta(json!({ "reasoning_content": "=2\u{1b}[31m" })),
            delta(json!({ "content": "It is " })),
            delta(json!({ "content": "2." })),
            json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }], "budget": {
                "model": "m", "cost_usd": "0.01", "why": "by value",
                "thinking": { "budget": 8, "used": 5, "ended": "cut" }, "solution": { "used": 4, "ended": "stop" } } }),
        ];
        let mut transcript = Transcript::new(shows_thought, shows_thought, is_dimmed);
        let text = events.iter().flat_map(TranscriptPart::of).map(|piece| transcript.show(piece)).collect();
        (text, transcript.end())
    }

    #[test]
    fn a_thought_is_dimmed_where_somebody_reads_and_left_out_where_nobody_does() {
        assert_eq!(shown(true, true).0, "\u{1b}[2m1+1=2[31m\n\u{1b}[0m\nIt is 2.\n");
        assert_eq!(shown(true, false).0, "1+1=2[31m\n\nIt is 2.\n");
        assert_eq!(shown(false, false).0, "It is 2.\n");
    }

    #[test]
    fn nothing_of_a_server_steers_a_terminal() {
        let mut transcript = Transcript::new(true, false, false);
        assert_eq!(transcript.show(TranscriptPart::Answer("a\u{1b}[2J\u{9b}b")), "a[2Jb");
        transcript.show(TranscriptPart::Budget(&json!({ "model": "m\u{1b}]0;x\u{7}" })));
        assert_eq!(transcript.end(), "m]0;x");
    }

    #[test]
    fn the_last_line_says_what_was_thought_answered_and_paid() {
        assert_eq!(shown(false, false).1, "m · thought 5 of 8 (cut) · answer 4 (stop) · $0.01 · by value");
    }
}
