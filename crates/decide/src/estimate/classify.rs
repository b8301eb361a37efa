//! What kind of work a request is, by simple rules.

use stint_types::catalog::TaskClass;

use super::text::TextAnalysis;

/// The class of a request, by the first rule that holds.
pub(super) fn class_of(has_tools: bool, reading: &TextAnalysis<'_>) -> TaskClass {
    let cues = &reading.tally.cues;
    if has_tools {
        TaskClass::Agentic
    } else if reading.options.len() >= 3 {
        TaskClass::MultipleChoice
    } else if cues.code >= 4 {
        TaskClass::Code
    } else if cues.extracts {
        TaskClass::Extraction
    } else if cues.proves || cues.calculates() {
        TaskClass::Math
    } else {
        TaskClass::Chat
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::text::QuestionText;

    fn check(text: &str, expected: TaskClass) {
        assert_eq!(class_of(false, &TextAnalysis::of(&QuestionText::question(text))), expected, "{text}");
    }

    #[test]
    fn numbers_with_operators_or_questions_of_amount_are_mathematics() {
        check("What is 34*27?", TaskClass::Math);
        check("12 - 5", TaskClass::Math);
        check("Anna has 3 pens and buys 4 more. How many are there?", TaskClass::Math);
        check("Which is larger, 41 or 14?", TaskClass::Math);
        check("Prove that there is no largest prime.", TaskClass::Math);
    }

    #[test]
    fn programs_are_told_by_their_words_and_signs() {
        check("Why does `fn main() { return 1; }` not compile?", TaskClass::Code);
        check("def add(a, b): return a + b", TaskClass::Code);
    }

    #[test]
    fn three_lettered_lines_are_a_choice() {
        check("Which gas?\nA) helium\nB) neon\nC) argon", TaskClass::MultipleChoice);
        check("Which gas?\n(A) 1 + 1\n(B) 2\n(C) 3", TaskClass::MultipleChoice);
    }

    #[test]
    fn finding_and_talking_are_told_apart() {
        check("Extract all names from this letter: Dear Ben, …", TaskClass::Extraction);
        check("Hello, who are you?", TaskClass::Chat);
        check("Tell me about 1984.", TaskClass::Chat);
    }
}
