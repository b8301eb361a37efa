//! Filters the tool calls of a choice where not each may pass, as in a step of an agent's run, and reports which of them the reader saw.

use stint_sessions::agent::{AnswerCallLimits, ToolCallTrimmer, TrimResult};
use stint_types::chat::{
    AnswerNote, ChoiceEvent, CommentaryPlace, FinishReason, Message, Role, ToolCall, ToolCounts,
    is_complete_json,
};
use stint_types::units::Count;

use super::answer_phases::AnswerPhases;

/// Decides which of a choice's calls pass, and records what its reader saw.
#[derive(Debug, Clone)]
pub struct ToolCallFilter {
    trim: ToolCallTrimmer,
    /// Rules that are only watched: what they would drop is counted, and passes.
    watched: Option<ToolCallTrimmer>,
    reply: VisibleReply,
    /// Of tries before this one.
    dropped_before: DroppedCallCounts,
    /// Whether its text goes on from that of a try before it, and nothing stands between them yet.
    follows_text: bool,
    end: Option<ToolFilterResult>,
}

/// What came of it.
#[derive(Debug, Clone)]
struct ToolFilterResult {
    trimmed: TrimResult,
    would_drop: Count,
}

/// How many calls did not pass, and how many would not have.
#[derive(Debug, Clone, Copy, Default)]
struct DroppedCallCounts {
    held: Count,
    watched: Count,
}

/// The answer as its reader has it, who sends it back like that.
#[derive(Debug, Clone)]
struct VisibleReply {
    commentary: CommentaryPlace,
    phases: AnswerPhases,
    text: String,
    calls: Vec<(u32, ToolCall)>,
}

impl ToolCallFilter {
    /// Lets through what `trim` does; `watched` only counts. The reader has what the model says on its way in that place.
    pub fn new(
        trim: ToolCallTrimmer,
        watched: Option<ToolCallTrimmer>,
        commentary: CommentaryPlace,
    ) -> ToolCallFilter {
        ToolCallFilter {
            trim,
            watched,
            reply: VisibleReply::new(commentary),
            dropped_before: DroppedCallCounts::default(),
            follows_text: false,
            end: None,
        }
    }

    /// For another try at the same answer, of which so many calls may pass.
    pub(super) fn for_retry(&self, limits: &AnswerCallLimits) -> ToolCallFilter {
        let before = DroppedCallCounts { held: self.dropped(), watched: self.would_drop() };
        // What was said before the calls that did not pass stays said.
        let reply = VisibleReply { calls: Vec::new(), ..self.reply.clone() };
        ToolCallFilter {
            dropped_before: before,
            follows_text: !reply.text.trim().is_empty(),
            reply,
            ..ToolCallFilter::new(self.trim.for_retry(limits), None, self.reply.commentary)
        }
    }

    /// What of an event passes, and what it lets pass.
    pub(super) fn push(&mut self, event: ChoiceEvent) -> Vec<ChoiceEvent> {
        if let Some(watched) = &mut self.watched {
            watched.push(event.clone());
        }
        let mut events = self.trim.push(event);
        for event in &mut events {
            if let ChoiceEvent::Answer(text) = event
                && std::mem::take(&mut self.follows_text)
            {
                text.insert_str(0, "\n\n");
            }
        }
        events.iter().for_each(|event| self.reply.record(event));
        events
    }

    /// The answer is over: what still passes, and how it ended for its reader.
    pub(super) fn finish(&mut self, finish: FinishReason) -> (Vec<ChoiceEvent>, FinishReason) {
        let (events, trimmed) = self.trim.finish(finish);
        events.iter().for_each(|event| self.reply.record(event));
        if finish == FinishReason::Length {
            // Who is given the answer whole is not given what a limit broke off.
            self.reply.calls.retain(|(_, call)| is_complete_json(&call.arguments));
        }
        let watched = self.watched.take().map(|mut watched| watched.finish(finish).1);
        let (seen, would_drop) = (trimmed.finish, watched.map(|watched| watched.dropped).unwrap_or_default());
        self.end = Some(ToolFilterResult { trimmed, would_drop });
        (events, seen)
    }

    /// The calls that passed so far.
    pub fn passed(&self) -> &ToolCounts {
        self.end.as_ref().map_or_else(|| self.trim.passed(), |end| &end.trimmed.passed)
    }

    /// How many calls did not pass, once the answer is over.
    pub fn dropped(&self) -> Count {
        self.dropped_before.held + self.end.as_ref().map(|end| end.trimmed.dropped).unwrap_or_default()
    }

    /// How many would not have passed by rules that were only watched, once the answer is over.
    pub fn would_drop(&self) -> Count {
        self.dropped_before.watched + self.end.as_ref().map(|end| end.would_drop).unwrap_or_default()
    }

    /// True if nothing is left of an answer that came to its end, since the calls in it did not pass.
    pub fn is_emptied(&self) -> bool {
        let stopped = self.end.as_ref().is_some_and(|end| end.trimmed.finish == FinishReason::Stop);
        stopped
            && self.dropped() > Count::ZERO
            && self.reply.calls.is_empty()
            && self.reply.text.trim().is_empty()
    }

    /// True if an answer came to its end that was to be the last one, and instead called tools, none of which passed. What it
    /// says leads up to those calls.
    pub fn is_led_astray(&self) -> bool {
        let end = self.end.as_ref().map(|end| end.trimmed.finish);
        end == Some(FinishReason::Stop) && self.has_dropped() && self.reply.calls.is_empty()
    }

    /// True if this try, and not one before it, had calls that did not pass.
    fn has_dropped(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.trimmed.dropped > Count::ZERO)
    }

    /// The answer as its reader has it.
    pub fn message(&self) -> Message {
        let calls = self.reply.calls.iter().map(|(_, call)| call.clone());
        Message { tool_calls: calls.collect(), ..Message::text(Role::Assistant, self.reply.text.clone()) }
    }
}

impl VisibleReply {
    fn new(commentary: CommentaryPlace) -> VisibleReply {
        let phases = AnswerPhases::new(commentary);
        VisibleReply { commentary, phases, text: String::new(), calls: Vec::new() }
    }

    fn record(&mut self, event: &ChoiceEvent) {
        match event {
            ChoiceEvent::Answer(text) if self.commentary == CommentaryPlace::Block => {
                self.text.push_str(text);
            }
            ChoiceEvent::Answer(_) | ChoiceEvent::Note(AnswerNote::Phase(_) | AnswerNote::Refusal) => {
                if let Some(ChoiceEvent::Answer(text)) = self.phases.place(event.clone()) {
                    self.text.push_str(&text);
                }
            }
            ChoiceEvent::ToolCall(delta) => {
                let known = self.calls.iter_mut().find(|(index, _)| *index == delta.index);
                if let Some((_, call)) = known {
                    return call.arguments.push_str(&delta.arguments);
                }
                let call = ToolCall {
                    id: delta.id.clone().unwrap_or_default(),
                    name: delta.name.clone().unwrap_or_default(),
                    arguments: delta.arguments.clone(),
                };
                self.calls.push((delta.index, call));
            }
            ChoiceEvent::Thought(_)
            | ChoiceEvent::Signed(_)
            | ChoiceEvent::Logprobs(_)
            | ChoiceEvent::Note(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use stint_sessions::agent::Tools;

    use super::*;

    #[test]
    fn a_reply_has_its_text_as_its_reader_is_given_it() {
        let phase = |word: &str| ChoiceEvent::Note(AnswerNote::Phase(word.into()));
        for (place, expected) in [
            (CommentaryPlace::Block, "I look.{}"),
            (CommentaryPlace::Paragraph, "I look.\n\n{}"),
            (CommentaryPlace::Thought, "{}"),
        ] {
            let trim = ToolCallTrimmer::within(AnswerCallLimits::default(), Arc::new(Tools::default()));
            let mut filter = ToolCallFilter::new(trim, None, place);
            for event in [
                phase("commentary"),
                ChoiceEvent::Answer("I ".into()),
                ChoiceEvent::Answer("look.".into()),
                phase("final_answer"),
                ChoiceEvent::Answer("{}".into()),
            ] {
                filter.push(event);
            }
            assert_eq!(filter.message().plain_text(), expected);
        }
    }
}
