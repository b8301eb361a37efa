//! The events of one choice collected into a whole, for answers that are one object.

use crate::execute::AnswerPhases;
use stint_types::chat::{ChoiceEvent, CommentaryPlace, FinishReason, is_complete_json};

/// The events of one choice, neighbours joined.
#[derive(Debug, Clone, Default)]
pub(super) struct CollectedChoice(Vec<ChoiceEvent>);

impl CollectedChoice {
    /// Adds an event; a piece joins what it continues.
    pub(super) fn push(&mut self, event: ChoiceEvent) {
        if let ChoiceEvent::ToolCall(more) = &event {
            let same = self.0.iter_mut().rev().find_map(|earlier| match earlier {
                ChoiceEvent::ToolCall(call) if call.index == more.index => Some(call),
                _ => None,
            });
            if let Some(call) = same {
                return call.arguments.push_str(&more.arguments);
            }
        }
        if let ChoiceEvent::Logprobs(more) = &event {
            let entries = self.0.iter_mut().find_map(|earlier| match earlier {
                ChoiceEvent::Logprobs(entries) => Some(entries),
                _ => None,
            });
            if let Some(entries) = entries {
                return entries.extend_from_slice(more);
            }
        }
        match (self.0.last_mut(), event) {
            (Some(ChoiceEvent::Thought(earlier)), ChoiceEvent::Thought(more))
            | (Some(ChoiceEvent::Answer(earlier)), ChoiceEvent::Answer(more)) => earlier.push_str(&more),
            (_, event) => self.0.push(event),
        }
    }

    /// The same without calls that a limit cut off: running them would do something else than was meant.
    pub(super) fn without_partial_calls(mut self, finish: FinishReason) -> CollectedChoice {
        if matches!(finish, FinishReason::Length | FinishReason::ContentFilter) {
            self.0.retain(
                |event| !matches!(event, ChoiceEvent::ToolCall(call) if !is_complete_json(&call.arguments)),
            );
        }
        self
    }

    /// The same, with what the model says on its way in that place.
    pub(super) fn with_commentary(self, place: CommentaryPlace) -> CollectedChoice {
        let (mut phases, mut placed) = (AnswerPhases::new(place), CollectedChoice::default());
        let events = self.0.into_iter().filter_map(|event| phases.place(event));
        events.for_each(|event| placed.push(event));
        placed
    }

    /// The same, to be looked at.
    pub(super) fn events(&self) -> &[ChoiceEvent] {
        &self.0
    }

    /// The events, in order: a thought, its signed parts, the answer's text and each call once, unless they alternate.
    pub(super) fn into_events(self) -> Vec<ChoiceEvent> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::chat::ToolCallDelta;

    fn call(index: u32, name: Option<&str>, arguments: &str) -> ChoiceEvent {
        let name = name.map(str::to_owned);
        ChoiceEvent::ToolCall(ToolCallDelta {
            index,
            id: name.clone(),
            name,
            arguments: arguments.to_owned(),
        })
    }

    #[test]
    fn pieces_of_one_thing_are_joined_and_calls_found_again() {
        let mut said = CollectedChoice::default();
        for event in [
            ChoiceEvent::Thought("a".into()),
            ChoiceEvent::Thought("b".into()),
            ChoiceEvent::Answer("c".into()),
            call(0, Some("f"), "{"),
            call(1, Some("g"), "["),
            call(0, None, "}"),
        ] {
            said.push(event);
        }
        let expected = [
            ChoiceEvent::Thought("ab".into()),
            ChoiceEvent::Answer("c".into()),
            call(0, Some("f"), "{}"),
            call(1, Some("g"), "["),
        ];
        assert_eq!(said.into_events(), expected);
    }
}
