//! OpenAI's newer models tell what they say on their way (`commentary`) from their final answer. For the APIs that have one message for
//! both, this says where each text stands. Responses keep both as messages of their own, and do not ask here.

use serde_json::Value;

use stint_types::chat::{AnswerNote, ChoiceEvent, Request};

/// What stands between the texts of two phases.
const PARAGRAPH: &str = "\n\n";

/// Where what a model says on its way stands in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommentaryPlace {
    /// In the text of the answer, as a paragraph.
    Paragraph,
    /// In the answer, as a block of text: the API has blocks.
    Block,
    /// In the thought: the answer has the form that its caller states, and nothing else.
    Thought,
}

impl CommentaryPlace {
    /// In an API whose answers are one text.
    pub(super) fn in_text(request: &Request) -> CommentaryPlace {
        if states_form(request) { CommentaryPlace::Thought } else { CommentaryPlace::Paragraph }
    }

    /// In an API whose answers are blocks.
    pub(super) fn in_blocks(request: &Request) -> CommentaryPlace {
        if states_form(request) { CommentaryPlace::Thought } else { CommentaryPlace::Block }
    }
}

fn states_form(request: &Request) -> bool {
    request.response_format.as_ref().is_some_and(|format| format["type"] != "text")
}

/// Puts the events of one choice where they belong.
#[derive(Debug, Clone)]
pub(super) struct AnswerPhases {
    commentary: CommentaryPlace,
    phase: SpokenPhase,
    /// No text came since the phase began.
    begins: bool,
    has_answer: bool,
    thought: ThoughtTail,
    /// How many characters were put into the answer's text, and how many of the model's stand elsewhere.
    added: usize,
    moved: usize,
}

/// What the text is for that comes now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpokenPhase {
    Answer,
    Commentary,
    /// The rest is a refusal, in whatever phase.
    Refusal,
}

/// What the thought ends with so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThoughtTail {
    Nothing,
    Thought,
    Commentary,
}

impl AnswerPhases {
    pub(super) fn new(commentary: CommentaryPlace) -> AnswerPhases {
        AnswerPhases {
            commentary,
            phase: SpokenPhase::Answer,
            begins: false,
            has_answer: false,
            thought: ThoughtTail::Nothing,
            added: 0,
            moved: 0,
        }
    }

    /// The event as the answer is to have it; nothing where it says something of a text that stands elsewhere. Where the API has
    /// blocks, the beginnings of phases are left in.
    pub(super) fn place(&mut self, event: ChoiceEvent) -> Option<ChoiceEvent> {
        if self.commentary == CommentaryPlace::Block {
            return Some(event);
        }
        match event {
            ChoiceEvent::Note(AnswerNote::Phase(word)) => {
                self.begin(&word);
                None
            }
            ChoiceEvent::Note(AnswerNote::Refusal) => {
                self.phase = SpokenPhase::Refusal;
                (self.begins, self.has_answer) = (false, false);
                Some(event)
            }
            ChoiceEvent::Answer(text) if self.is_aside() => Some(ChoiceEvent::Thought(self.aside(text))),
            ChoiceEvent::Answer(text) => Some(ChoiceEvent::Answer(self.answer(text))),
            ChoiceEvent::Thought(text) => Some(ChoiceEvent::Thought(self.thought(text))),
            ChoiceEvent::Logprobs(_) | ChoiceEvent::Note(AnswerNote::Annotation(_)) if self.is_aside() => {
                None
            }
            ChoiceEvent::Note(AnswerNote::Annotation(source)) => {
                Some(ChoiceEvent::Note(AnswerNote::Annotation(self.source(source))))
            }
            event => Some(event),
        }
    }

    fn begin(&mut self, word: &str) {
        self.begins = true;
        if self.phase != SpokenPhase::Refusal {
            self.phase = if word == "commentary" { SpokenPhase::Commentary } else { SpokenPhase::Answer };
        }
    }

    /// True while the model's text is no part of the answer.
    fn is_aside(&self) -> bool {
        self.commentary == CommentaryPlace::Thought && self.phase == SpokenPhase::Commentary
    }

    fn answer(&mut self, text: String) -> String {
        let is_apart = std::mem::take(&mut self.begins) && self.has_answer;
        self.has_answer |= !text.is_empty();
        if is_apart {
            self.added += PARAGRAPH.len();
        }
        paragraph(is_apart, text)
    }

    fn aside(&mut self, text: String) -> String {
        self.moved += text.chars().count();
        let begins = std::mem::take(&mut self.begins);
        let is_apart = match std::mem::replace(&mut self.thought, ThoughtTail::Commentary) {
            ThoughtTail::Nothing => false,
            ThoughtTail::Thought => true,
            ThoughtTail::Commentary => begins,
        };
        paragraph(is_apart, text)
    }

    fn thought(&mut self, text: String) -> String {
        let before = std::mem::replace(&mut self.thought, ThoughtTail::Thought);
        paragraph(before == ThoughtTail::Commentary, text)
    }

    /// A source, with its places counted in the answer's text as it is written.
    fn source(&self, mut source: Value) -> Value {
        if self.added == self.moved {
            return source;
        }
        for name in ["start_index", "end_index"] {
            let place = source.get_mut("url_citation").and_then(|cited| cited.get_mut(name));
            if let Some(place) = place
                && let Some(at) = place.as_u64().and_then(|at| usize::try_from(at).ok())
            {
                *place = at.saturating_add(self.added).saturating_sub(self.moved).into();
            }
        }
        source
    }
}

fn paragraph(is_apart: bool, text: String) -> String {
    if is_apart { [PARAGRAPH, &text].concat() } else { text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn phase(word: &str) -> ChoiceEvent {
        ChoiceEvent::Note(AnswerNote::Phase(word.into()))
    }

    fn answer(text: &str) -> ChoiceEvent {
        ChoiceEvent::Answer(text.to_owned())
    }

    fn thought(text: &str) -> ChoiceEvent {
        ChoiceEvent::Thought(text.to_owned())
    }

    fn source(start: u64) -> ChoiceEvent {
        let cited = json!({ "url": "https://a", "start_index": start, "end_index": start + 4 });
        let source = json!({ "type": "url_citation", "url_citation": cited });
        ChoiceEvent::Note(AnswerNote::Annotation(source))
    }

    fn check(place: CommentaryPlace, said: Vec<ChoiceEvent>, expected: &[ChoiceEvent]) {
        let mut phases = AnswerPhases::new(place);
        let seen: Vec<ChoiceEvent> = said.into_iter().filter_map(|event| phases.place(event)).collect();
        assert_eq!(seen, expected);
    }

    fn said() -> Vec<ChoiceEvent> {
        vec![
            thought("hm"),
            phase("commentary"),
            answer("I "),
            answer("look."),
            source(2),
            phase("commentary"),
            answer("Wait."),
            thought("so"),
            phase("final_answer"),
            answer("{}"),
            source(12),
        ]
    }

    #[test]
    fn what_a_model_says_on_its_way_is_a_paragraph_of_the_answer() {
        let expected = [
            thought("hm"),
            answer("I "),
            answer("look."),
            source(2),
            answer("\n\nWait."),
            thought("so"),
            answer("\n\n{}"),
            source(16),
        ];
        check(CommentaryPlace::Paragraph, said(), &expected);
    }

    #[test]
    fn an_answer_of_a_stated_form_has_nothing_of_what_was_said_on_the_way() {
        let expected = [
            thought("hm"),
            thought("\n\nI "),
            thought("look."),
            thought("\n\nWait."),
            thought("\n\nso"),
            answer("{}"),
            source(0),
        ];
        check(CommentaryPlace::Thought, said(), &expected);
    }

    #[test]
    fn blocks_are_left_as_they_are() {
        check(CommentaryPlace::Block, said(), &said());
    }

    #[test]
    fn a_refusal_is_one_in_every_phase() {
        let refusal = || ChoiceEvent::Note(AnswerNote::Refusal);
        let said =
            vec![phase("commentary"), answer("I look."), refusal(), phase("commentary"), answer("No.")];
        let expected = [thought("I look."), refusal(), answer("No.")];
        check(CommentaryPlace::Thought, said.clone(), &expected);
        let expected = [answer("I look."), refusal(), answer("No.")];
        check(CommentaryPlace::Paragraph, said, &expected);
    }

    #[test]
    fn a_form_is_stated_by_any_format_but_text() {
        for (format, expected) in [
            (None, CommentaryPlace::Paragraph),
            (Some(json!({ "type": "text" })), CommentaryPlace::Paragraph),
            (Some(json!({ "type": "json_object" })), CommentaryPlace::Thought),
        ] {
            let request = Request { response_format: format, ..Request::new("m", Vec::new()) };
            assert_eq!(CommentaryPlace::in_text(&request), expected);
        }
    }
}
