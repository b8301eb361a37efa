//! Tests of the class `continue`: a thought in one call, the answer in another.

use super::*;

#[test]
fn continue_resumes_from_a_cut_thought() {
    let first: &[Piece] = &[thought("1+1", 3), usage(20, 3, None), LIMIT];
    let second: &[Piece] = &[HAND_OFF, answer("2", 1), usage(26, 2, None), EOS];
    let seen = play(terms(EnforcementClass::Continue, 3, 8), &[first, second]);
    check(&seen, (3, 4, 1), ThinkingStopReason::Cut, FinishReason::Stop);
    let GenerationPart::Solution { thought, solution, .. } = &seen.parts[1] else {
        panic!("{:?}", seen.parts)
    };
    assert_eq!((thought.text.as_str(), thought.ids.len(), thought.closed), ("1+1", 3, false));
    assert_eq!(*solution, Tokens(8));
    assert_eq!((seen.spent.prompt, seen.spent.prompt_rebilled), (Tokens(20), Tokens(26)));
    assert_eq!(seen.spent.output(), Tokens(5), "the hand-off was read, not written");
}

#[test]
fn continue_tells_closed_and_stopped_thoughts_apart() {
    let solve: &[Piece] = &[answer("2", 1), usage(27, 2, None), EOS];
    let closed: &[Piece] = &[thought("1+1", 3), TAG, usage(20, 4, None), STOP_WORD];
    let seen = play(terms(EnforcementClass::Continue, 9, 8), &[closed, solve]);
    check(&seen, (3, 2, 1), ThinkingStopReason::Closed, FinishReason::Stop);
    let stopped: &[Piece] = &[thought("1+1", 3), usage(20, 4, None), EOS];
    let seen = play(
        terms(EnforcementClass::Continue, 9, 8),
        &[stopped, &[HAND_OFF, answer("2", 1), usage(27, 2, None), EOS]],
    );
    check(&seen, (3, 5, 1), ThinkingStopReason::Stopped, FinishReason::Stop);
}

#[test]
fn continue_cuts_a_backend_that_does_not_hold_its_limit() {
    let first: &[Piece] = &[thought("1+1", 3), thought("=", 1)];
    let second: &[Piece] = &[HAND_OFF, answer("2", 1), usage(26, 2, None), EOS];
    let seen = play(terms(EnforcementClass::Continue, 3, 8), &[first, second]);
    check(&seen, (3, 4, 1), ThinkingStopReason::Cut, FinishReason::Stop);
    assert_eq!(seen.spent.undelivered, Tokens(1), "what it wrote too much is billed, not delivered");
    assert_eq!(seen.thought, "1+1");
}

#[test]
fn continue_counts_a_thought_inside_the_answer_as_a_thought_and_hides_it() {
    let first: &[Piece] = &[thought("1+1", 3), usage(20, 3, None), LIMIT];
    let short: &[Piece] = &[HAND_OFF, answer("2", 1), thought("or 3?", 7), thought("no", 9), STOP_WORD];
    let seen = play(terms(EnforcementClass::Continue, 3, 8), &[first, short]);
    check(&seen, (19, 3, 1), ThinkingStopReason::Cut, FinishReason::Stop);
    assert_eq!((seen.thought.as_str(), seen.answer.as_str()), ("1+1", "2"));
    // It was asked for none: it gets as much as any call beyond its limit.
    let long: &[Piece] = &[HAND_OFF, answer("2", 1), thought("or 3?", 30), thought("no", 3), answer("!", 1)];
    let seen = play(terms(EnforcementClass::Continue, 3, 8), &[first, long]);
    check(&seen, (33, 3, 1), ThinkingStopReason::Cut, FinishReason::Length);
    assert_eq!((seen.answer.as_str(), seen.spent.undelivered_thinking), ("2", Tokens(3)));
}

#[test]
fn a_hand_off_that_was_read_is_not_taken_from_what_was_written() {
    let uncounted: &[Piece] = &[HAND_OFF, answer("2", 0), usage(26, 2, None), STOP_WORD];
    let first: &[Piece] = &[thought("1+1", 3), usage(20, 3, None), LIMIT];
    check(
        &play(terms(EnforcementClass::Continue, 3, 8), &[first, uncounted]),
        (3, 3, 2),
        ThinkingStopReason::Cut,
        FinishReason::Stop,
    );
}

#[test]
fn continue_a_limit_that_was_the_thoughts_does_not_break_off_the_answer() {
    let first: &[Piece] = &[thought("1+1", 0), answer("The ans", 0), usage(20, 6, Some(3)), LIMIT];
    let second: &[Piece] = &[answer("wer is 2", 0), usage(27, 4, Some(0)), STOP_WORD];
    let seen = play(terms(EnforcementClass::Continue, 6, 8), &[first, second]);
    check(&seen, (3, 0, 7), ThinkingStopReason::Closed, FinishReason::Stop);
    assert_eq!(seen.answer, "The answer is 2");
    let GenerationPart::Solution { thought, answer, solution } = &seen.parts[1] else {
        panic!("{:?}", seen.parts)
    };
    assert_eq!((thought.text.as_str(), thought.closed, answer.as_str()), ("1+1", true, "The ans"));
    assert_eq!(*solution, Tokens(5), "what the first call wrote is taken off");
}

#[test]
fn continue_an_answer_without_a_thought_is_not_held_to_the_limit_of_one() {
    let first: &[Piece] = &[answer("The ans", 0), usage(20, 3, Some(0)), LIMIT];
    let second: &[Piece] = &[answer("wer is 2", 0), usage(24, 4, Some(0)), STOP_WORD];
    let seen = play(terms(EnforcementClass::Continue, 3, 8), &[first, second]);
    assert_eq!((seen.answer.as_str(), seen.finish), ("The answer is 2", Some(FinishReason::Stop)));
    let GenerationPart::Solution { answer, solution, .. } = &seen.parts[1] else {
        panic!("{:?}", seen.parts)
    };
    assert_eq!((answer.as_str(), *solution), ("The ans", Tokens(5)));
}

#[test]
fn an_answer_that_goes_on_thinking_after_a_cut_is_measured() {
    let first: &[Piece] = &[thought("1+1", 3), usage(20, 3, None), LIMIT];
    let second: &[Piece] = &[HAND_OFF, answer("Wait, no. ", 2), answer("Actually 2.", 2), EOS];
    let seen = play(terms(EnforcementClass::Continue, 3, 8), &[first, second]);
    assert_eq!(seen.spent.leaks, 2);
    let closed: &[Piece] = &[thought("1+1", 2), TAG, STOP_WORD];
    let seen = play(terms(EnforcementClass::Continue, 3, 8), &[closed, &second[1..]]);
    assert_eq!(seen.spent.leaks, 0, "a thought of its own accord is no leak");
}

#[test]
fn an_answer_takes_what_its_thought_leaves_of_a_limit_that_holds_both() {
    let length = |class, takes_rest, thought_tokens: u64| {
        let terms = ChoiceTerms { answer_takes_rest: takes_rest, ..terms(class, 8, 4) };
        let first = [thought("hm", thought_tokens), TAG];
        let more = vec![answer("x", 1); 20];
        match class {
            EnforcementClass::Native => play(terms, &[&[&first[..], &more[..]].concat()]).answer.len(),
            _ => play(terms, &[&[&first[..], &[LIMIT]].concat(), &more]).answer.len(),
        }
    };
    for class in [EnforcementClass::Native, EnforcementClass::Continue] {
        // What was kept for a hand-off goes to the answer of a class that resumes, where none comes.
        let kept = if class == EnforcementClass::Continue { 4 } else { 0 };
        assert_eq!(length(class, true, 3), 4 + 8 - 3 + kept, "{class:?}");
        assert_eq!(length(class, true, 8), 4 + kept, "{class:?}");
        assert_eq!(length(class, false, 3), 4, "{class:?}");
    }
}
