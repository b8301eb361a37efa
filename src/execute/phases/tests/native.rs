//! Tests of the class `native`: budgets that the provider keeps, or does not.

use super::*;

#[test]
fn native_a_budget_that_holds_is_believed_with_a_margin() {
    let script = [thought("1+1", 70), answer("2", 1), usage(20, 71, Some(70)), STOP_WORD];
    let seen = play(ChoiceTerms { resume: None, ..terms(EnforcementClass::Native, 64, 8) }, &[&script]);
    check(&seen, (70, 0, 1), ThinkingStopReason::Closed, FinishReason::Stop);
    assert!(!seen.spent.overran);
    assert_eq!(seen.parts[0], GenerationPart::Whole { thinking: Tokens(64), solution: Tokens(8) });
}

#[test]
fn native_a_budget_that_does_not_hold_is_noticed_and_cut_where_that_can_be() {
    let beyond: &[Piece] = &[thought("1+1", 60), thought("…", 44), answer("2", 1), STOP_WORD];
    let seen = play(ChoiceTerms { resume: None, ..terms(EnforcementClass::Native, 64, 8) }, &[beyond]);
    assert!(seen.spent.overran);
    assert_eq!(seen.thought, "1+1…");

    let again: &[Piece] = &[answer("2", 1), usage(40, 1, None), STOP_WORD];
    let seen = play(
        ChoiceTerms { resume: Some(EnforcementClass::Turn), ..terms(EnforcementClass::Native, 64, 8) },
        &[beyond, again],
    );
    check(&seen, (60, 0, 1), ThinkingStopReason::Cut, FinishReason::Stop);
    assert!(seen.spent.overran);
    assert_eq!(seen.answer, "2");
}

#[test]
fn native_a_hidden_thought_that_leaves_no_answer_is_asked_again_without_thinking() {
    let silent: &[Piece] = &[usage(20, 72, Some(64)), LIMIT];
    let again: &[Piece] = &[answer("2", 1), usage(40, 1, None), STOP_WORD];
    let terms =
        ChoiceTerms { resume: Some(EnforcementClass::Turn), ..terms(EnforcementClass::Native, 64, 8) };
    let seen = play(terms, &[silent, again]);
    assert_eq!((seen.answer.as_str(), seen.finish), ("2", Some(FinishReason::Stop)));
    assert_eq!(seen.spent.calls.len(), 2);
}

#[test]
fn native_a_count_that_is_not_split_is_no_thought_where_none_showed() {
    let name = Some("f".to_owned());
    let call = stint_types::chat::ToolCallDelta { index: 0, id: None, name, arguments: String::new() };
    let empty: &[Piece] = &[usage(20, 3, None), STOP_WORD];
    let calls: &[Piece] = &[Piece::ToolCall(call), usage(20, 9, None), Piece::End(GenerationEnd::ToolCalls)];
    for script in [empty, calls] {
        let seen = play(ChoiceTerms { resume: None, ..terms(EnforcementClass::Native, 0, 8) }, &[script]);
        assert!(!seen.spent.overran, "{script:?}");
    }
    let shown: &[Piece] = &[thought("hm", 0), usage(20, 110, None), STOP_WORD];
    let seen = play(ChoiceTerms { resume: None, ..terms(EnforcementClass::Native, 64, 8) }, &[shown]);
    assert!(seen.spent.overran);
}
