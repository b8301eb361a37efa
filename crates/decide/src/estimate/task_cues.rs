//! What words and signs hint at of the kind of work, for its classification.

use super::calculation::CalculationCounts;
use super::cue::Cue;
use super::lexeme_counts::LexemeCounts;

/// A language's name says as much as four signs of a program.
const LANGUAGE: usize = 4;
/// So much does what is made of programs.
const PROGRAMMING: usize = 2;

/// What words and signs hint at.
#[derive(Debug)]
pub(super) struct TaskCues {
    numbers: usize,
    words: usize,
    operations: usize,
    /// A word of a program counts as two of its signs.
    code: usize,
    languages: usize,
    programs: usize,
    makes: bool,
    asks: bool,
    pub(super) extracts: bool,
    pub(super) proves: bool,
    pub(super) markup: MarkupCounts,
}

/// Signs that set formulas and programs apart from prose.
#[derive(Debug)]
pub(super) struct MarkupCounts {
    /// Before the names of a formula's commands.
    pub(super) backslashes: usize,
    /// Around a formula, or before an amount.
    pub(super) dollars: usize,
    pub(super) backticks: usize,
    /// Braces, semicolons and signs of equality.
    pub(super) code: usize,
    /// Signs of powers and indices.
    pub(super) scripts: usize,
    /// Letters of scripts without blanks between words.
    pub(super) unspaced: usize,
}

impl MarkupCounts {
    pub(super) fn of(counts: &LexemeCounts) -> MarkupCounts {
        MarkupCounts {
            backslashes: counts.signs(b"\\"),
            dollars: counts.signs(b"$"),
            backticks: counts.signs(b"`"),
            code: counts.signs(b"={};"),
            scripts: counts.signs(b"^_"),
            unspaced: counts.unspaced,
        }
    }
}

impl TaskCues {
    pub(super) fn of(counts: &LexemeCounts, calculation: &CalculationCounts) -> TaskCues {
        let has = |cue| counts.cue(cue) > 0;
        TaskCues {
            numbers: counts.numbers,
            words: counts.words(),
            operations: calculation.operations,
            code: 2 * counts.cue(Cue::Code) + counts.signs(b"{};`"),
            languages: counts.cue(Cue::Language),
            programs: counts.cue(Cue::Programming),
            makes: has(Cue::Make),
            asks: has(Cue::Amount) || has(Cue::Compare),
            extracts: has(Cue::Extract),
            proves: has(Cue::Proof),
            markup: MarkupCounts::of(counts),
        }
    }

    /// True if numbers are to be calculated with: in a long text more than a date and a range of pages are.
    pub(super) fn calculates(&self) -> bool {
        let operates = self.operations >= 1 && self.operations >= self.words / 30;
        self.numbers >= 1 && (operates || (self.asks && self.numbers >= 2))
    }

    /// True if it is set like a formula: a formula's braces are no program's.
    pub(super) fn has_formulas(&self) -> bool {
        self.markup.backslashes + self.markup.dollars >= 2 && self.languages == 0 && self.markup.backticks < 3
    }

    /// True if a program stands in it, or is asked for.
    pub(super) fn programs(&self) -> bool {
        let named = PROGRAMMING * self.programs.min(1);
        self.code + LANGUAGE * self.languages + named >= 4 || (self.makes && self.programs >= 1)
    }
}
