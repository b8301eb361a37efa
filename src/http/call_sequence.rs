//! The order in which an API writes a choice that may have one call open at a time. Models may mix the pieces of several calls,
//! and text between them; here each call is whole before another, or text, begins.

use std::collections::{BTreeMap, VecDeque};

use stint_types::chat::{AnswerNote, ChoiceEvent, JsonObjectScanner, ToolCallDelta, is_complete_json};

/// Takes the events of one choice, and yields them with the pieces of each call together. A piece whose index is that of the
/// piece before it is more of that call; any other begins a call, with its id and its name.
#[derive(Debug, Clone, Default)]
pub(super) struct CallSequence {
    open: Option<OpenCall>,
    /// Calls that began before an earlier one was whole, with what came of them.
    waiting: BTreeMap<u32, ToolCallDelta>,
    /// What else came between the pieces of the open call.
    held: Vec<ChoiceEvent>,
    /// What has its turn.
    ready: VecDeque<ChoiceEvent>,
}

impl CallSequence {
    /// Takes the next event.
    pub(super) fn push(&mut self, event: ChoiceEvent) {
        match event {
            ChoiceEvent::ToolCall(piece) => self.call(piece),
            event if self.is_in_call() => self.held.push(event),
            event => self.pass(event),
        }
    }

    /// What is to be written next; nothing where more must come first.
    pub(super) fn pop(&mut self) -> Option<ChoiceEvent> {
        self.ready.pop_front()
    }

    /// No more pieces come: all calls have their turn, those too that are not whole.
    pub(super) fn end(&mut self) {
        while !self.waiting.is_empty() {
            self.next_call();
        }
    }

    /// The open call is over: what came between its pieces has its turn.
    pub(super) fn flush_held(&mut self) {
        for event in std::mem::take(&mut self.held) {
            self.pass(event);
        }
    }

    fn pass(&mut self, event: ChoiceEvent) {
        if begins_another(&event) {
            self.open = None;
        }
        self.ready.push_back(event);
    }

    /// True while a call is open that is not whole.
    fn is_in_call(&self) -> bool {
        !self.held.is_empty() || self.open.as_ref().is_some_and(|call| !call.is_whole)
    }

    /// A piece of another call waits until the open one is whole.
    fn call(&mut self, piece: ToolCallDelta) {
        if let Some(open) = self.open.as_mut().filter(|open| open.index == piece.index) {
            open.push(&piece.arguments);
            let is_whole = open.is_whole;
            self.ready.push_back(ChoiceEvent::ToolCall(piece));
            if is_whole {
                self.flush_held();
            }
            return;
        }
        if piece.is_blank() && !self.waiting.contains_key(&piece.index) {
            // Blank behind a call that is whole.
            return;
        }
        let is_in_call = self.is_in_call();
        self.buffer(piece);
        if !is_in_call {
            self.next_call();
        }
    }

    fn buffer(&mut self, piece: ToolCallDelta) {
        match self.waiting.get_mut(&piece.index) {
            Some(waiting) => waiting.arguments.push_str(&piece.arguments),
            None => {
                self.waiting.insert(piece.index, piece);
            }
        }
    }

    /// The first call that waits has its turn.
    fn next_call(&mut self) {
        let Some((index, call)) = self.waiting.pop_first() else { return };
        let mut open = OpenCall { index, ..OpenCall::default() };
        open.push(&call.arguments);
        self.open = Some(open);
        self.ready.push_back(ChoiceEvent::ToolCall(call));
    }
}

/// True for what stands in a part of its own, so that the call before it is over.
fn begins_another(event: &ChoiceEvent) -> bool {
    match event {
        ChoiceEvent::Thought(_) | ChoiceEvent::Signed(_) | ChoiceEvent::Answer(_) => true,
        ChoiceEvent::Note(note) => matches!(note, AnswerNote::Declined(_)),
        ChoiceEvent::ToolCall(_) | ChoiceEvent::Logprobs(_) => false,
    }
}

/// The call that is open, and whether it is whole.
#[derive(Debug, Clone, Default)]
struct OpenCall {
    index: u32,
    arguments: String,
    scanner: JsonObjectScanner,
    is_whole: bool,
}

impl OpenCall {
    /// The arguments are parsed once they may be whole, and not for each of their pieces.
    fn push(&mut self, piece: &str) {
        self.arguments.push_str(piece);
        self.scanner.push(piece);
        self.is_whole = self.scanner.is_closed() && is_complete_json(&self.arguments);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces are `index:arguments`, text is a word; what is yielded at once, then what the end yields, then what was held.
    fn check(events: &str, expected: [&str; 3]) {
        let mut sequence = CallSequence::default();
        events.split(' ').for_each(|event| sequence.push(read(event)));
        let at_once = drain(&mut sequence);
        sequence.end();
        let at_end = drain(&mut sequence);
        sequence.flush_held();
        assert_eq!([at_once, at_end, drain(&mut sequence)], expected, "{events}");
    }

    fn read(event: &str) -> ChoiceEvent {
        let Some((index, arguments)) = event.split_once(':') else {
            return ChoiceEvent::Answer(event.to_owned());
        };
        let arguments = arguments.to_owned();
        ChoiceEvent::ToolCall(ToolCallDelta {
            index: index.parse().unwrap(),
            id: None,
            name: None,
            arguments,
        })
    }

    fn drain(sequence: &mut CallSequence) -> String {
        let one = || {
            Some(match sequence.pop()? {
                ChoiceEvent::ToolCall(piece) => format!("{}:{}", piece.index, piece.arguments),
                ChoiceEvent::Answer(text) => text,
                other => panic!("{other:?}"),
            })
        };
        std::iter::from_fn(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_call_is_whole_before_another_or_text_begins() {
        check("0:{ 1:{ 0:} 1:} 2:{}", ["0:{ 0:} 1:{} 2:{}", "", ""]);
        check("0:{ so 0:} 1:{} then", ["0:{ 0:} so 1:{} then", "", ""]);
        check("0:[[ so 0:]] 1:1 2:2", ["0:[[ 0:]] so 1:1 2:2", "", ""]);
    }

    #[test]
    fn at_the_end_calls_that_are_not_whole_come_before_what_was_held() {
        check("0:{ so 2:{ 1:[ 2:}", ["0:{", "1:[ 2:{}", "so"]);
        check("0:{} 1:{ 2:{}", ["0:{} 1:{", "2:{}", ""]);
    }

    #[test]
    fn what_only_looks_closed_is_not_whole() {
        check(r#"0:{"a":"} so 0:"} then"#, [r#"0:{"a":"} 0:"} so then"#, "", ""]);
        check("0:{a} so 0: then", ["0:{a} 0:", "", "so then"]);
    }
}
