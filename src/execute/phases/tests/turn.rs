//! Tests of the class `turn`: thoughts that are cut in the stream, and what the next call reads of them.

use super::*;

#[test]
fn turn_a_thought_beyond_its_budget_is_cut_in_the_stream_and_asked_about_again() {
    let first: &[Piece] = &[thought("1+1", 3), thought("=2", 2), thought("?", 1)];
    let second: &[Piece] = &[answer("2", 1), usage(40, 1, Some(0)), STOP_WORD];
    let seen = play(terms(EnforcementClass::Turn, 4, 8), &[first, second]);
    check(&seen, (3, 0, 1), ThinkingStopReason::Cut, FinishReason::Stop);
    assert_eq!(seen.thought, "1+1", "what went beyond is not shown");
    assert_eq!(seen.parts[0], GenerationPart::Thought { thinking: Tokens(4), solution: Tokens(8) });
    let GenerationPart::Solution { thought, .. } = &seen.parts[1] else { panic!("{:?}", seen.parts) };
    assert_eq!((thought.text.as_str(), thought.closed), ("1+1", false));
    assert_eq!((seen.spent.undelivered, seen.spent.output()), (Tokens(2), Tokens(6)), "written is billed");
}

#[test]
fn turn_a_thought_that_closes_in_time_is_answered_in_the_same_call() {
    let script = [thought("1+1", 3), answer("2", 1), usage(20, 4, Some(3)), STOP_WORD];
    let seen = play(terms(EnforcementClass::Turn, 4, 8), &[&script]);
    check(&seen, (3, 0, 1), ThinkingStopReason::Closed, FinishReason::Stop);
    assert_eq!(seen.parts.len(), 1);
}

#[test]
fn turn_counts_characters_where_nothing_better_is_told_and_the_upstream_where_it_is() {
    let first: &[Piece] = &[thought("123456", 0), thought("789", 0), thought("0", 0)];
    let second: &[Piece] = &[answer("2", 1), STOP_WORD];
    let seen = play(terms(EnforcementClass::Turn, 3, 8), &[first, second]);
    assert_eq!((seen.thought.as_str(), seen.spent.estimated), ("123456789", true), "three to a token");

    let told: &[Piece] = &[thought("a", 0), usage(20, 2, None), thought("b", 0), usage(20, 4, None)];
    let seen = play(terms(EnforcementClass::Turn, 3, 8), &[told, second]);
    assert_eq!(seen.thought, "ab", "its own count came with the event");
    assert_eq!(seen.parts.len(), 2);
}

/// What a second part is given of the thought.
fn quoted(seen: &PlayedChoice) -> &str {
    let GenerationPart::Solution { thought, .. } = &seen.parts[1] else { panic!("{:?}", seen.parts) };
    &thought.text
}

#[test]
fn a_thought_is_read_again_no_further_than_was_set_aside_for_it() {
    // Where only characters are counted, each may be a token.
    let digits = "one. 1 2 3 4 5 6 ";
    let first: &[Piece] = &[thought(digits, 0), thought("7 8", 0), thought("9", 0)];
    let seen = play(terms(EnforcementClass::Turn, 6, 8), &[first, &[]]);
    assert_eq!((seen.thought.as_str(), quoted(&seen)), (digits, "4 5 6 "));
    let free = ChoiceTerms { has_free_input: true, ..terms(EnforcementClass::Turn, 6, 8) };
    assert_eq!(quoted(&play(free, &[first, &[]])), digits, "what costs nothing needs no money");
    // The upstream's own count is believed, and a prompt that was shorter than was set aside leaves room.
    let told: &[Piece] = &[thought(digits, 0), usage(100, 6, None), thought("7 8", 0), usage(100, 8, None)];
    assert_eq!(quoted(&play(terms(EnforcementClass::Turn, 6, 8), &[told, &[]])), "2 3 4 5 6 7 8");
    let short: &[Piece] = &[usage(50, 0, None), thought(digits, 0), thought("7 8", 0)];
    assert_eq!(quoted(&play(terms(EnforcementClass::Turn, 6, 8), &[short, &[]])), digits);
    // A prompt of 100 of which 50 are in the cache, as some tell it: without those.
    let cached = TokenUsage {
        prompt: Tokens(50),
        cache_read: Tokens(40),
        cache_write: Tokens(10),
        ..TokenUsage::default()
    };
    let cached: &[Piece] = &[Piece::Usage(cached), thought(digits, 0), thought("7 8", 0), thought("9", 0)];
    assert_eq!(quoted(&play(terms(EnforcementClass::Turn, 6, 8), &[cached, &[]])), "4 5 6 ");
    let counted: &[Piece] = &[thought(digits, 6), thought("7", 1)];
    assert_eq!(quoted(&play(terms(EnforcementClass::Turn, 6, 8), &[counted, &[]])), digits);
    // The same behind a budget of the provider's own, which may be passed a little: 1.1 t + 32.
    let long = "12 ".repeat(70);
    let native =
        ChoiceTerms { resume: Some(EnforcementClass::Turn), ..terms(EnforcementClass::Native, 10, 8) };
    let seen =
        play(native, &[&[thought(&long, 0), thought("12 ", 0), thought("12 ", 0), thought("12 ", 0)], &[]]);
    assert_eq!(quoted(&seen).len(), 42, "{:?}", quoted(&seen));
}
