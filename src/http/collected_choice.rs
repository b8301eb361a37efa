//! The events of one choice collected into a whole, for answers that are one object.

use std::collections::HashMap;

use crate::execute::AnswerPhases;
use stint_types::chat::{ChoiceEvent, CommentaryPlace, FinishReason, is_complete_json};

/// The events of one choice, neighbours joined.
#[derive(Debug, Clone, Default)]
pub(super) struct CollectedChoice {
    events: Vec<ChoiceEvent>,
    /// Where each call stands among them, by its index: an answer may have thousands.
    calls: HashMap<u32, usize>,
    /// Where the chances of tokens stand.
    logprobs: Option<usize>,
}

impl CollectedChoice {
    /// Adds an event; a piece joins what it continues.
    pub(super) fn push(&mut self, event: ChoiceEvent) {
        let continued = match &event {
            ChoiceEvent::ToolCall(call) => self.calls.get(&call.index).copied(),
            ChoiceEvent::Logprobs(_) => self.logprobs,
            ChoiceEvent::Thought(_) | ChoiceEvent::Answer(_) => self.events.len().checked_sub(1),
            ChoiceEvent::Signed(_) | ChoiceEvent::Note(_) => None,
        };
        match (continued.and_then(|place| self.events.get_mut(place)), event) {
            (Some(ChoiceEvent::ToolCall(call)), ChoiceEvent::ToolCall(more)) => {
                call.arguments.push_str(&more.arguments);
            }
            (Some(ChoiceEvent::Logprobs(entries)), ChoiceEvent::Logprobs(more)) => entries.extend(more),
            (Some(ChoiceEvent::Thought(earlier)), ChoiceEvent::Thought(more))
            | (Some(ChoiceEvent::Answer(earlier)), ChoiceEvent::Answer(more)) => earlier.push_str(&more),
            (_, event) => self.append(event),
        }
    }

    /// Adds an event of its own.
    fn append(&mut self, event: ChoiceEvent) {
        let place = self.events.len();
        match &event {
            ChoiceEvent::ToolCall(call) => {
                self.calls.insert(call.index, place);
            }
            ChoiceEvent::Logprobs(_) => self.logprobs = Some(place),
            ChoiceEvent::Thought(_)
            | ChoiceEvent::Signed(_)
            | ChoiceEvent::Answer(_)
            | ChoiceEvent::Note(_) => {}
        }
        self.events.push(event);
    }

    /// The same without calls that a limit cut off: running them would do something else than was meant.
    pub(super) fn without_partial_calls(self, finish: FinishReason) -> CollectedChoice {
        if !matches!(finish, FinishReason::Length | FinishReason::ContentFilter) {
            return self;
        }
        let is_whole = |event: &ChoiceEvent| match event {
            ChoiceEvent::ToolCall(call) => is_complete_json(&call.arguments),
            _ => true,
        };
        let mut whole = CollectedChoice::default();
        self.events.into_iter().filter(is_whole).for_each(|event| whole.append(event));
        whole
    }

    /// The same, with what the model says on its way in that place.
    pub(super) fn with_commentary(self, place: CommentaryPlace) -> CollectedChoice {
        let (mut phases, mut placed) = (AnswerPhases::new(place), CollectedChoice::default());
        let events = self.events.into_iter().filter_map(|event| phases.place(event));
        events.for_each(|event| placed.push(event));
        placed
    }

    /// The same, to be looked at.
    pub(super) fn events(&self) -> &[ChoiceEvent] {
        &self.events
    }

    /// The events, in order: a thought, its signed parts, the answer's text and each call once, unless they alternate.
    pub(super) fn into_events(self) -> Vec<ChoiceEvent> {
        self.events
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

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

    #[test]
    fn an_answer_of_very_many_calls_is_collected_at_once() {
        let (mut said, began) = (CollectedChoice::default(), Instant::now());
        for index in 0..100_000 {
            said.push(call(index, Some("f"), "{"));
            said.push(ChoiceEvent::Answer("a".into()));
            said.push(call(index, None, "}"));
            said.push(ChoiceEvent::Logprobs(vec![index.into()]));
        }
        let events = said.into_events();
        // The chances of tokens stand once, where the first of them came.
        assert_eq!((events.len(), &events[3]), (200_001, &call(1, Some("f"), "{}")));
        // 0.2 s without optimisation; minutes where each looks for what it continues.
        assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
    }

    #[test]
    fn calls_that_a_limit_cut_off_are_left_out_and_the_others_are_found_again() {
        let mut said = CollectedChoice::default();
        [call(0, Some("f"), "{"), call(1, Some("g"), "{}"), ChoiceEvent::Answer("a".into())]
            .into_iter()
            .for_each(|event| said.push(event));
        let mut whole = said.without_partial_calls(FinishReason::Length);
        whole.push(call(1, None, " "));
        assert_eq!(whole.into_events(), [call(1, Some("g"), "{} "), ChoiceEvent::Answer("a".into())]);
    }
}
