//! Records the text of a choice for a later check of its form. It stays in memory while the request lives, up to a limit.

use std::collections::HashMap;

use stint_types::chat::{AnswerNote, ChoiceEvent, ToolCallDelta};

/// An answer and its tool calls, as they were shown. What the model says on its way is no part of it.
#[derive(Debug, Clone, Default)]
pub struct AnswerTranscript {
    bytes_max: usize,
    is_truncated: bool,
    is_commentary: bool,
    answer: String,
    calls: Vec<TranscriptToolCall>,
    /// Where each call stands among them, by its index in the answer.
    places: HashMap<u32, usize>,
    /// What the names and arguments of the calls take.
    call_bytes: usize,
}

/// A call of a tool.
#[derive(Debug, Clone, Default)]
pub struct TranscriptToolCall {
    /// The tool.
    pub name: String,
    /// JSON text, as the model wrote it.
    pub arguments: String,
}

impl AnswerTranscript {
    /// Listens to so many bytes.
    pub fn with_bytes_max(room: usize) -> AnswerTranscript {
        AnswerTranscript { bytes_max: room, ..AnswerTranscript::default() }
    }

    /// The answer and its calls; none where there was no room for all of it, or nobody listened.
    pub fn complete(&self) -> Option<(&str, &[TranscriptToolCall])> {
        (self.bytes_max > 0 && !self.is_truncated).then_some((&*self.answer, &*self.calls))
    }

    pub(super) fn record(&mut self, event: &ChoiceEvent) {
        if self.bytes_max == 0 || self.is_truncated {
            return;
        }
        match event {
            ChoiceEvent::Answer(_) if self.is_commentary => {}
            ChoiceEvent::Answer(text) => self.answer.push_str(text),
            ChoiceEvent::Note(AnswerNote::Phase(word)) => self.is_commentary = &**word == "commentary",
            ChoiceEvent::Note(AnswerNote::Refusal) => self.is_commentary = false,
            ChoiceEvent::Thought(_)
            | ChoiceEvent::Signed(_)
            | ChoiceEvent::Logprobs(_)
            | ChoiceEvent::Note(_) => {}
            ChoiceEvent::ToolCall(delta) => self.record_call(delta),
        }
        self.is_truncated = self.answer.len() + self.call_bytes > self.bytes_max;
    }

    fn record_call(&mut self, delta: &ToolCallDelta) {
        let place = *self.places.entry(delta.index).or_insert(self.calls.len());
        if place == self.calls.len() {
            self.calls.push(TranscriptToolCall::default());
        }
        let (call, name) = (&mut self.calls[place], delta.name.as_deref().unwrap_or_default());
        call.name.push_str(name);
        call.arguments.push_str(&delta.arguments);
        self.call_bytes += name.len() + delta.arguments.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_says_on_its_way_is_no_part_of_the_answer() {
        let phase = |word: &str| ChoiceEvent::Note(AnswerNote::Phase(word.into()));
        let mut transcript = AnswerTranscript::with_bytes_max(99);
        for event in [
            phase("commentary"),
            ChoiceEvent::Answer("I look.".into()),
            phase("final_answer"),
            ChoiceEvent::Answer("{}".into()),
        ] {
            transcript.record(&event);
        }
        assert_eq!(transcript.complete().map(|(answer, _)| answer), Some("{}"));
    }

    #[test]
    fn the_pieces_of_a_call_are_joined_and_count_in_the_room() {
        let piece = |index, name: Option<&str>, arguments: &str| {
            let (name, arguments) = (name.map(str::to_owned), arguments.to_owned());
            ChoiceEvent::ToolCall(ToolCallDelta { index, id: None, name, arguments })
        };
        let mut transcript = AnswerTranscript::with_bytes_max(8);
        [piece(4, Some("f"), "{"), piece(2, Some("g"), "[]"), piece(4, None, "}")]
            .iter()
            .for_each(|event| transcript.record(event));
        let (_, calls) = transcript.complete().unwrap();
        let told: Vec<_> = calls.iter().map(|call| (&*call.name, &*call.arguments)).collect();
        assert_eq!(told, [("f", "{}"), ("g", "[]")]);
        transcript.record(&piece(4, None, "  "));
        assert!(transcript.complete().is_some(), "8 bytes have room");
        transcript.record(&piece(2, None, " "));
        assert!(transcript.complete().is_none());
    }
}
