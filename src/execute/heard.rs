//! What a choice has said, for those who look at its form afterwards. It is kept in memory while the request lives, and
//! only as much of it as there is room for.

use crate::chat::Event;

/// An answer and its tool calls, as they were shown.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    room: usize,
    missed: bool,
    answer: String,
    calls: Vec<HeardCall>,
}

/// A call of a tool.
#[derive(Debug, Clone, Default)]
pub struct HeardCall {
    /// Which call of the answer it is.
    index: u32,
    /// The tool.
    pub name: String,
    /// JSON text, as the model wrote it.
    pub arguments: String,
}

impl Heard {
    /// Listens to so many bytes.
    pub fn up_to(room: usize) -> Heard {
        Heard { room, ..Heard::default() }
    }

    /// The answer and its calls; none where there was no room for all of it, or nobody listened.
    pub fn whole(&self) -> Option<(&str, &[HeardCall])> {
        (self.room > 0 && !self.missed).then_some((&*self.answer, &*self.calls))
    }

    pub(super) fn hear(&mut self, event: &Event) {
        if self.room == 0 || self.missed {
            return;
        }
        match event {
            Event::Thought(_) | Event::Signed(_) | Event::Logprobs(_) => {}
            Event::Answer(text) => self.answer.push_str(text),
            Event::ToolCall(delta) => {
                let place = match self.calls.iter().position(|call| call.index == delta.index) {
                    Some(place) => place,
                    None => {
                        self.calls.push(HeardCall { index: delta.index, ..HeardCall::default() });
                        self.calls.len() - 1
                    }
                };
                let call = &mut self.calls[place];
                call.name.push_str(delta.name.as_deref().unwrap_or_default());
                call.arguments.push_str(&delta.arguments);
            }
        }
        let calls = self.calls.iter().map(|call| call.name.len() + call.arguments.len());
        self.missed = self.answer.len() + calls.sum::<usize>() > self.room;
    }
}
