//! Normalises an answer's text to a key that is equal for equal answers.

use std::collections::BTreeMap;

use serde_json::Value;

use stint_types::catalog::AnswerComparison;

use super::written_number::{last_number, only_number};

/// What stands before the letter of an option, where it is not marked otherwise.
const INTRODUCTIONS: [&str; 4] = ["answer", "option", "choice", "correct"];

/// How far behind an introduction its letter may stand, in bytes: answers may have thousands of introductions.
const INTRODUCED_WITHIN: usize = 128;

/// Options go from A to this.
const LETTER_LAST: u8 = b'J';

/// The key of an answer; nothing if it contains nothing that can be compared.
pub fn answer_key(answer: &str, compare: &AnswerComparison) -> Option<String> {
    match compare {
        AnswerComparison::Number => number(answer),
        AnswerComparison::Choice => letter(answer),
        AnswerComparison::Exact => text(answer),
        AnswerComparison::Json(pointer) => json(answer, pointer),
    }
}

/// The number in the last `\boxed{…}`, or all of the box if it holds anything else; without a box, the last number of all.
fn number(answer: &str) -> Option<String> {
    let all_of = |inside| text(inside).map(|text| text.replace([' ', '$'], ""));
    boxed(answer)
        .and_then(|inside| only_number(inside).or_else(|| all_of(inside)))
        .or_else(|| last_number(answer))
}

/// What the last `\boxed{…}` has in it.
fn boxed(answer: &str) -> Option<&str> {
    let (_, rest) = answer.rsplit_once("\\boxed{")?;
    let mut depth = 1;
    let end = rest.char_indices().find(|(_, character)| {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    end.map(|(at, _)| &rest[..at])
}

/// The option that was chosen: the only letter there is, one in a box or brackets, one that is introduced, or one that begins the
/// answer as in a list. A letter amid a sentence is a word.
fn letter(answer: &str) -> Option<String> {
    let marks: &[char] = &['(', ')', '[', ']', '*', '.', ':', '$', ' ', '\n'];
    let alone = |text: &str| option(text.trim_matches(marks));
    boxed(answer)
        .and_then(|text| alone(text.trim_start_matches("\\text{").trim_end_matches('}')))
        .or_else(|| alone(answer))
        .or_else(|| introduced(answer))
        .or_else(|| bracketed(answer))
        .or_else(|| beginning(answer))
        .map(|letter| letter.to_string())
}

fn option(text: &str) -> Option<char> {
    let mut characters = text.chars();
    let first = characters.next()?.to_ascii_uppercase();
    (characters.next().is_none() && (b'A'..=LETTER_LAST).any(|letter| char::from(letter) == first))
        .then_some(first)
}

/// The letter after the last introduction, as in "the answer is (B)".
fn introduced(answer: &str) -> Option<char> {
    let lower = answer.to_ascii_lowercase();
    let ends =
        INTRODUCTIONS.iter().flat_map(|word| lower.match_indices(word).map(|(at, word)| at + word.len()));
    let mut ends: Vec<usize> = ends.collect();
    ends.sort_unstable();
    let is_gap = |character: char| character.is_whitespace() || character == ':';
    ends.into_iter().rev().find_map(|at| {
        let words = whole_words(&answer[at..], is_gap).split(is_gap);
        let words = words.map(|word| word.trim_matches(|character: char| !character.is_alphanumeric()));
        let meant = words
            .filter(|word| !word.is_empty())
            .find(|word| !matches!(*word, "is" | "option" | "choice"))?;
        option(meant).filter(|_| meant.starts_with(|character: char| character.is_ascii_uppercase()))
    })
}

/// As much of a text as has room behind an introduction, without a word that goes on beyond that.
fn whole_words(text: &str, is_gap: impl Fn(char) -> bool) -> &str {
    let (near, beyond) = text.split_at(text.floor_char_boundary(INTRODUCED_WITHIN));
    if beyond.is_empty() { near } else { near.rfind(is_gap).map_or("", |at| &near[..at]) }
}

fn bracketed(answer: &str) -> Option<char> {
    let starts = answer.match_indices('(').map(|(at, _)| &answer[at + 1..]);
    let letter = |rest: &str| {
        let (letter, behind) = rest.split_at_checked(1)?;
        option(letter).filter(|_| behind.starts_with(')'))
    };
    starts.filter_map(letter).next_back()
}

fn beginning(answer: &str) -> Option<char> {
    let (first, _) = answer.trim_start().split_once([')', '.', ':'])?;
    option(first.trim_matches('*'))
}

/// Case, runs of blanks and the mark at the end make no difference.
fn text(answer: &str) -> Option<String> {
    let words: Vec<String> = answer.split_whitespace().map(str::to_lowercase).collect();
    let text = words.join(" ");
    let text = text.trim_end_matches(['.', '!']);
    (!text.is_empty()).then(|| text.to_owned())
}

/// The member that a JSON pointer (RFC 6901) names in an answer of JSON, fenced or not; the whole where it is empty.
fn json(answer: &str, pointer: &str) -> Option<String> {
    let text = answer.trim();
    let text = text.strip_prefix("```").and_then(|text| text.strip_suffix("```")).unwrap_or(text);
    let text = text.strip_prefix("json").unwrap_or(text);
    let value: Value = serde_json::from_str(text).ok()?;
    value.pointer(pointer).map(|member| canonical(member).to_string())
}

/// With members in the order of their names, and one way to write a number.
fn canonical(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<&String, Value> =
                members.iter().map(|(name, member)| (name, canonical(member))).collect();
            sorted
                .into_iter()
                .map(|(name, member)| (name.clone(), member))
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
        Value::Array(items) => items.iter().map(canonical).collect::<Vec<_>>().into(),
        Value::Number(number) if number.is_f64() => plain_float(number.as_f64()),
        other => other.clone(),
    }
}

/// `1.0` is `1`.
fn plain_float(number: Option<f64>) -> Value {
    let number = number.unwrap_or_default();
    let whole =
        format!("{number:.0}").parse::<i64>().ok().filter(|whole| format!("{number}") == whole.to_string());
    whole.map_or_else(|| number.into(), Value::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(compare: &AnswerComparison, cases: &[(&str, Option<&str>)]) {
        for (answer, expected) in cases {
            assert_eq!(answer_key(answer, compare).as_deref(), *expected, "{answer:?}");
        }
    }

    #[test]
    fn the_last_number_is_the_answer_however_it_is_written() {
        check(
            &AnswerComparison::Number,
            &[
                ("858", Some("858")),
                ("The answer is 1,234.50.", Some("1234.5")),
                ("12 + 3 = 15 apples", Some("15")),
                ("x = −4", Some("-4")),
                ("7-4", Some("4")),
                ("$-3.00", Some("-3")),
                ("-0", Some("0")),
                ("007", Some("7")),
                ("0.50", Some("0.5")),
                ("\\boxed{42} (see step 3)", Some("42")),
                ("\\boxed{\\frac{1}{2}}", Some("1/2")),
                ("3/4 of it", Some("3/4")),
                ("\\boxed{-\\dfrac{1}{2}}", Some("-1/2")),
                ("\\boxed{3\\frac{1}{2}}", Some("3\\frac{1}{2}")),
                ("so $x = 3 \\dfrac{1}{2}$.", Some("3\\frac{1/2}")),
                ("3 + \\tfrac{1}{2}", Some("1/2")),
                ("It is \\binom{5}{2}.", Some("\\binom{5/2}")),
                ("\\boxed{x = 12}", Some("12")),
                ("\\boxed{1{,}234\\,\\text{cm}^2}", Some("1234")),
                ("\\boxed{-9.8\\ \\text{m s}^{-2}}", Some("-9.8")),
                ("\\boxed{\\$5}", Some("5")),
                ("\\boxed{50\\%}", Some("50")),
                ("\\boxed{90^\\circ}", Some("90")),
                ("It takes 12 m² of _7_", Some("7")),
                ("an area of 12 cm^2", Some("12")),
                ("F_2 = 3 and so x_1", Some("3")),
                ("no idea", None),
                ("", None),
            ],
        );
    }

    #[test]
    fn a_power_of_ten_belongs_to_its_number_however_it_is_written() {
        check(
            &AnswerComparison::Number,
            &[
                ("3.0 \\times 10^{8}", Some("300000000")),
                ("\\boxed{3.0 \\times 10^{8}}", Some("300000000")),
                ("\\boxed{3 \\times 10^8 \\text{ m/s}}", Some("300000000")),
                ("It is 2.998 × 10⁸ m/s.", Some("299800000")),
                ("1.5e6", Some("1500000")),
                ("-1.5E-3 s", Some("-0.0015")),
                ("\\(6.02 \\cdot 10^{-2}\\)", Some("0.0602")),
                ("10^{6}", Some("1000000")),
                ("0 × 10^3", Some("0")),
                ("5 eggs", Some("5")),
                ("1e999999999", Some("999999999")),
            ],
        );
    }

    #[test]
    fn roots_powers_and_lists_are_not_their_last_digits() {
        check(
            &AnswerComparison::Number,
            &[
                ("\\boxed{2\\sqrt{3}}", Some("2\\sqrt{3}")),
                ("It is $2 \\sqrt{3}$.", Some("2\\sqrt{3}")),
                ("The side is \\sqrt{3}", Some("\\sqrt{3}")),
                ("\\boxed{2^{10}}", Some("2^{10}")),
                ("so **2^{10}**", Some("2^{10}")),
                ("2^{10} = 1024", Some("1024")),
                ("\\boxed{5\\pi}", Some("5\\pi")),
                ("\\boxed{2e^{3}}", Some("2e^{3}")),
                ("\\boxed{(1, 2)}", Some("(1,2)")),
                ("\\boxed{1,2}", Some("1,2")),
                ("\\boxed{x = 3, y = 4}", Some("x=3,y=4")),
                ("\\boxed{n-1}", Some("n-1")),
                ("Of 2: \\boxed{\\text{no solution}}", Some("\\text{nosolution}")),
            ],
        );
    }

    #[test]
    fn the_letter_of_an_option_is_told_from_a_word() {
        check(
            &AnswerComparison::Choice,
            &[
                ("C", Some("C")),
                ("(b)", Some("B")),
                ("**D**", Some("D")),
                ("The answer is (B).", Some("B")),
                ("The correct option is C because A is a distractor", Some("C")),
                ("Answer: E", Some("E")),
                ("\\boxed{\\text{F}}", Some("F")),
                ("B) because it rains", Some("B")),
                ("I think it is (C)", Some("C")),
                ("(A) is out, (é) and (BC) are none, ((D) it is ()", Some("D")),
                ("Option B is the choice", Some("B")),
                ("A dog is an animal", None),
                ("The answer is a dog", None),
                ("Z", None),
            ],
        );
    }

    #[test]
    fn a_letter_far_behind_its_introduction_is_not_looked_for() {
        let behind = |blanks: usize| format!("The answer is{}B, I think", " ".repeat(blanks));
        let (near, far) = (behind(100), behind(1_000));
        check(&AnswerComparison::Choice, &[(near.as_str(), Some("B")), (far.as_str(), None)]);
        // A word that is not all there is no letter.
        let cut = format!("The answer:{}Bees", " ".repeat(INTRODUCED_WITHIN - 2));
        check(&AnswerComparison::Choice, &[(cut.as_str(), None)]);
    }

    #[test]
    fn an_answer_full_of_introductions_and_brackets_is_read_at_once() {
        let began = std::time::Instant::now();
        for piece in ["option ", "choice", "answer::", "((((", "(é"] {
            let answer = piece.repeat(100_000);
            check(&AnswerComparison::Choice, &[(answer.as_str(), None)]);
        }
        // 1 s without optimisation; minutes where each is read to the end.
        assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
    }

    #[test]
    fn texts_are_the_same_whatever_their_case_and_blanks() {
        check(
            &AnswerComparison::Exact,
            &[(" New\n  York. ", Some("new york")), ("new york", Some("new york")), (" .", None)],
        );
    }

    #[test]
    fn members_of_json_are_the_same_whatever_their_order() {
        check(
            &AnswerComparison::Json("".into()),
            &[
                (r#"{"b": 1.0, "a": [2]}"#, Some(r#"{"a":[2],"b":1}"#)),
                ("```json\n{\"a\":[2],\"b\":1}\n```", Some(r#"{"a":[2],"b":1}"#)),
                ("{", None),
            ],
        );
        check(&AnswerComparison::Json("/a/0".into()), &[(r#"{"a":[2]}"#, Some("2")), (r#"{"b":1}"#, None)]);
    }
}
