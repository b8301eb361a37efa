//! Problems of contests that ask for a proof, or for all things of a kind: of those the data that lengths are fitted on has none, since
//! only answers that are numbers are marked by machine.

use stint_types::catalog::TaskClass;

use super::phrase_list::{FoundPhrase, PhraseList};
use super::text::TextAnalysis;

/// The least usual thought about one, as a logarithm of tokens: that of problems of AIME, which are no harder. A judgement.
pub(super) const CONTEST_THOUGHT: f64 = 8.3;

/// A contest's problem has at least so many bytes, one that asks for a proof so many, or else it is an exercise,
const LEAST_BYTES: usize = 60;
const PROOF_BYTES: usize = 100;
/// and at most so many.
const MOST_BYTES: usize = 4_000;
/// What only exercises name.
const EXERCISED: &str = "induction";

/// How such a problem asks at the beginning of a sentence, in Chinese anywhere.
static DEMANDS: PhraseList = PhraseList::of(&[
    &["prove that", "prove there"],
    &["show that"],
    &["determine all", "find all", "characterize all"],
    &["证明", "求所有"],
]);

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

/// What it is about. The second are words of talk too, so that something else has to tell that it is mathematics.
static OBJECTS: PhraseList = PhraseList::of(&[
    &[
        "integer",
        "real number",
        "rational",
        "polynomial",
        "primes",
        "prime number",
        "prime p",
        "inequality",
        "→",
        "整数",
        "实数",
        "函数",
    ],
    &["function", "sequence", "triangle", "circle"],
]);

/// True if a text is a mathematical problem whose claim holds for all of something, and is to be proved or found.
pub(super) fn is_contest_proof(reading: &TextAnalysis<'_>, class: TaskClass) -> bool {
    let text = reading.question;
    let is_sized = (LEAST_BYTES..=MOST_BYTES).contains(&text.len());
    let is_math = class == TaskClass::Math;
    let may_be = (is_math || class == TaskClass::Chat) && reading.options.is_empty();
    let is_general = || QUANTIFIERS.iter().any(|words| text.contains(words));
    is_sized && may_be && is_general() && !text.contains(EXERCISED) && {
        let lower = text.to_ascii_lowercase();
        DEMANDS.find(&lower, |found| is_demanded(found, lower.len())).is_some()
            && OBJECTS.find(&lower, |found| found.group == 0 || is_math).is_some()
    }
}

/// Whether a text of so many bytes asks for what was found: "If n is odd, prove that …", but not "… explain how that …".
fn is_demanded(found: &FoundPhrase<'_>, bytes: usize) -> bool {
    match found.group {
        0 => bytes >= PROOF_BYTES && found.begins_clause(),
        1 => bytes >= PROOF_BYTES && found.begins_sentence(),
        2 => found.begins_sentence(),
        _ => true,
    }
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
            "If a, b and c are positive integers that share no prime, prove that there exist infinitely many n with n | a^n + b^n + c.",
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
            "Please find all operational risks of our new warehouse, and for each one suggest how it could be made smaller.",
            "Our marketing function is being reorganised. Can you explain how that affects budgets for all departments?",
            "Find all the good restaurants near the station; for each of them say whether it has function rooms, and how large.",
            "Show that for every positive integer n, 1 + 2 + … + n = n(n+1)/2.",
            "Prove by induction. Show that for every positive integer n the sum of the first n cubes is the square of n(n+1)/2.",
            "Find all real solutions of x^2 - 5x + 6 = 0, and say how you found them, in a sentence or two.",
        ] {
            assert!(!check(other), "{other}");
        }
    }
}
