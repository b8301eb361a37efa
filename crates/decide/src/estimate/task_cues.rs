//! What words and signs hint at of the kind of work, for its classification.

use super::calculation::CalculationCounts;
use super::cue::Cue;
use super::formula::has_formula;
use super::lexeme_counts::LexemeCounts;

/// A language's name says as much as four signs of a program.
const LANGUAGE: usize = 4;
/// So much does what is made of programs.
const PROGRAMMING: usize = 2;
/// So many signs are a program.
const PROGRAM: usize = 4;
/// Prose has a semicolon for so many words, or fewer.
const PROSE: usize = 12;

/// What words and signs hint at.
#[derive(Debug)]
pub(super) struct TaskCues {
    numbers: usize,
    words: usize,
    operations: usize,
    /// Words of programs, and such as prose has too.
    code_words: usize,
    shared_words: usize,
    /// Braces, and the signs that programs have beside them.
    braces: usize,
    code_signs: usize,
    languages: usize,
    /// Names of tools that are words of English too.
    tools: usize,
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
            code_words: counts.cue(Cue::Code),
            shared_words: counts.cue(Cue::SharedCode),
            braces: counts.signs(b"{}"),
            code_signs: counts.signs(b";`"),
            languages: counts.cue(Cue::Language),
            tools: counts.cue(Cue::Tool),
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

    /// True if there are several numbers, of which an amount may be told.
    pub(super) fn has_amounts(&self) -> bool {
        self.numbers >= 2
    }

    /// True if this text is set like a formula: a formula's braces are no program's.
    pub(super) fn has_formulas(&self, text: &str) -> bool {
        let MarkupCounts { backslashes, dollars, backticks, .. } = self.markup;
        backslashes + dollars >= 2 && self.languages == 0 && backticks < 3 && has_formula(text)
    }

    /// True if a program stands in it, or is asked for.
    pub(super) fn programs(&self) -> bool {
        let named = PROGRAMMING * self.programs.min(1);
        let languages = LANGUAGE * self.languages + PROGRAMMING * self.tools;
        self.code() + languages + named >= PROGRAM || (self.makes && self.programs >= 1)
    }

    /// True if nothing says that it is about a program but a word for one.
    pub(super) fn is_only_named(&self) -> bool {
        self.code() == 0 && self.languages + self.tools == 0 && self.programs <= 1
    }

    /// True if words say that something is to be found in a text, and nothing but signs says that a program stands there: data has
    /// the same signs.
    pub(super) fn extracts_from_data(&self) -> bool {
        self.extracts && self.code_words + self.languages + self.programs == 0
    }

    /// How much of a program stands in it, in signs; a word counts as two. Braces alone are data's, prose has a semicolon now and then,
    /// and words of English count beside what English has not.
    fn code(&self) -> usize {
        let signs = if self.code_signs + self.code_words >= self.words / PROSE { self.code_signs } else { 0 };
        let is_program = signs + self.code_words + self.programs > 0;
        let braces = if is_program { self.braces } else { 0 };
        let shared = if is_program { self.shared_words } else { 0 };
        2 * (self.code_words + shared) + signs + braces
    }
}
