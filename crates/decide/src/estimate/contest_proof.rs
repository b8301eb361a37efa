//! Problems of contests that ask for a proof, or for all things of a kind: of those the data that lengths are fitted on has none, since
//! only answers that are numbers are marked by machine.

use stint_types::catalog::TaskClass;

use super::text::TextAnalysis;

/// The least usual thought about one, as a logarithm of tokens: that of problems of AIME, which are no harder. A judgement.
pub(super) const CONTEST_THOUGHT: f64 = 8.3;

/// A contest's problem has at least so many bytes,
const LEAST_BYTES: usize = 60;
/// and at most so many.
const MOST_BYTES: usize = 4_000;

/// How such a problem asks. Beginnings are left out, so that sentences may begin there.
const DEMANDS: [&str; 8] =
    ["rove that", "rove there", "how that", "etermine all", "ind all", "haracterize all", "证明", "求所有"];

/// What its claim holds of.
const QUANTIFIERS: [&str; 11] = [
    "or all ",
    "or every ",
    "or each ",
    "or any ",
    "or infinitely",
    "here exist",
    "here is a constant",
    "t most one",
    "任意",
    "每个",
    "一切",
];

/// What it is about.
const OBJECTS: [&str; 16] = [
    "integer",
    "real number",
    "rational",
    "function",
    "polynomial",
    "primes",
    "prime number",
    "prime p",
    "sequence",
    "triangle",
    "circle",
    "inequality",
    "→",
    "整数",
    "实数",
    "函数",
];

/// True if a text is a mathematical problem whose claim holds for all of something, and is to be proved or found.
pub(super) fn is_contest_proof(reading: &TextAnalysis<'_>, class: TaskClass) -> bool {
    let text = reading.question;
    let is_sized = (LEAST_BYTES..=MOST_BYTES).contains(&text.len());
    let may_be = matches!(class, TaskClass::Math | TaskClass::Chat) && reading.options.is_empty();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    is_sized && may_be && has(&DEMANDS) && has(&QUANTIFIERS) && has(&OBJECTS)
}

#[cfg(test)]
mod tests {
    use super::super::classify;
    use super::super::text::QuestionText;
    use super::*;

    fn check(text: &str) -> bool {
        let question = QuestionText::question(text);
        let reading = TextAnalysis::of(&question);
        is_contest_proof(&reading, classify::class_of(&reading))
    }

    #[test]
    fn problems_of_contests_are_known_by_what_they_ask_and_of_what_it_holds() {
        for problem in [
            "Let k be a positive integer. Prove that there exist infinitely many primes p for which k is no square modulo p.",
            "Determine all pairs (a, b) of positive integers such that a^n + b divides b^n + a for all n ≥ 2.",
            "Find all functions f: ℝ → ℝ with f(x f(y)) + f(x) = f(y) + f(x + y) for all real numbers x and y.",
            "Show that there is a constant c > 0 such that every sequence of n real numbers has a sum of at least c.",
            "设 n 为正整数。证明：对任意整数 a，存在整数 b，使得 a 的 n 次方减去 b 的 n 次方能被 7 整除，且 b 不等于 a。",
        ] {
            assert!(check(problem), "{problem}");
        }
    }

    #[test]
    fn simple_proofs_programs_and_talk_are_none() {
        for other in [
            "Prove that the square root of two is irrational, in a few lines, with integers.",
            "Find all users in the table for each country and write the function in Python:\n```python\ndef f(): pass\n```",
            "Please show that you care for all of your customers, and find all the words that a prime minister would use.",
            "Find all real solutions of x^2 - 5x + 6 = 0, and say how you found them, in a sentence or two.",
        ] {
            assert!(!check(other), "{other}");
        }
    }
}
