//! Cuts an event with a long text into several, so that what waits for a caller is bounded.

use stint_types::chat::{ChoiceEvent, ToolCallDelta};

/// The most bytes of one event's text.
const TEXT_MAX: usize = 8 << 10;

/// The first piece of an event, which mostly is all of it, and the others in order. Each has its own memory, so that none is kept for
/// those that were sent.
pub(super) fn event_pieces(mut event: ChoiceEvent) -> (ChoiceEvent, Vec<ChoiceEvent>) {
    let length = text_of(&event).map_or(0, str::len);
    if length <= TEXT_MAX {
        return (event, Vec::new());
    }
    let (mut first, mut others, mut done) = (None, Vec::new(), 0);
    while done < length {
        let end = text_of(&event).map_or(length, |text| text.floor_char_boundary(done + TEXT_MAX));
        match cut(&mut event, done, end) {
            Some(piece) if first.is_none() => first = Some(piece),
            piece => others.extend(piece),
        }
        done = end;
    }
    (first.unwrap_or(event), others)
}

fn text_of(event: &ChoiceEvent) -> Option<&str> {
    match event {
        ChoiceEvent::Thought(text) | ChoiceEvent::Answer(text) => Some(text),
        ChoiceEvent::ToolCall(call) => Some(&call.arguments),
        ChoiceEvent::Signed(_) | ChoiceEvent::Logprobs(_) | ChoiceEvent::Note(_) => None,
    }
}

/// The piece of an event with this part of its text. What a tool call is called goes with the first.
fn cut(event: &mut ChoiceEvent, from: usize, end: usize) -> Option<ChoiceEvent> {
    let part = |text: &str| text.get(from..end).map(str::to_owned);
    match event {
        ChoiceEvent::Thought(text) => part(text).map(ChoiceEvent::Thought),
        ChoiceEvent::Answer(text) => part(text).map(ChoiceEvent::Answer),
        ChoiceEvent::ToolCall(call) => {
            let arguments = part(&call.arguments)?;
            let (id, name) = (call.id.take(), call.name.take());
            Some(ChoiceEvent::ToolCall(ToolCallDelta { index: call.index, id, name, arguments }))
        }
        ChoiceEvent::Signed(_) | ChoiceEvent::Logprobs(_) | ChoiceEvent::Note(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(event: ChoiceEvent) -> Vec<ChoiceEvent> {
        let (first, others) = event_pieces(event);
        [vec![first], others].concat()
    }

    #[test]
    fn a_long_text_is_cut_between_its_characters_and_nothing_is_lost() {
        for length in [TEXT_MAX, TEXT_MAX + 1, 3 * TEXT_MAX + 5] {
            let text = "ä".repeat(length / 2) + "b";
            let pieces = all(ChoiceEvent::Answer(text.clone()));
            let joined: String = pieces.iter().filter_map(text_of).collect();
            assert!(
                joined == text
                    && pieces
                        .iter()
                        .all(|piece| text_of(piece).is_some_and(|text| (1..=TEXT_MAX).contains(&text.len())))
            );
        }
    }

    #[test]
    fn what_is_short_stays_as_it_is() {
        for event in [
            ChoiceEvent::Thought("a".into()),
            ChoiceEvent::Answer(String::new()),
            ChoiceEvent::Logprobs(Vec::new()),
        ] {
            assert_eq!(all(event.clone()), [event]);
        }
    }

    #[test]
    fn a_tool_call_is_named_in_its_first_piece() {
        let arguments = "x".repeat(TEXT_MAX + 1);
        let call = ToolCallDelta { index: 3, id: Some("i".into()), name: Some("n".into()), arguments };
        let pieces = all(ChoiceEvent::ToolCall(call));
        let rest = ToolCallDelta { index: 3, id: None, name: None, arguments: "x".into() };
        assert!(
            matches!(&pieces[0], ChoiceEvent::ToolCall(call) if call.id.is_some() && call.name.is_some() && call.arguments.len() == TEXT_MAX)
        );
        assert_eq!(pieces[1..], [ChoiceEvent::ToolCall(rest)]);
    }
}
