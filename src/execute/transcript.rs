//! Records the text of a choice for a later check of its form. It stays in memory while the request lives, up to a limit.

use stint_types::chat::ChoiceEvent;

/// An answer and its tool calls, as they were shown.
#[derive(Debug, Clone, Default)]
pub struct AnswerTranscript {
    bytes_max: usize,
    is_truncated: bool,
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
            ChoiceEvent::Thought(_)
            | ChoiceEvent::Signed(_)
            | ChoiceEvent::Logprobs(_)
            | ChoiceEvent::Note(_) => {}
            ChoiceEvent::Answer(text) => self.answer.push_str(text),
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
