//! Whether a request is of the kind that a model was fitted on.

use stint_types::catalog::{TaskClass, TrainingDomain};

use super::lexeme::{LexemeVisitor, Lexer, WordLexeme};
use super::text::TextAnalysis;

/// How many words are looked up. They suffice to recognise the domain of a longer question.
const WORDS_MAX: f64 = 100.0;

/// How familiar a request is to a model, 0 to 1, by which its chances are multiplied: the cube of the share
/// of known words, and nothing at all for another class of work. The cube is an assumption, not a fit (the
/// traces have no unknown words): one strange word in ten costs a quarter, half of them nearly everything.
pub(super) fn familiarity(domain: &TrainingDomain, class: TaskClass, reading: &TextAnalysis<'_>) -> f64 {
    if !domain.tasks.is_empty() && !domain.tasks.contains(&class) {
        return 0.0;
    }
    if domain.words.is_empty() {
        return 1.0;
    }
    let (mut lexemes, mut words) =
        (Lexer::of(reading.text), FamiliarityCounter { domain, known: 0.0, all: 0.0 });
    while words.all < WORDS_MAX && lexemes.visit_next(&mut words) {}
    if words.all > 0.0 { f64::powi(words.known / words.all, 3) } else { 1.0 }
}

/// Words, and how many of them a model knows.
struct FamiliarityCounter<'d> {
    domain: &'d TrainingDomain,
    known: f64,
    all: f64,
}

impl<'t> LexemeVisitor<'t> for FamiliarityCounter<'_> {
    fn word(&mut self, word: &WordLexeme<'t>) {
        self.known += if knows(self.domain, word.bytes) { 1.0 } else { 0.0 };
        self.all += 1.0;
    }
}

/// Looks a word up without allocating. What is longer than a sentence's words is no word.
fn knows(domain: &TrainingDomain, word: &[u8]) -> bool {
    let mut lower = [0; 64];
    let Some(lower) = lower.get_mut(..word.len()) else { return false };
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    std::str::from_utf8(lower).is_ok_and(|word| domain.words.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::text::QuestionText;

    fn check(text: &str, class: TaskClass, expected: f64) {
        let domain = TrainingDomain {
            tasks: [TaskClass::Math].into(),
            words: ["what", "is"].into_iter().map(String::from).collect(),
        };
        let familiar = familiarity(&domain, class, &TextAnalysis::of(&QuestionText::question(text)));
        assert!((familiar - expected).abs() < 1e-12, "{text}: {familiar}");
    }

    #[test]
    fn strange_words_and_other_work_are_unfamiliar() {
        check("What is 3+4?", TaskClass::Math, 1.0);
        check("3+4", TaskClass::Math, 1.0);
        check("What is love, 3?", TaskClass::Math, f64::powi(2.0 / 3.0, 3));
        check("What is?", TaskClass::Chat, 0.0);
    }
}
