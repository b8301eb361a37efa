//! Tests of upstreams whose counts do not fit what they write.

use super::*;

/// So many pieces of a text without counts.
fn texts(piece: impl Fn(&str, u64) -> Piece, text: &str, times: usize) -> Vec<Piece> {
    std::iter::repeat_with(|| piece(text, 0)).take(times).collect()
}

fn on_turn(thinking: u64, solution: u64) -> ChoiceTerms {
    terms(EnforcementClass::Turn, thinking, solution)
}

#[test]
fn who_hangs_up_pays_for_what_came_after_an_early_count() {
    let begun = [vec![usage(5, 1, None)], texts(answer, "seven! ", 100)].concat();
    let seen = play(on_turn(0, 450), &[&begun]);
    let spent = seen.spent;
    assert_eq!((spent.output(), spent.estimated), (Tokens(235), true), "700 characters, three to a token");
    // An answer that ends without another count is estimated too, with as many as is usual.
    let over = [begun, vec![STOP_WORD]].concat();
    assert_eq!(play(on_turn(0, 450), &[&over]).spent.solution, Tokens(201));
}

#[test]
fn a_running_count_is_believed_to_its_end() {
    let mut events = Vec::new();
    for at in 1..=40 {
        events.extend([answer("five. ", 0), usage(5, at, None)]);
    }
    let seen = play(on_turn(0, 450), &[&events]);
    assert_eq!((seen.spent.output(), seen.spent.estimated), (Tokens(40), false));
    events.push(STOP_WORD);
    assert_eq!(play(on_turn(0, 450), &[&events]).spent.output(), Tokens(40));
}

#[test]
fn a_last_count_is_never_less_than_such_a_text_has() {
    let said = [texts(answer, "eighty! ", 50), vec![usage(5, 1, None), STOP_WORD]].concat();
    let seen = play(on_turn(0, 450), &[&said]);
    assert_eq!((seen.spent.solution, seen.spent.output()), (Tokens(50), Tokens(50)));
    assert!(seen.spent.estimated);
    let split = [
        texts(thought, "eighty! ", 10),
        texts(answer, "eighty! ", 50),
        vec![usage(5, 3, Some(2)), STOP_WORD],
    ];
    let spent = play(on_turn(100, 450), &[&split.concat()]).spent;
    assert_eq!((spent.thinking, spent.solution), (Tokens(10), Tokens(50)));
}

#[test]
fn a_count_that_stands_still_stops_no_budget() {
    let endless = [vec![thought("think ", 0), usage(5, 1, None)], texts(thought, "think ", 1_000)].concat();
    let again: &[Piece] = &[answer("4", 1), usage(5, 1, None), STOP_WORD];
    let seen = play(on_turn(20, 100), &[&endless, again]);
    assert_eq!(seen.answer, "4");
    assert!(seen.thought.len() <= 80, "{}", seen.thought.len());
    assert!(seen.spent.thinking_total() >= Tokens(10), "{:?}", seen.spent);
}

#[test]
fn a_thought_in_one_piece_is_a_thought_all_the_same() {
    let huge: &[Piece] = &[thought(&"think ".repeat(200), 0)];
    let again: &[Piece] = &[answer("4", 1), usage(5, 1, None), STOP_WORD];
    let spent = play(on_turn(20, 1_000), &[huge, again]).spent;
    let counts = |spent: &ChoiceUsage| (spent.thinking.0, spent.undelivered.0, spent.undelivered_thinking.0);
    assert_eq!(counts(&spent), (0, 343, 343));

    let native = terms(EnforcementClass::Native, 20, 5_000);
    let spent = play(ChoiceTerms { resume: Some(EnforcementClass::Turn), ..native }, &[huge, again]).spent;
    assert_eq!(counts(&spent), (0, 343, 343), "it was seen, and is no hidden one of any length");
}

#[test]
fn a_thought_that_follows_the_answer_is_counted_and_ends_with_its_budget() {
    let late = [vec![answer("4", 0)], texts(thought, "eighty! ", 40)].concat();
    let ended = [late.clone(), vec![STOP_WORD]].concat();
    let seen = play(on_turn(200, 100), &[&ended]);
    assert_eq!((seen.thought.as_str(), seen.answer.as_str()), ("", "4"));
    assert_eq!((seen.spent.thinking, seen.finish), (Tokens(92), Some(FinishReason::Stop)));
    let told = [late, vec![usage(5, 42, Some(40)), STOP_WORD]].concat();
    assert_eq!(play(on_turn(200, 100), &[&told]).spent.thinking, Tokens(40));
    // Beyond its budget nobody waits for its end.
    let endless = [vec![answer("4", 0)], texts(thought, "eighty! ", 1_000)].concat();
    let seen = play(on_turn(20, 100), &[&endless]);
    assert_eq!(seen.finish, Some(FinishReason::Length));
    assert!(seen.taken < 20, "{}", seen.taken);
}
