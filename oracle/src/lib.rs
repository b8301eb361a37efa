//! The parsers that read strangers' bytes, held against others: a foreign crate, a slow version of themselves, and
//! themselves with the bytes cut elsewhere.
//!
//! Each check takes any bytes and says what is wrong. That a check would find mistakes is shown on copies of its parser in
//! which one was planted. The checks run on mutated seeds in this crate's tests, and under a fuzzer in `fuzz/`.

use std::fmt::{Debug, Display};
use std::ops::Range;

use mutants::Dice;

pub mod calls;
pub mod config;
pub mod gguf;
pub mod heads;
pub mod images;
pub mod json;
pub mod money;
pub mod mutants;
pub mod requests;
pub mod scanner;
pub mod tags;

/// Holds a parser against what is known of its input; an error says how they differ.
pub type Check = fn(&[u8]) -> Result<(), String>;

/// A parser's checks.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    /// What it is called in `planted` and `corpus`.
    pub name: &'static str,
    /// Of the parser as it is.
    pub sound: Check,
    /// Of its mistaken copies, by the mistake.
    pub planted: &'static [(&'static str, Check)],
    /// Words that mean something to it.
    pub words: &'static [&'static [u8]],
}

/// All parsers.
pub const SUBJECTS: [Subject; 10] = [
    scanner::SUBJECT,
    tags::SUBJECT,
    calls::SUBJECT,
    heads::SUBJECT,
    json::SUBJECT,
    requests::SUBJECT,
    money::SUBJECT,
    config::SUBJECT,
    images::SUBJECT,
    gguf::SUBJECT,
];

/// Says how two things differ that should not.
fn same<T: PartialEq + Debug>(found: &T, expected: &T, how: impl Display) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{how}: {found:?} is not {expected:?}")) }
}

/// Ways to cut bytes. In tests: byte by byte; at several places; and in two, at every place where they are few, else at some. A
/// fuzzer has many inputs and little time for each: there it is byte by byte and at two places that follow from the bytes.
fn cuts(bytes: &[u8]) -> Vec<Vec<usize>> {
    let length = bytes.len();
    let mut all = vec![(0..length).collect()];
    if cfg!(fuzzing) {
        let mut dice = Dice::new(sum(bytes));
        let (one, other) = (dice.below(length + 1), dice.below(length + 1));
        all.push(vec![one.min(other), one.max(other)]);
        return all;
    }
    let step = (length / 48).max(1);
    let spread = |factor: usize| (length * factor) / 7;
    all.push(vec![spread(1), spread(2), spread(5)]);
    all.extend((0..length).step_by(step).map(|cut| vec![cut]));
    all
}

/// Which of so many settings bytes are tried with: all of them in tests, and under a fuzzer one that follows from the bytes.
fn settings(bytes: &[u8], count: usize) -> Range<usize> {
    if cfg!(fuzzing) {
        let one = Dice::new(!sum(bytes)).below(count);
        one..one + 1
    } else {
        0..count
    }
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)))
}

/// The pieces between the cuts; an empty one among them, as sockets give them.
fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = vec![&bytes[..0]];
    let mut from = 0;
    for cut in cuts {
        pieces.push(&bytes[from..*cut]);
        from = *cut;
    }
    pieces.push(&bytes[from..]);
    pieces
}

/// The pieces of a text between those cuts that are between characters.
fn texts<'a>(text: &'a str, cuts: &[usize]) -> Vec<&'a str> {
    let mut texts = Vec::new();
    let mut from = 0;
    for cut in cuts.iter().filter(|cut| text.is_char_boundary(**cut)) {
        texts.push(&text[from..*cut]);
        from = *cut;
    }
    texts.push(&text[from..]);
    texts
}
