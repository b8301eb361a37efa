//! Tests of thoughts that come after the answer's first word, or unasked.

use stint_backend::Turns;
use stint_types::catalog::SolutionStopReason;

use super::*;

/// So many pieces of a thought that nobody counts.
fn thoughts(count: usize) -> Vec<Piece> {
    vec![thought("hmm ", 0); count]
}

/// The first word of an answer, a long thought, and the rest.
fn late() -> Vec<Piece> {
    [
        vec![answer("The ", 0)],
        thoughts(5_000),
        vec![answer("end", 0), usage(10, 5_002, Some(5_000)), STOP_WORD],
    ]
    .concat()
}

fn long(class: EnforcementClass, resume: Option<EnforcementClass>) -> ChoiceTerms {
    ChoiceTerms { resume, answer_takes_rest: true, ..terms(class, 10, 99_000) }
}

fn cut(seen: &PlayedChoice, answer: &str) {
    assert_eq!((seen.answer.as_str(), seen.finish), (answer, Some(FinishReason::Length)));
    let spent = &seen.spent;
    assert_eq!(
        (spent.thinking_ended, spent.solution_ended),
        (ThinkingStopReason::Cut, SolutionStopReason::Upstream)
    );
    assert!(spent.thinking_total() <= Tokens(100), "{spent:?}");
    assert!(seen.thought.len() <= 8 * 43, "{}", seen.thought.len());
    assert!(seen.taken < 100, "{} pieces", seen.taken);
}

#[test]
fn a_thought_after_the_first_word_is_held_like_one_before_it_in_every_class() {
    use EnforcementClass::{Continue, Effort, Inline, Native, Turn};
    for (class, resume) in
        [(Inline, None), (Native, None), (Native, Some(Turn)), (Native, Some(Continue)), (Turn, Some(Turn))]
    {
        let seen = play(long(class, resume), &[&late(), &late()]);
        cut(&seen, "The ");
        assert_eq!(seen.parts.len(), 1, "{class:?}: the caller would read the answer's beginning twice");
        assert_eq!(seen.spent.overran, class == Native);
    }
    let stated = ChoiceTerms { visible_max: Some(Tokens(10)), ..long(Effort, None) };
    let turns = TargetBehavior { turns: Turns::Always, ..TargetBehavior::default() };
    cut(&play_met(stated, turns, &[&late(), &late()]), "The ");
    // A word for how hard to think cuts nothing.
    let seen = play(long(Effort, None), &[&late()]);
    assert_eq!((seen.answer.as_str(), seen.finish), ("The end", Some(FinishReason::Stop)));
}

#[test]
fn thoughts_between_the_pieces_of_an_answer_are_whole_within_the_budget() {
    for class in [EnforcementClass::Inline, EnforcementClass::Native, EnforcementClass::Turn] {
        let pieces =
            [thought("a", 3), answer("The ", 1), thought("b", 3), answer("end", 1), thought("c", 4), EOS];
        let seen = play(terms(class, 10, 20), &[&pieces]);
        assert_eq!((seen.answer.as_str(), seen.finish), ("The end", Some(FinishReason::Stop)), "{class:?}");
        assert_eq!(
            (seen.spent.thinking, seen.spent.thinking_ended),
            (Tokens(10), ThinkingStopReason::Closed)
        );
    }
    // The thought before the answer and those after it have one budget.
    let pieces = [thought("a", 6), answer("The ", 1), thought("b", 5), answer("end", 1), STOP_WORD];
    let seen = play(terms(EnforcementClass::Turn, 10, 20), &[&pieces]);
    cut(&seen, "The ");
    assert_eq!((seen.spent.thinking, seen.spent.undelivered_thinking), (Tokens(6), Tokens(5)));
}

#[test]
fn continue_goes_on_with_the_answer_behind_what_came_of_it() {
    let rest: &[Piece] = &[answer("end", 0), usage(12, 1, None), STOP_WORD];
    let again = [vec![answer("end", 0)], thoughts(5_000)].concat();
    let seen = play(long(EnforcementClass::Continue, Some(EnforcementClass::Continue)), &[&late(), rest]);
    assert_eq!((seen.answer.as_str(), seen.finish), ("The end", Some(FinishReason::Stop)));
    assert_eq!(seen.spent.thinking_ended, ThinkingStopReason::Cut);
    let GenerationPart::Solution { thought, answer, solution } = &seen.parts[1] else {
        panic!("{:?}", seen.parts)
    };
    assert_eq!((thought.text.as_str(), thought.closed, answer.as_str()), ("", true, "The "));
    // What was kept for a hand-off is the answer's, and nothing of the thought's budget.
    assert_eq!(*solution, Tokens(99_000 + 5 - 2));
    // One that thinks on there is hung up on.
    let seen = play(long(EnforcementClass::Continue, Some(EnforcementClass::Continue)), &[&late(), &again]);
    assert_eq!((seen.answer.as_str(), seen.finish), ("The end", Some(FinishReason::Length)));
    assert!(seen.taken < 200, "{} pieces", seen.taken);
}

#[test]
fn a_thought_behind_nothing_but_blank_is_answered_in_another_call() {
    let first = [vec![answer("\n", 0)], thoughts(5_000)].concat();
    let second: &[Piece] = &[answer("end", 0), usage(12, 1, Some(0)), STOP_WORD];
    for (class, resume) in [
        (EnforcementClass::Turn, EnforcementClass::Turn),
        (EnforcementClass::Continue, EnforcementClass::Continue),
        (EnforcementClass::Native, EnforcementClass::Turn),
    ] {
        let seen = play(long(class, Some(resume)), &[&first, second]);
        assert_eq!((seen.answer.as_str(), seen.finish), ("end", Some(FinishReason::Stop)), "{class:?}");
        assert!(seen.spent.thinking_total() <= Tokens(200), "{:?}", seen.spent);
        let GenerationPart::Solution { solution, .. } = &seen.parts[1] else { panic!("{:?}", seen.parts) };
        assert_eq!(*solution, Tokens(99_000), "{class:?}");
    }
}

#[test]
fn a_model_that_cannot_be_kept_from_thinking_answers_unless_thinking_tokens_are_limited() {
    let pieces = [thoughts(5_000), vec![answer("end", 0), usage(10, 5_001, Some(5_000)), STOP_WORD]].concat();
    for class in [EnforcementClass::Turn, EnforcementClass::Continue] {
        let unasked = terms(class, 0, 99_000);
        let seen = play(unasked.clone(), &[&pieces]);
        assert_eq!((seen.answer.as_str(), seen.finish), ("end", Some(FinishReason::Stop)), "{class:?}");
        cut(&play(ChoiceTerms { limits_thoughts: true, ..unasked }, &[&pieces]), "");
    }
    let native = ChoiceTerms { limits_thoughts: true, ..long(EnforcementClass::Native, None) };
    let seen = play(native, &[&pieces]);
    assert!(seen.taken < 100 && seen.lacks_answer, "{} pieces", seen.taken);
    // What it thought before its first word is not held against one word of a thought after it.
    let pieces =
        [thoughts(500), vec![answer("The ", 0), thought("hm", 0), answer("end", 0), STOP_WORD]].concat();
    let seen = play(terms(EnforcementClass::Turn, 0, 99_000), &[&pieces]);
    assert_eq!((seen.answer.as_str(), seen.finish), ("The end", Some(FinishReason::Stop)));
}
