//! Problems of contests that ask for a proof, or for all things of a kind: of those the data that lengths are fitted on has none, since
//! only answers that are numbers are marked by machine.

use super::number_kinds::{KINDS_ELSEWHERE, is_kind};
use super::phrase_list::{FoundPhrase, PhraseList};
use super::text::TextAnalysis;

/// The least usual thought about one, as a logarithm of tokens: that of problems of AIME, which are no harder. A judgement.
const CONTEST_THOUGHT: f64 = 8.3;
/// The same of what only olympiads ask: some three times as long. Small models that get nine of ten of AIME right get few of those
/// right. A judgement too.
const OLYMPIAD_THOUGHT: f64 = 9.3;
/// A proof whose claim takes so many bytes is one of those.
const OLYMPIAD_BYTES: usize = 180;

/// A contest's problem has at least so many bytes, one that asks for a proof so many, or else it is an exercise,
const LEAST_BYTES: usize = 60;
const PROOF_BYTES: usize = 100;
/// and at most so many. Inequalities with so many powers need fewer.
const MOST_BYTES: usize = 4_000;
const POWERS: usize = 3;
/// What only exercises name.
const EXERCISED: &str = "induction";

/// How such a problem asks at the beginning of a sentence; in scripts without capitals anywhere.
static DEMANDS: PhraseList = PhraseList::of(&[
    &["prove that", "prove there"],
    &["show that"],
    &["determine all", "find all", "characterize all"],
    &[
        "证明",
        "求所有",
        "証明せよ",
        "すべて求めよ",
        "全て求めよ",
        "증명하시오",
        "모두 구하",
        "أوجد جميع",
        "أثبت أن",
        "सिद्ध क",
        "ज्ञात क",
    ],
    PROOFS_ELSEWHERE,
    SEARCHES_ELSEWHERE,
    &[
        "determine the minimum",
        "determine the maximum",
        "determine the smallest",
        "determine the largest",
        "determine the least",
        "determine the greatest",
        "for which positive integers",
    ],
    &["find the number of", "determine the number of"],
]);
/// The same in languages with capitals: that something is to be proved,
const PROOFS_ELSEWHERE: &[&str] = &[
    "beweise, dass",
    "beweisen sie, dass",
    "man beweise, dass",
    "zeige, dass",
    "man zeige, dass",
    "démontrer que",
    "démontrez que",
    "montrer que",
    "montrez que",
    "prouver que",
    "demuestra que",
    "demuestre que",
    "demostrar que",
    "demonstre que",
    "dimostrare che",
    "докажите, что",
    "Докажите, что",
];
/// or all of a kind are to be found.
const SEARCHES_ELSEWHERE: &[&str] = &[
    "bestimme alle",
    "bestimmen sie alle",
    "man bestimme alle",
    "finde alle",
    "trouver tous",
    "trouver toutes",
    "trouvez tous",
    "déterminer tous",
    "déterminer toutes",
    "déterminez tous",
    "hallar todos",
    "hallar todas",
    "encuentra todos",
    "encuentre todos",
    "determina todos",
    "determinar todos",
    "determine todos",
    "encontre todos",
    "determinare tutti",
    "determinare tutte",
    "trovare tutti",
    "найдите все",
    "Найдите все",
    "определите все",
    "Определите все",
];

/// What its claim holds of, as it stands in a text; what is found in twos and threes, and functions, are so without a word.
static QUANTIFIERS: PhraseList = PhraseList::of(&[
    &[
        "for all ",
        "For all ",
        "for every ",
        "For every ",
        "for each ",
        "For each ",
        "for any ",
        "For any ",
        "for infinitely",
        "For infinitely",
        "there exist",
        "There exist",
        "there is a constant",
        "There is a constant",
        "at most one",
        "At most one",
        "winning strategy",
        "has a strategy",
        "which positive integers",
        "such that each ",
        "sides of a triangle",
        "lie on a circle",
        "concyclic",
        "collinear",
        "concurrent",
        "circumcircle",
        "all triples",
        "all quadruples",
        "all functions",
        "all pairs of positive integers",
        "任意",
        "每个",
        "一切",
    ],
    LETS,
]);
/// The same of a kind that is named before.
const LETS: &[&str] = &[
    "be positive integers",
    "be positive real",
    "be a positive integer",
    "be an odd prime",
    "be real numbers",
    "be nonnegative",
    "be non-negative",
];
/// What only olympiads claim.
const OLYMPIADS: [&str; 4] = ["nfinitely many", "here is a constant", "t most one", "eventually"];
/// The groups of [`DEMANDS`] that ask for all that there are,
const SEARCHES: [usize; 2] = [2, 5];
/// and the one that asks how many there are, as AIME does too.
const HOW_MANY: usize = 7;
/// The same in languages that write more than ASCII.
static QUANTIFIERS_ELSEWHERE: PhraseList = PhraseList::of(&[&[
    "für alle",
    "für jede",
    "Für alle",
    "Für jede",
    "gibt es unendlich",
    "pour tout",
    "Pour tout",
    "para todo",
    "para toda",
    "Para todo",
    "para cada",
    "per ogni",
    "для всех",
    "для любо",
    "для кажд",
    "Для кажд",
    "существу",
    "すべての",
    "全ての",
    "모든 ",
    "임의의",
    "لكل ",
    "प्रत्येक",
]]);

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
        "odd prime",
        "inequality",
        "→",
        "winning strategy",
        "has a strategy",
        "unit squares",
        "整数",
        "实数",
        "函数",
    ],
    &["function", "sequence", "triangle", "circle", "points in the plane"],
    KINDS_ELSEWHERE,
]);

/// True if a text is a mathematical problem whose claim holds for all of something, and is to be proved or found. Of a text that nothing
/// else tells to be mathematics it must speak of numbers and the like.
pub(super) fn is_contest_proof(reading: &TextAnalysis<'_>, is_math: bool) -> bool {
    demand_of(reading, is_math).is_some()
}

/// The least usual thought about a text of mathematics, as a logarithm of tokens, where it is such a problem.
pub(super) fn contest_thought(reading: &TextAnalysis<'_>) -> Option<f64> {
    let demand = demand_of(reading, true)?;
    let text = reading.question;
    let is_short = !SEARCHES.contains(&demand) && text.len() < OLYMPIAD_BYTES;
    let is_exercise = demand == HOW_MANY || is_short && !OLYMPIADS.iter().any(|words| text.contains(words));
    Some(if is_exercise { CONTEST_THOUGHT } else { OLYMPIAD_THOUGHT })
}

/// How such a problem asks, by the group of [`DEMANDS`].
fn demand_of(reading: &TextAnalysis<'_>, is_math: bool) -> Option<usize> {
    let text = reading.question;
    let is_sized = (LEAST_BYTES..=MOST_BYTES).contains(&text.len());
    if !is_sized || !reading.options.is_empty() || !is_general(text) || text.contains(EXERCISED) {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let least = if is_inequality(text) { LEAST_BYTES } else { PROOF_BYTES };
    let is_long = lower.len() >= least;
    let demand = DEMANDS.find(&lower, |found| is_demanded(found, is_long, text))?.group;
    OBJECTS.find(&lower, |found| is_object(found, is_math)).map(|_| demand)
}

fn is_inequality(text: &str) -> bool {
    text.contains(['≥', '≤']) && text.matches('^').count() >= POWERS
}

/// Whether what was found is something of mathematics: a word of talk too only where something else tells that it is.
fn is_object(found: &FoundPhrase<'_>, is_math: bool) -> bool {
    match found.group {
        0 => true,
        1 => is_math,
        _ => is_kind(found),
    }
}

fn is_general(text: &str) -> bool {
    let elsewhere = || !text.is_ascii() && QUANTIFIERS_ELSEWHERE.find(text, |_| true).is_some();
    QUANTIFIERS.find(text, |_| true).is_some() || elsewhere()
}

/// Whether a text asks for what was found, which may be too short for a proof: "If n is odd, prove that …", but not "… explain how
/// that …".
fn is_demanded(found: &FoundPhrase<'_>, is_long: bool, text: &str) -> bool {
    match found.group {
        0 | 4 => is_long && found.begins_clause(),
        1 => is_long && found.begins_sentence(),
        2 | 5 | 6 => found.begins_sentence(),
        HOW_MANY => found.begins_sentence() && LETS.iter().any(|words| text.contains(words)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use stint_types::catalog::TaskClass;

    use super::super::classify;
    use super::super::text::QuestionText;
    use super::*;

    #[test]
    fn what_is_counted_and_short_exercises_take_no_thought_of_olympiads() {
        let is_olympiad = |text: &str| {
            let question = QuestionText::question(text);
            contest_thought(&TextAnalysis::of(&question)).is_some_and(|thought| thought > CONTEST_THOUGHT)
        };
        assert!(!is_olympiad(
            "Let a and b be positive integers such that a + b = 100. Find the number of ordered pairs of integers (a, b)."
        ));
        assert!(!is_olympiad("Determine the maximum of this function for all real numbers x: 4x - x^2."));
        assert!(is_olympiad(
            "Find all functions f: R -> R with f(x+f(y)) = f(x)+y for all real numbers x and y."
        ));
    }

    fn check(text: &str) -> bool {
        let question = QuestionText::question(text);
        let reading = TextAnalysis::of(&question);
        classify::class_of(&reading) == TaskClass::Math && is_contest_proof(&reading, true)
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
            "Determine all real numbers α such that, for every positive integer n, the integer ⌊α⌋ + ⌊2α⌋ + … + ⌊nα⌋ is a multiple of n.",
            "Bestimme alle reellen Zahlen α, sodass für jede positive ganze Zahl n die Summe ⌊α⌋ + … + ⌊nα⌋ ein Vielfaches von n ist.",
            "Déterminer tous les réels α tels que pour tout entier strictement positif n, la somme ⌊α⌋ + … + ⌊nα⌋ est un multiple de n.",
            "Найдите все действительные числа α такие, что для каждого натурального n сумма ⌊α⌋ + … + ⌊nα⌋ делится на n.",
            "Find all triples (a,b,p) of positive integers with p prime and a^p = b! + p.",
            "Let a and b be positive integers such that ab+1 divides a^2+b^2. Show that (a^2+b^2)/(ab+1) is a perfect square.",
            "Prove that a^2b(a-b)+b^2c(b-c)+c^2a(c-a) ≥ 0 for the sides of a triangle.",
            "For which positive integers n can one tile an n×n board minus a corner with L-trominoes? Which integers remain?",
            "Let p be an odd prime. Find the number of p-element subsets A of {1,...,2p} whose sum of elements is divisible by p.",
            "Consider a 2025 × 2025 grid of unit squares. Determine the minimum number of tiles so that for each row one square is free.",
            "Let n be a positive integer. Alice and Bazza play a game. Determine all values of λ for which Alice has a winning strategy.",
            "Show that the inequality sum_{i,j} sqrt|x_i - x_j| ≤ sum_{i,j} sqrt|x_i + x_j| holds for all real numbers x_1, ..., x_n.",
            "Prove that there is a constant c > 0 such that for every set of n points in the plane with distances of at least 1 a line does so.",
            "任意の正の整数 n に対して ⌊α⌋ + … + ⌊nα⌋ が n の倍数となる実数 α をすべて求めよ。",
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
            "Bestimme alle Kosten, die für jede Filiale anfallen, und schreibe einen Bericht über die größten davon für den Vorstand.",
            "Trouver tous les hôtels près de la gare, et pour tout hôtel dire s'il a un parking et combien coûte une nuit en été.",
        ] {
            assert!(!check(other), "{other}");
        }
    }
}
