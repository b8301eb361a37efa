//! OpenAI's newer models tell what they say on their way (`commentary`) from their final answer. For the APIs that have one message for
//! both, this says where each text stands. Responses keep both as messages of their own, and do not ask here.

use serde_json::Value;

use stint_types::chat::{AnswerNote, ChoiceEvent, CommentaryPlace, SignedThought};

/// What stands between the texts of two phases.
const PARAGRAPH: &str = "\n\n";

/// Puts the events of one choice where they belong.
#[derive(Debug, Clone)]
pub struct AnswerPhases {
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
    /// For an answer that has said nothing yet.
    pub fn new(commentary: CommentaryPlace) -> AnswerPhases {
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
    pub fn place(&mut self, event: ChoiceEvent) -> Option<ChoiceEvent> {
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
            ChoiceEvent::Signed(signed) => Some(ChoiceEvent::Signed(self.signed(signed))),
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
        if self.is_shifted() {
            for name in ["start_index", "end_index"] {
                let place = source.get_mut("url_citation").and_then(|cited| cited.get_mut(name));
                place.into_iter().for_each(|place| self.shift(place));
            }
        }
        source
    }

    /// What a provider signed, with its place in the answer's text, where it has one, counted in the text as it is written. What comes
    /// back is put there.
    fn signed(&self, signed: SignedThought) -> SignedThought {
        let read = self.is_shifted().then(|| serde_json::from_str::<Value>(&signed.block).ok()).flatten();
        let Some(mut block) = read else { return signed };
        let Some(place) = block.get_mut("after_letters") else { return signed };
        self.shift(place);
        SignedThought { block: block.to_string().into(), ..signed }
    }

    fn is_shifted(&self) -> bool {
        self.added != self.moved
    }

    /// A place in the model's text becomes the one in the answer's.
    fn shift(&self, place: &mut Value) {
        if let Some(at) = place.as_u64().and_then(|at| usize::try_from(at).ok()) {
            *place = at.saturating_add(self.added).saturating_sub(self.moved).into();
        }
    }
}

fn paragraph(is_apart: bool, text: String) -> String {
    if is_apart { [PARAGRAPH, &text].concat() } else { text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use stint_types::chat::{SigningDomain, ThoughtSigner};

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

    fn signed(letters: u64) -> ChoiceEvent {
        let item = json!({ "type": "reasoning", "encrypted_content": "x" });
        let block = json!({ "after_text": true, "after_letters": letters, "after_calls": 0, "item": item })
            .to_string();
        let signer = ThoughtSigner { model: "m".into(), domain: SigningDomain::default() };
        ChoiceEvent::Signed(SignedThought { signer, block: block.into() })
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
    fn reasoning_comes_back_where_it_stood_in_the_text_as_it_is_written() {
        let said = || {
            let [first, second, last] = ["commentary", "commentary", "final_answer"].map(phase);
            let (before, after) = (answer("I look."), answer("Wait."));
            vec![first, before, signed(7), second, after, signed(12), last, answer("4"), signed(13)]
        };
        let expected =
            [answer("I look."), signed(7), answer("\n\nWait."), signed(14), answer("\n\n4"), signed(17)];
        check(CommentaryPlace::Paragraph, said(), &expected);
        let expected =
            [thought("I look."), signed(0), thought("\n\nWait."), signed(0), answer("4"), signed(1)];
        check(CommentaryPlace::Thought, said(), &expected);
    }
}
