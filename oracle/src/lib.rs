//! The parsers that read strangers' bytes, held against others: a foreign crate, a slow version of themselves, and
//! themselves with the bytes cut elsewhere.
//!
//! Each check takes any bytes and says what is wrong. That a check would find mistakes is shown on copies of its parser in
//! which one was planted. The checks run on mutated seeds in this crate's tests, and under a fuzzer in `fuzz/`.

use std::fmt::Debug;

pub mod json;
pub mod mutants;
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
pub const SUBJECTS: [Subject; 3] = [scanner::SUBJECT, tags::SUBJECT, json::SUBJECT];

/// Says how two things differ that should not.
fn same<T: PartialEq + Debug>(found: &T, expected: &T, how: &str) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{how}: {found:?} is not {expected:?}")) }
}

/// Ways to cut so many bytes: in two at every place where they are few, else at some; and byte by byte.
fn cuts(length: usize) -> Vec<Vec<usize>> {
    let step = (length / 48).max(1);
    let mut all: Vec<Vec<usize>> = (0..length).step_by(step).map(|cut| vec![cut]).collect();
    let spread = |factor: usize| (length * factor) / 7;
    all.push(vec![spread(1), spread(2), spread(5)]);
    all.push((0..length).collect());
    all
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
