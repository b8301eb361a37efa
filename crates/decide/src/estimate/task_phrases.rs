//! What phrases at the beginning and the end of a text say of the kind of work, where single words of English do not tell.

use super::lexeme::is_unspaced;
use super::number_kinds::{KINDS_ELSEWHERE, is_kind};
use super::phrase_list::{FoundPhrase, PhraseList};

/// So many bytes of each end are looked at.
const END_BYTES: usize = 256;
/// A sum that is told in words is no longer than this.
const SUM_MAX: usize = 256;

/// Names of languages and tools that are nothing else,
const PROGRAM_WORDS: &[&str] = &[
    "solidity",
    "terraform",
    "kubernetes",
    "kubectl",
    "docker",
    "django",
    "fastapi",
    "vba",
    "pytest",
    "pygame",
    "graphql",
    "nginx",
    "cmakelists",
    "makefile",
    "ggplot2",
    "matlab",
    "npm",
    "webpack",
    "laravel",
    "segfault",
    "hashmap",
    "quicksort",
    "mergesort",
    "codebase",
    "codebases",
    "refactor",
];
/// How names of programs' files end.
const SOURCES: [&str; 13] =
    ["rs", "py", "ts", "tsx", "js", "jsx", "go", "java", "cpp", "hpp", "kt", "rb", "php"];
/// and phrases of those who write programs.
const PROGRAM_PHRASES: &[&str] = &[
    "binary search",
    "binary tree",
    "linked list",
    "lru cache",
    "hash map",
    "hash table",
    "unit tests",
    "write a unit test",
    "add a unit test",
    "merge conflict",
    "git commit",
    "git branch",
    "git repo",
    "github actions",
    "pull request",
    "regular expression",
    "async/await",
    "lock-free",
    "in range(",
    "console.log",
    "파이썬",
    "자바스크립트",
    "بايثون",
    "पायथन",
    "stack trace",
    "rest api",
    "restful api",
    "null pointer",
    "smart contract",
    "web scraper",
    "next.js",
    "node.js",
    "vue.js",
    "react native",
    "ruby on rails",
    "ruby class",
    "ruby script",
    "flask app",
    "flask api",
    "tailwind css",
];
/// Languages whose names are words of English: they are capitals, and one of these words stands right before them.
const LANGUAGES: &[&str] = &["rust", "go", "swift", "scala", "perl", "elixir", "dart", "ruby", "lua"];
const BEFORE_LANGUAGE: [&str; 3] = ["in", "using", "idiomatic"];
/// A language and a key of music; a query.
const MARKED: &[&str] = &["c++", "c#"];
const QUERIES: &[&str] = &["select "];
/// What shows that a program failed.
const FAILURES: &[&str] =
    &["traceback (most recent", "error[e0", "segmentation fault", "undefined reference to"];

static PROGRAMS: PhraseList =
    PhraseList::of(&[PROGRAM_WORDS, LANGUAGES, MARKED, QUERIES, PROGRAM_PHRASES, FAILURES]);
static MATHEMATICS: PhraseList = PhraseList::of(&[
    PROOFS,
    PROOF_WORDS,
    ENDING_PROOFS,
    SUM_WORDS,
    SUMS,
    SUMS_WITHOUT_NUMBERS,
    WAYS,
    KINDS_ELSEWHERE,
    TERMS,
]);

/// How a proof is asked for at the beginning of a sentence,
const PROOFS: &[&str] = &[
    "show that",
    "zeige, dass",
    "zeigen sie, dass",
    "beweisen sie",
    "démontre que",
    "démontrer que",
    "démontrez que",
    "prouve que",
    "prouver que",
    "prouvez que",
    "montre que",
    "montrer que",
    "montrez que",
    "demuestra que",
    "demuestre que",
    "demostrar que",
    "dimostra che",
    "dimostrare che",
    "prove que",
    "mostre que",
    "demonstre que",
    "bewijs dat",
    "toon aan dat",
    "udowodnij, że",
    "wykaż, że",
    "докажи, что",
    "докажите, что",
    "доказать, что",
    "Докажи, что",
    "Докажите, что",
    "Доказать, что",
];
/// who shows people something, not a theorem,
const PEOPLE: [&str; 11] = ["you", "i", "we", "to", "it", "he", "she", "they", "me", "tu", "vous"];
/// and how it, or a chance, is asked for in a word that nothing else has.
const PROOF_WORDS: &[&str] =
    &["証明せよ", "証明しな", "を示せ", "確率を求め", "أثبت أن", "برهن أن", "सिद्ध क", "kanıtlayın"];
/// The same, where it ends the sentence: these also say that somebody proves himself.
const ENDING_PROOFS: &[&str] =
    &["証明して", "증명하시오", "증명하라", "증명하여라", "증명하세요", "증명하십시오", "증명해"];
const PROOF_TAILS: &[&str] =
    &["", "ください", "下さい", "くれ", "라", "줘", "주세요", "주십시오", "보세요", "보시오"];
/// What sums with a number in them are about.
const SUMS: &[&str] = &[
    "square root",
    "cube root",
    "prime number",
    "prime factor",
    "greatest common",
    "least common multiple",
    "sum of the first",
    "compound interest",
    "area of a",
    "volume of a",
    "circumference",
    "consecutive numbers",
    "consecutive integers",
    "consecutive even",
    "consecutive odd",
    "average of",
    "mean of",
    "median of",
    "twice as old",
    "average speed",
    "durchschnittsgeschwindigkeit",
    "vitesse moyenne",
    "velocidad media",
    "velocidad promedio",
    "velocidade média",
    "velocità media",
    "средняя скорость",
    "평균 속도",
    "متوسط سرع",
    "औसत गति",
];
/// Terms of mathematics that nothing else has.
const TERMS: &[&str] = &[
    "fundamental group",
    "klein bottle",
    "cohomology",
    "abelian",
    "galois theory",
    "galois group",
    "galois extension",
    "sylow",
    "eigenvector",
    "banach space",
    "hilbert space",
    "topological space",
    "lebesgue",
    "holomorphic",
    "homeomorph",
    "homomorphism",
    "riemannian",
    "differential equation",
    "taylor series",
];
const SUM_WORDS: &[&str] = &["gcd", "lcm", "hcf"];
const SUMS_WITHOUT_NUMBERS: &[&str] = &["how many ways are there", "how many different ways are there"];
/// What may go on "can six books be placed".
const WAYS: &[&str] = &["how many ways", "how many different ways"];
/// Beside dice one of these asks what they will show.
const CHANCES: [&str; 13] = [
    "roll",
    "rolls",
    "rolled",
    "rolling",
    "throw",
    "throws",
    "thrown",
    "tossed",
    "die",
    "probability",
    "chance",
    "chances",
    "odds",
];

/// Whether a text speaks of programs, or shows that one failed.
pub(super) fn speaks_of_programs(text: &str) -> bool {
    ends(text).into_iter().any(|end| {
        let mut room = [0; END_BYTES];
        let lower = in_small_letters(end, &mut room);
        let is_meant = |found: &FoundPhrase<'_>| {
            let goes_on = |letter: char| letter.is_alphanumeric() && !is_unspaced(letter);
            let (at, goes_on) = (found.before.len(), found.after.starts_with(goes_on));
            match found.group {
                0 => !goes_on,
                1 => !goes_on && is_language(&end[at..], found.before),
                2 => !is_key(found.after),
                3 => end[at..].starts_with("SELECT") && end[at..].contains(" FROM "),
                _ => true,
            }
        };
        PROGRAMS.find(lower, is_meant).is_some() || names_error(end) || names_source(end)
    })
}

/// Whether a text asks for a proof, in any of the languages that are known here, or sets a sum in words.
pub(super) fn asks_for_mathematics(text: &str) -> bool {
    let is_short = text.len() <= SUM_MAX;
    ends(text).into_iter().any(|end| {
        let mut room = [0; END_BYTES];
        let lower = in_small_letters(end, &mut room);
        let has_number = is_short && count_numbers(lower) >= 1;
        let is_meant = |found: &FoundPhrase<'_>| match found.group {
            0 => asks_for_proof(found),
            1 | 8 => true,
            7 => is_kind(found),
            2 => ends_sentence(found.after),
            3 => has_number && !found.after.starts_with(char::is_alphanumeric),
            4 => has_number,
            5 => is_short,
            _ => is_short && asks_for_ways(found),
        };
        MATHEMATICS.find(lower, is_meant).is_some() || has_number && sets_sum(lower) || sets_integral(lower)
    })
}

fn ends(text: &str) -> [&str; 2] {
    let head = &text[..text.floor_char_boundary(END_BYTES)];
    let tail = text.len().saturating_sub(END_BYTES).max(head.len());
    [head, &text[text.ceil_char_boundary(tail)..]]
}

/// One of the ends with small letters for capitals of ASCII, in room that is given: every request is looked through.
fn in_small_letters<'r>(end: &str, room: &'r mut [u8; END_BYTES]) -> &'r str {
    let Some(room) = room.get_mut(..end.len()) else { return "" };
    room.copy_from_slice(end.as_bytes());
    room.make_ascii_lowercase();
    str::from_utf8(room).unwrap_or_default()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric())
}

/// As in "sort a map in Go".
fn is_language(name: &str, before: &str) -> bool {
    let last = before.split_whitespace().next_back().unwrap_or_default();
    name.starts_with(|letter: char| letter.is_ascii_uppercase())
        && before.ends_with(' ')
        && BEFORE_LANGUAGE.contains(&last)
}

/// As in C#m, C# minor and a C# chord.
fn is_key(after: &str) -> bool {
    const SIGNS: [&str; 4] = ["m", "maj", "min", "dim"];
    const MUSIC: [&str; 6] = ["major", "minor", "chord", "chords", "scale", "scales"];
    let next = words(after.trim_start()).next().unwrap_or_default();
    let sign = next.trim_end_matches(|letter: char| letter.is_ascii_digit());
    after.starts_with(char::is_alphanumeric) && SIGNS.contains(&sign) || MUSIC.contains(&next)
}

/// Whether a request for a proof ends its sentence here, as Japanese and Korean have it.
fn ends_sentence(after: &str) -> bool {
    let end = after.find(['.', '。', '!', '！', '?', '？', '\n', '(', '（', ',', ':']).unwrap_or(after.len());
    PROOF_TAILS.contains(&after[..end].trim())
}

/// As in "how many ways can six books be placed", but not in "how many ways can I style a scarf".
fn asks_for_ways(found: &FoundPhrase<'_>) -> bool {
    let sentence = found.after.split(['.', '?', '!', '\n']).next().unwrap_or_default().trim_start();
    let is_asked = ["can", "could", "may"].contains(&words(sentence).next().unwrap_or_default());
    is_asked && (found.before.ends_with("in ") || words(sentence).any(|word| word == "be"))
}

/// As `TypeError` and `NullPointerException`.
fn names_error(text: &str) -> bool {
    ["Error", "Exception"].iter().any(|kind| {
        text.match_indices(*kind).any(|(at, _)| {
            let goes_on = text[at + kind.len()..].starts_with(char::is_alphanumeric);
            let name = text[..at].rsplit(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
            !goes_on && name.starts_with(|letter: char| letter.is_ascii_uppercase())
        })
    })
}

/// As `src/tree.rs`, which is no address of a page, as `data.go.kr`, or of a person.
fn names_source(text: &str) -> bool {
    text.match_indices('.').any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + 1..]);
        let ending = after.split(|letter: char| !letter.is_ascii_alphanumeric()).next().unwrap_or_default();
        let behind = after[ending.len()..].strip_prefix('.').unwrap_or_default();
        let goes_on = behind.starts_with(|letter: char| letter.is_ascii_alphanumeric());
        !goes_on && SOURCES.contains(&ending) && {
            let name = before.rsplit(char::is_whitespace).next().unwrap_or_default();
            let is_address = name.contains("//") || name.contains('@') || name.contains("www");
            !is_address && name.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_')
        }
    })
}

/// As in "if n is odd, show that …", but not in "show that you care".
fn asks_for_proof(found: &FoundPhrase<'_>) -> bool {
    let after = found.after.split_whitespace().next().unwrap_or_default();
    found.begins_clause() && !PEOPLE.contains(&after)
}

/// As in "Integrate sqrt(tan x) dx", but not in "Integrate Salesforce DX with Jenkins".
fn sets_integral(text: &str) -> bool {
    let says = |known: &str| words(text).any(|word| word == known);
    text.contains("integrate") && says("dx") && (says("x") || text.contains(['(', '^', '=', '∫']))
}

/// As in "15% of 80", "25% off a price of 40", "Is 221 prime?" and what is asked of dice and trains.
fn sets_sum(text: &str) -> bool {
    let is_said = |word: &str| words(text).any(|said| said == word);
    let is_share = text.match_indices("% of ").any(|(at, sign)| {
        text[at + sign.len()..].starts_with(|letter: char| letter.is_ascii_digit() || letter == '$')
    });
    let is_reduced =
        text.contains("% off") && ["price", "cost", "pay"].iter().any(|word| text.contains(word));
    let is_speed = (text.contains("km/h") || is_said("mph")) && count_numbers(text) >= 2;
    let is_thrown = is_said("dice") && CHANCES.iter().any(|word| is_said(word));
    is_share || is_reduced || asks_for_prime(text) || text.contains('?') && (is_speed || is_thrown)
}

/// As in "Is 221 prime?" and "Is the number 7 a prime?".
fn asks_for_prime(text: &str) -> bool {
    let asked = text.strip_prefix("is ").and_then(|rest| rest.split_once("prime"));
    asked.is_some_and(|(number, _)| count_numbers(number) >= 1)
}

fn count_numbers(text: &str) -> usize {
    words(text).filter(|word| word.starts_with(|letter: char| letter.is_ascii_digit())).count()
}
