//! One pass over a text, in which everything is counted that the estimates need.

use stint_types::units::mix64;

use super::calculation::CalculationCounts;
use super::grams::LEXEMES_MAX;
use super::lexeme::{LexemeVisitor, Lexer, NumberLexeme, WordLexeme};
use super::lexeme_counts::LexemeCounts;
use super::task_cues::TaskCues;

/// What one pass counts.
#[derive(Debug, Default)]
pub(super) struct TextTally {
    pub counts: LexemeCounts,
    pub calculation: CalculationCounts,
}

impl TextTally {
    /// Counts, and calls with the hashes of the first `LEXEMES_MAX` lexemes.
    pub(super) fn of(text: &str, lexeme: impl FnMut(u64)) -> TextTally {
        let mut pass = TallyVisitor { tally: TextTally::default(), left: LEXEMES_MAX, lexeme };
        let mut lexemes = Lexer::of(text);
        while lexemes.visit_next(&mut pass) {}
        pass.tally
    }

    /// What they hint at of the kind of work.
    pub(super) fn cues(&self) -> TaskCues {
        TaskCues::of(&self.counts, &self.calculation)
    }
}

/// The pass.
struct TallyVisitor<L> {
    tally: TextTally,
    left: usize,
    lexeme: L,
}

impl<L: FnMut(u64)> TallyVisitor<L> {
    #[inline(always)]
    fn emit_hash(&mut self, hash: u64) {
        if self.left > 0 {
            self.left -= 1;
            (self.lexeme)(hash);
        }
    }
}

impl<'t, L: FnMut(u64)> LexemeVisitor<'t> for TallyVisitor<L> {
    #[inline(always)]
    fn word(&mut self, word: &WordLexeme<'t>) {
        self.tally.counts.word(word);
        self.tally.calculation.word(word.bytes);
        self.emit_hash(word.hash);
    }

    #[inline(always)]
    fn number(&mut self, number: &NumberLexeme<'t>) {
        self.tally.counts.number(number.digits);
        self.tally.calculation.number(number.digits);
        self.emit_hash(number.hash);
    }

    #[inline(always)]
    fn sign(&mut self, sign: char) {
        self.tally.counts.sign(sign);
        self.tally.calculation.sign(sign);
        self.emit_hash(mix64(u64::from(sign)));
    }
}
