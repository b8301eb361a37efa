//! Tests of the class `inline`, and of what holds in every class: ends, stop texts, time, the account at every moment.

use super::*;

#[test]
fn inline_a_thought_that_the_model_closes_is_closed() {
    let script = [usage(20, 0, None), thought("1+1=2\n", 6), TAG, answer("\n\n2", 2), EOS];
    let seen = play(terms(EnforcementClass::Inline, 64, 8), &[&script]);
    check(&seen, (6, 2, 2), ThinkingStopReason::Closed, FinishReason::Stop);
    assert_eq!((seen.thought.as_str(), seen.answer.as_str()), ("1+1=2\n", "2"));
    assert_eq!(seen.spent.prompt, Tokens(20));
    assert!(!seen.spent.estimated);
}

#[test]
fn a_prompt_that_is_not_told_is_booked_by_its_bound() {
    let terms = terms(EnforcementClass::Inline, 64, 8);
    let seen = play(terms.clone(), &[&[usage(0, 9, None), TAG, answer("2", 1), EOS]]);
    assert_eq!((seen.spent.prompt, seen.spent.estimated), (terms.prompt, true));
}

#[test]
fn inline_a_thought_that_the_budget_closes_is_cut() {
    let script = [usage(20, 0, None), thought("1+1", 3), HAND_OFF, answer("2", 1), EOS];
    let seen = play(terms(EnforcementClass::Inline, 3, 8), &[&script]);
    check(&seen, (3, 4, 1), ThinkingStopReason::Cut, FinishReason::Stop);
    assert_eq!(seen.spent.output(), Tokens(8));
}

#[test]
fn inline_a_thought_that_the_model_leaves_is_stopped_and_answered() {
    let script = [usage(20, 0, None), thought("1+1", 3), HAND_OFF, answer("2", 1), EOS];
    check(
        &play(terms(EnforcementClass::Inline, 9, 8), &[&script]),
        (3, 4, 1),
        ThinkingStopReason::Stopped,
        FinishReason::Stop,
    );
}

#[test]
fn inline_no_budget_is_no_thought() {
    let script = [usage(20, 0, None), HAND_OFF, answer("2", 1), EOS];
    check(
        &play(terms(EnforcementClass::Inline, 0, 8), &[&script]),
        (0, 4, 1),
        ThinkingStopReason::None,
        FinishReason::Stop,
    );
}

#[test]
fn a_solution_that_runs_out_ends_as_length() {
    let script = [usage(20, 0, None), thought("x", 1), TAG, answer("1 2", 2), LIMIT];
    check(
        &play(terms(EnforcementClass::Inline, 9, 2), &[&script]),
        (1, 1, 2),
        ThinkingStopReason::Closed,
        FinishReason::Length,
    );
}

#[test]
fn a_stop_text_ends_the_choice() {
    let script = [usage(20, 0, None), thought("x", 1), TAG, answer("a ST", 1), answer("OP b", 1)];
    let seen = play(terms(EnforcementClass::Inline, 9, 9), &[&script]);
    check(&seen, (1, 1, 2), ThinkingStopReason::Closed, FinishReason::Stop);
    assert_eq!(seen.answer, "a ");
}

#[test]
fn time_cuts_a_thought_only_where_the_answer_can_be_resumed() {
    let mut phases = ChoiceStateMachine::new(terms(EnforcementClass::Inline, 64, 8));
    phases.begin();
    phases.on_piece(thought("1+1", 3));
    assert!(matches!(phases.cut(), Some(GenerationPart::Solution { .. })));
    assert_eq!(phases.cut(), None, "an answer is not cut, it ends");
    let mut phases = ChoiceStateMachine::new(terms(EnforcementClass::Effort, 64, 8));
    phases.begin();
    assert_eq!(phases.cut(), None);
}

#[test]
fn what_was_taken_is_known_at_every_moment() {
    let mut phases = ChoiceStateMachine::new(terms(EnforcementClass::Continue, 64, 8));
    phases.begin();
    phases.on_piece(thought("1+1", 3));
    let spent = phases.spent();
    assert_eq!((spent.prompt, spent.thinking, spent.estimated), (Tokens(100), Tokens(3), true));
    assert_eq!(phases.spent(), spent, "asking changes nothing");
}
