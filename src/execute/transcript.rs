//! Records the text of a choice for a later check of its form. It stays in memory while the request lives, up to a limit.

use stint_types::chat::{AnswerNote, ChoiceEvent};

/// An answer and its tool calls, as they were shown. What the model says on its way is no part of it.
#[derive(Debug, Clone, Default)]
pub struct AnswerTranscript {
    bytes_max: usize,
    is_truncated: bool,
    is_commentary: bool,
    answer: String,
    calls: Vec<TranscriptToolCall>,
}

/// A call of a tool.
#[derive(Debug, Clone, Default)]
pub struct TranscriptToolCall {
    /// Which call of the answer it is.
    index: u32,
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
            ChoiceEvent::ToolCall(delta) => {
                let place = match self.calls.iter().position(|call| call.index == delta.index) {
                    Some(place) => place,
                    None => {
                        self.calls
                            .push(TranscriptToolCall { index: delta.index, ..TranscriptToolCall::default() });
                        self.calls.len() - 1
                    }
                };
                let call = &mut self.calls[place];
                call.name.push_str(delta.name.as_deref().unwrap_or_default());
                call.arguments.push_str(&delta.arguments);
            }
        }
        let calls = self.calls.iter().map(|call| call.name.len() + call.arguments.len());
        self.is_truncated = self.answer.len() + calls.sum::<usize>() > self.bytes_max;
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
}
