//! What words and signs hint at of the kind of work. The tally counts them, the classification reads them.

use super::cue::Cue;
use super::lexeme::WordLexeme;

/// What words and signs hint at.
#[derive(Debug, Default)]
pub(super) struct TaskCues {
    numbers: u32,
    signs: u32,
    /// A word of a program counts as two of its signs.
    pub(super) code: u32,
    asks: bool,
    pub(super) extracts: bool,
    pub(super) proves: bool,
}

impl TaskCues {
    #[inline]
    pub(super) fn word(&mut self, word: &WordLexeme<'_>) {
        match word.hints.cue {
            Some(Cue::Code) => self.code += 2,
            Some(Cue::Extract) => self.extracts = true,
            Some(Cue::Proof) => self.proves = true,
            Some(Cue::Amount | Cue::Compare) => self.asks = true,
            Some(Cue::Rate) | None => {}
        }
    }

    #[inline]
    pub(super) fn number(&mut self) {
        self.numbers += 1;
    }

    #[inline]
    pub(super) fn sign(&mut self, sign: char) {
        match sign {
            '+' | '*' | '=' | '/' | '×' | '÷' | '^' | '<' | '>' => self.signs += 1,
            '{' | '}' | ';' | '`' => self.code += 1,
            '-' | '−' => self.signs += u32::from(self.numbers > 0),
            _ => {}
        }
    }

    /// True if numbers are to be calculated with.
    pub(super) fn calculates(&self) -> bool {
        self.numbers >= 1 && (self.signs >= 1 || (self.asks && self.numbers >= 2))
    }
}
