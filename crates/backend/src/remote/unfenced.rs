//! Takes the Markdown fence off an answer that was to be JSON alone. Some models put one around it whatever they are told.
//!
//! Only a fence at the very beginning is taken off, and with it the one at the very end. Whatever else is written stays.

use std::collections::VecDeque;

use crate::{Failure, Piece};
use stint_types::units::Tokens;

use super::EventReader;

/// What opens and closes a fence.
const FENCE: &str = "```";
/// What may stand behind the mark that opens one, in small letters.
const LANGUAGES: [&str; 3] = ["json", "jsonc", ""];

/// A fence stands behind, and its end between, so much blank at most, in bytes: some models write blank until a limit ends them.
const BLANK_MAX: usize = 256;

/// A reader of answers without their fence.
#[derive(Debug)]
pub(super) struct UnfencedReader<R> {
    reader: R,
    state: FenceState,
    /// What has come and may be a fence's.
    kept: String,
    kept_tokens: Tokens,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FenceState {
    /// Nothing has come that tells.
    Unknown,
    /// There is none.
    Bare,
    /// One was opened, and nothing has come behind it yet.
    Opened,
    /// One was opened, and the answer has begun.
    Fenced,
}

impl<R> UnfencedReader<R> {
    pub(super) fn new(reader: R) -> UnfencedReader<R> {
        UnfencedReader { reader, state: FenceState::Unknown, kept: String::new(), kept_tokens: Tokens::ZERO }
    }

    fn pass(&mut self, read: VecDeque<Piece>, pieces: &mut VecDeque<Piece>) {
        for piece in read {
            match piece {
                Piece::Answer { text, tokens } if self.state != FenceState::Bare => {
                    self.kept.push_str(&text);
                    self.kept_tokens += tokens;
                    self.release(pieces);
                }
                Piece::End(_) | Piece::ToolCall(_) => {
                    self.end(pieces);
                    pieces.push_back(piece);
                }
                other => pieces.push_back(other),
            }
        }
    }

    /// Passes on what cannot be a fence's any more.
    fn release(&mut self, pieces: &mut VecDeque<Piece>) {
        if self.state == FenceState::Unknown {
            match opening(&self.kept) {
                Opening::Unclear => return,
                Opening::None => self.state = FenceState::Bare,
                Opening::Fence(end) => {
                    self.kept.drain(..end);
                    self.state = FenceState::Opened;
                }
            }
        }
        if self.state == FenceState::Opened {
            self.kept = self.kept.trim_start().to_owned();
            if !self.kept.is_empty() {
                self.state = FenceState::Fenced;
            }
        }
        let until = if self.state == FenceState::Bare { self.kept.len() } else { closing_at(&self.kept) };
        let rest = self.kept.split_off(until);
        self.send(pieces);
        self.kept = rest;
    }

    /// The end is there: what is kept is the fence's end, or the answer's.
    fn end(&mut self, pieces: &mut VecDeque<Piece>) {
        if matches!(self.state, FenceState::Opened | FenceState::Fenced) && self.kept.trim() == FENCE {
            self.kept.clear();
        }
        self.state = FenceState::Bare;
        self.send(pieces);
    }

    fn send(&mut self, pieces: &mut VecDeque<Piece>) {
        let (text, tokens) = (std::mem::take(&mut self.kept), std::mem::take(&mut self.kept_tokens));
        if !text.is_empty() || tokens > Tokens::ZERO {
            pieces.push_back(Piece::Answer { text, tokens });
        }
    }
}

impl<R: EventReader> EventReader for UnfencedReader<R> {
    fn read(&mut self, data: &[u8], pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        let mut read = VecDeque::new();
        let result = self.reader.read(data, &mut read);
        self.pass(read, pieces);
        result
    }

    fn close(&mut self, pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        let mut read = VecDeque::new();
        let result = self.reader.close(&mut read);
        self.pass(read, pieces);
        self.end(pieces);
        result
    }

    fn is_complete(&self) -> bool {
        self.reader.is_complete()
    }
}

/// How a text begins.
enum Opening {
    /// More of it must come.
    Unclear,
    None,
    /// With a fence of so many bytes.
    Fence(usize),
}

fn opening(text: &str) -> Opening {
    let trimmed = text.trim_start();
    if text.len() - trimmed.len() > BLANK_MAX {
        return Opening::None;
    }
    let Some(after) = trimmed.strip_prefix(FENCE) else {
        return if FENCE.starts_with(trimmed) { Opening::Unclear } else { Opening::None };
    };
    match after.split_once(char::is_whitespace) {
        Some((language, _)) if LANGUAGES.contains(&language.to_ascii_lowercase().as_str()) => {
            Opening::Fence(text.len() - after.len() + language.len())
        }
        Some(_) => Opening::None,
        None if LANGUAGES[1].starts_with(after.to_ascii_lowercase().as_str()) => Opening::Unclear,
        None => Opening::None,
    }
}

/// Where the end of a text begins that may be a closing fence: a line's end, up to three marks, and blanks.
fn closing_at(text: &str) -> usize {
    let marks = text.trim_end();
    let before = marks.trim_end_matches('`');
    let has_marks = before.len() < marks.len();
    let is_fence = (1..=FENCE.len()).contains(&(marks.len() - before.len()));
    if has_marks && (!is_fence || text.len() - marks.len() > BLANK_MAX) {
        return text.len();
    }
    // Without marks all blank at the end may stand before them.
    let until = if has_marks { before.len() } else { text.len() };
    let most = text.ceil_char_boundary(until.saturating_sub(BLANK_MAX));
    before.trim_end().len().max(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GenerationEnd;

    /// Reads each event as more of the answer.
    #[derive(Debug)]
    struct Texts;

    impl EventReader for Texts {
        fn read(&mut self, data: &[u8], pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
            let text = String::from_utf8(data.to_vec()).unwrap();
            pieces.push_back(Piece::Answer { text, tokens: Tokens(1) });
            Ok(())
        }

        fn close(&mut self, pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
            pieces.push_back(Piece::End(GenerationEnd::Limit));
            Ok(())
        }

        fn is_complete(&self) -> bool {
            false
        }
    }

    /// However a text is cut, what is shown of it is the same, and so is what is counted.
    fn check(text: &str, expected: &str) {
        for size in [1, 2, 3, 5, 100] {
            let mut reader = UnfencedReader::new(Texts);
            let mut pieces = VecDeque::new();
            let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            chunks.iter().for_each(|chunk| reader.read(chunk, &mut pieces).unwrap());
            reader.close(&mut pieces).unwrap();
            let (mut shown, mut counted) = (String::new(), 0);
            for piece in &pieces {
                if let Piece::Answer { text, tokens } = piece {
                    shown.push_str(text);
                    counted += tokens.0;
                }
            }
            assert_eq!((shown.as_str(), counted), (expected, chunks.len() as u64), "{text:?} by {size}");
            assert!(matches!(pieces.back(), Some(Piece::End(_))));
        }
    }

    #[test]
    fn a_fence_around_the_whole_is_taken_off() {
        check("```json\n{\"a\": 1}\n```", "{\"a\": 1}");
        check("\n```JSON \n{\"a\": \"`\"}\n\n```\n", "{\"a\": \"`\"}");
        check("```\n[1]\n```", "[1]");
        check("```json {} ```", "{}");
        check("```json\n{\"a\"", "{\"a\"");
    }

    #[test]
    fn whatever_else_is_written_stays() {
        check("{\"a\": \"```json\"}", "{\"a\": \"```json\"}");
        check("Here: ```json\n{}\n```", "Here: ```json\n{}\n```");
        check("```python\nprint()\n```", "```python\nprint()\n```");
        check("```json\n{}\n```\nThat is all.", "{}\n```\nThat is all.");
        check("``", "``");
        check("", "");
    }

    #[test]
    fn blank_without_end_is_not_held_back() {
        let (many, most) = (" ".repeat(BLANK_MAX + 1), " ".repeat(BLANK_MAX));
        check(&format!("```json\n{{}}{most}```{most}"), "{}");
        check(&format!("```json\n{{}}{many}```"), "{} ");
        for fenced in [format!("{many}```json\n{{}}\n```"), format!("{{}}\n```{many}x")] {
            check(&fenced, &fenced);
        }
        let mut reader = UnfencedReader::new(Texts);
        let mut pieces = VecDeque::new();
        reader.read(format!("{{}}{many}").as_bytes(), &mut pieces).unwrap();
        assert!(matches!(&pieces[0], Piece::Answer { text, .. } if text.len() == 2 + many.len()));
        let (mut reader, mut pieces) = (UnfencedReader::new(Texts), VecDeque::new());
        reader.read(format!("```json\n{{}}{many}").as_bytes(), &mut pieces).unwrap();
        assert!(matches!(&pieces[0], Piece::Answer { text, .. } if text == "{} "), "{pieces:?}");
    }
}
