//! What one pass over the lexemes of a text counts. The estimates read their own numbers off these when the pass is over, so
//! that a lexeme costs the pass a few additions and hardly a branch.

use super::cue::{Cue, QuestionStyle};
use super::lexeme::WordLexeme;

/// How many signs of ASCII there are.
const ASCII: usize = 128;

/// Words, numbers and signs, by what they are.
#[derive(Debug)]
pub(super) struct LexemeCounts {
    /// Bytes of words.
    pub letters: usize,
    /// Words that begin with one of ASCII's capitals.
    pub capitals: usize,
    /// Letters of scripts that write no blanks between words.
    pub unspaced: usize,
    pub numbers: usize,
    pub digits: usize,
    /// Signs beyond ASCII: quotes, and others.
    pub foreign_quotes: usize,
    pub foreign: usize,
    /// Words by their cue; the last, without any.
    cues: [u32; Cue::COUNT + 1],
    /// Words by their style; the last, without any.
    styles: [u32; QuestionStyle::COUNT + 1],
    /// Signs by their byte.
    signs: [u32; ASCII],
}

impl Default for LexemeCounts {
    fn default() -> LexemeCounts {
        LexemeCounts {
            letters: 0,
            capitals: 0,
            unspaced: 0,
            numbers: 0,
            digits: 0,
            foreign_quotes: 0,
            foreign: 0,
            cues: [0; Cue::COUNT + 1],
            styles: [0; QuestionStyle::COUNT + 1],
            signs: [0; ASCII],
        }
    }
}

impl LexemeCounts {
    #[inline(always)]
    pub(super) fn word(&mut self, word: &WordLexeme<'_>) {
        self.letters += word.bytes.len();
        self.capitals += usize::from(word.bytes[0].is_ascii_uppercase());
        if !word.bytes[0].is_ascii() {
            self.unspaced += usize::from(is_unspaced_letter(word.bytes));
        }
        self.cues[word.hints.cue.map_or(Cue::COUNT, |cue| cue as usize)] += 1;
        self.styles[word.hints.style.map_or(QuestionStyle::COUNT, |style| style as usize)] += 1;
    }

    #[inline(always)]
    pub(super) fn number(&mut self, digits: &[u8]) {
        self.numbers += 1;
        self.digits += digits.len();
    }

    #[inline(always)]
    pub(super) fn sign(&mut self, sign: char) {
        match self.signs.get_mut(sign as usize) {
            Some(count) => *count += 1,
            None if matches!(sign, '“' | '”' | '’') => self.foreign_quotes += 1,
            None => self.foreign += 1,
        }
    }

    /// How many words there are.
    pub(super) fn words(&self) -> usize {
        self.cues.iter().map(|&count| count as usize).sum()
    }

    /// How many words have this cue.
    pub(super) fn cue(&self, cue: Cue) -> usize {
        self.cues[cue as usize] as usize
    }

    /// How many words have this style.
    pub(super) fn style(&self, style: QuestionStyle) -> usize {
        self.styles[style as usize] as usize
    }

    /// How often these signs of ASCII occur together.
    pub(super) fn signs(&self, signs: &[u8]) -> usize {
        signs.iter().filter_map(|&sign| self.signs.get(usize::from(sign))).map(|&count| count as usize).sum()
    }
}

/// Such a letter is a word of its own, of three or four bytes.
fn is_unspaced_letter(word: &[u8]) -> bool {
    matches!(word, [0xe0..=0xff, _, _] | [0xe0..=0xff, _, _, _])
}
