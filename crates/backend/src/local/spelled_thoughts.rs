//! Tells a thought from its answer in the text, where a model's tags are no tokens. What each token counts as is the engine's word.

use stint_engine::{GeneratedToken, TokenRole};
use stint_prompt::tags::{Splitter, TaggedSpan};
use stint_prompt::{Detokenizer, PromptFormat};
use stint_types::units::Tokens;

use crate::{Piece, TagEdge};

/// Reads one generation.
#[derive(Debug)]
pub(super) struct SpelledThoughts {
    text: Detokenizer,
    tags: [String; 2],
    splitter: Splitter,
    is_thinking: bool,
    /// Text that stood in one token with a tag. It is told with the next token of its kind.
    held: String,
    /// Tokens before it is known what they are.
    blanks: Tokens,
}

impl SpelledThoughts {
    /// At the beginning of a generation, or within its thought; nothing for a model whose tags are tokens, or that has none.
    pub(super) fn new(format: &PromptFormat, is_thinking: bool) -> Option<SpelledThoughts> {
        let tags = format.spelled_tags()?.clone();
        let [start, end] = tags.clone();
        Some(SpelledThoughts {
            text: format.detokenizer(),
            splitter: Splitter::new(start, end, is_thinking),
            tags,
            is_thinking,
            held: String::new(),
            blanks: Tokens::ZERO,
        })
    }

    /// What one token is.
    pub(super) fn read(&mut self, step: GeneratedToken) -> Vec<Piece> {
        let mut pieces = Vec::new();
        // Where nothing hands over, the answer begins where the budget ends.
        if step.role == TokenRole::HandOff || (step.role == TokenRole::Solution && self.is_thinking) {
            pieces.extend(self.close());
        }
        let tokens = Tokens(1);
        if step.role == TokenRole::HandOff {
            pieces.push(Piece::HandOff { tokens });
            return pieces;
        }
        let text = self.text.push(step.id);
        let [thought, answer] = parts(self.splitter.push(&text));
        match step.role {
            TokenRole::Thought => {
                let text = std::mem::take(&mut self.held) + &thought;
                // Its tokens may be a part of the tag already, so that it is gone on with by its text.
                pieces.push(Piece::Thought { text, tokens, ids: Vec::new() });
            }
            // What looks like another thought is none of the answer.
            TokenRole::Solution => {
                let text = std::mem::take(&mut self.held) + &answer;
                pieces.push(Piece::Answer { text, tokens: self.take_blanks() + tokens });
            }
            TokenRole::Tag if self.is_thinking => {
                pieces.extend(thought_piece(std::mem::take(&mut self.held) + &thought));
                pieces.push(Piece::Tag { tokens, edge: TagEdge::End });
                (self.is_thinking, self.held) = (false, answer);
            }
            TokenRole::Tag => {
                pieces.push(Piece::Tag { tokens: self.take_blanks() + tokens, edge: TagEdge::Start });
                (self.is_thinking, self.held) = (true, thought);
            }
            TokenRole::Blank => {
                self.held.push_str(&answer);
                self.blanks += tokens;
            }
            TokenRole::HandOff | TokenRole::End => {}
        }
        pieces
    }

    /// What is left at the end.
    pub(super) fn finish(&mut self) -> Option<Piece> {
        if self.is_thinking {
            return self.close();
        }
        let [_, answer] = self.rest();
        let (text, tokens) = (std::mem::take(&mut self.held) + &answer, self.take_blanks());
        (!text.is_empty() || tokens > Tokens::ZERO).then_some(Piece::Answer { text, tokens })
    }

    /// The thought is over without a tag; what was held of it.
    fn close(&mut self) -> Option<Piece> {
        let [thought, _] = self.rest();
        let [start, end] = self.tags.clone();
        self.splitter = Splitter::after_thought(start, end);
        self.is_thinking = false;
        thought_piece(std::mem::take(&mut self.held) + &thought)
    }

    fn rest(&mut self) -> [String; 2] {
        let mut spans = self.splitter.push(&self.text.finish());
        spans.extend(self.splitter.finish());
        parts(spans)
    }

    fn take_blanks(&mut self) -> Tokens {
        std::mem::take(&mut self.blanks)
    }
}

/// The thought and the answer among some spans.
fn parts(spans: Vec<TaggedSpan>) -> [String; 2] {
    let [mut thought, mut answer] = [String::new(), String::new()];
    for span in spans {
        match span {
            TaggedSpan::Thought(text) => thought.push_str(&text),
            TaggedSpan::Answer(text) => answer.push_str(&text),
            TaggedSpan::Start | TaggedSpan::End => {}
        }
    }
    [thought, answer]
}

/// Text of a thought whose tokens were counted before.
fn thought_piece(text: String) -> Option<Piece> {
    (!text.is_empty()).then(|| Piece::Thought { text, tokens: Tokens::ZERO, ids: Vec::new() })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use stint_gguf::Gguf;
    use stint_prompt::Vocabulary;

    use super::*;

    /// The embedded model's format, but for its tags, which are text here.
    fn format() -> PromptFormat {
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("models/reasoner.gguf");
        let mut vocabulary = Vocabulary::from_gguf(&Gguf::open(&path).unwrap()).unwrap();
        for token in &mut vocabulary.tokens {
            if matches!(token.as_str(), "<think>" | "</think>") {
                token.insert_str(0, "no");
            }
        }
        vocabulary.template = Some("{{ messages[0].content }}{# <think> #}".to_owned());
        PromptFormat::new(&vocabulary, "<think>", "</think>").unwrap()
    }

    /// The thought, the answer and the other pieces, of texts whose tokens have these roles.
    fn read(is_thinking: bool, told: &[(&str, TokenRole)]) -> (String, String, Vec<Piece>) {
        let format = format();
        let mut thoughts = SpelledThoughts::new(&format, is_thinking).unwrap();
        let mut pieces = Vec::new();
        for (text, role) in told {
            for id in format.encode(text).unwrap() {
                pieces.extend(thoughts.read(GeneratedToken { id, role: *role }));
            }
        }
        pieces.extend(thoughts.finish());
        let (mut thought, mut answer, mut others) = (String::new(), String::new(), Vec::new());
        for piece in pieces {
            match piece {
                Piece::Thought { text, .. } => thought.push_str(&text),
                Piece::Answer { text, .. } => answer.push_str(&text),
                other => others.push(other),
            }
        }
        (thought, answer, others)
    }

    #[test]
    fn tags_of_text_are_shown_neither_in_the_thought_nor_in_the_answer() {
        use TokenRole::{Blank, HandOff, Solution, Tag, Thought};
        let closed = |tokens| Piece::Tag { tokens: Tokens(tokens), edge: TagEdge::End };
        let begun = [("<think", Blank), (">", Tag), ("1+1", Thought)];
        let ended = [("</think", Thought), (">", Tag), ("2", Solution)];
        let blanks = u64::try_from(format().encode("<think").unwrap().len()).unwrap();
        let start = Piece::Tag { tokens: Tokens(blanks + 1), edge: TagEdge::Start };
        let expected = ("1+1".to_owned(), "2".to_owned(), vec![start, closed(1)]);
        assert_eq!(read(false, &[begun, ended].concat()), expected);
        // The prompt has begun the thought, and the budget ends it inside of the tag.
        let cut = [("1+1</th", Thought), ("2", HandOff), ("3", Solution)];
        let hand_off = vec![Piece::HandOff { tokens: Tokens(1) }];
        assert_eq!(read(true, &cut), ("1+1</th".to_owned(), "3".to_owned(), hand_off));
        // What only looked like a tag is the answer.
        let answer = [("<th", Blank), ("1", Solution)];
        assert_eq!(read(false, &answer), (String::new(), "<th1".to_owned(), Vec::new()));
    }
}
