//! What outcomes of a request tell that is met again and again.

use super::super::repeats::Repeats;
use super::{OutcomeSample, lesson};

/// An outcome of a request with such a word.
fn of_word(word: u16) -> OutcomeSample {
    let mut sample = lesson("one", 1.0);
    sample.request.words = vec![word];
    sample
}

#[test]
fn a_request_that_is_met_again_and_again_counts_as_little_more_than_one() {
    let mut repeats = Repeats::default();
    let first = repeats.note(&of_word(1));
    let rest: f64 = (0..100).map(|_| repeats.note(&of_word(1))).sum();
    assert!((first - 1.0).abs() < 1e-12 && rest < 0.2, "{first} {rest}");
    assert!((repeats.note(&of_word(2)) - 1.0).abs() < 1e-12, "another request");
    let other_model = OutcomeSample { model: "two".into(), ..of_word(1) };
    assert!((repeats.note(&other_model) - 1.0).abs() < 1e-12, "another model");
}

#[test]
fn what_is_remembered_of_requests_is_bounded() {
    let mut repeats = Repeats::default();
    let all: f64 = (0..10_000).map(|word| repeats.note(&of_word(word))).sum();
    assert!((all - 10_000.0).abs() < 1e-6, "{all}");
    assert!(repeats.note(&of_word(9_999)) < 0.6, "the last ones are remembered");
    assert!((repeats.note(&of_word(0)) - 1.0).abs() < 1e-12, "the first ones are forgotten");
}
