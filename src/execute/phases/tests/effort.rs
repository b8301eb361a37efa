//! Tests of the class `effort`: hidden thoughts, their counts, and second tries.

use stint_types::catalog::SolutionStopReason;

use super::*;

#[test]
fn effort_takes_the_upstreams_count_of_a_hidden_thought() {
    let script = [answer("2", 0), usage(20, 30, Some(25)), STOP_WORD];
    let seen = play(terms(EnforcementClass::Effort, 64, 8), &[&script]);
    check(&seen, (25, 0, 5), ThinkingStopReason::Closed, FinishReason::Stop);
    assert_eq!(seen.parts[0], GenerationPart::Total { effort: Some("low".into()), tokens: Tokens(77) });
    assert!(!seen.spent.estimated);
}

#[test]
fn effort_shares_an_unsplit_count_by_the_characters_seen_and_says_so() {
    let script = [thought(&"x".repeat(35), 0), answer(&"y".repeat(35), 0), usage(20, 30, None), STOP_WORD];
    let seen = play(terms(EnforcementClass::Effort, 64, 8), &[&script]);
    check(&seen, (15, 0, 15), ThinkingStopReason::Closed, FinishReason::Stop);
    assert!(seen.spent.estimated);
}

#[test]
fn effort_rescues_an_empty_answer_once() {
    let empty: &[Piece] = &[usage(20, 77, Some(77)), LIMIT];
    let rescue: &[Piece] = &[answer("2", 0), usage(20, 1, Some(0)), STOP_WORD];
    let seen = play(terms(EnforcementClass::Effort, 64, 8), &[empty, rescue]);
    check(&seen, (0, 0, 1), ThinkingStopReason::None, FinishReason::Stop);
    assert_eq!(seen.parts[1], GenerationPart::Total { effort: Some("none".into()), tokens: Tokens(13) });
    assert_eq!((seen.spent.extra_calls, seen.spent.prompt_rebilled), (1, Tokens(20)));
    assert_eq!(
        (seen.spent.undelivered, seen.spent.thinking_total()),
        (Tokens(77), Tokens(77)),
        "the first try is billed"
    );
    let seen = play(terms(EnforcementClass::Effort, 64, 8), &[empty, empty]);
    assert_eq!((seen.parts.len(), seen.finish), (2, Some(FinishReason::Length)));
}

#[test]
fn a_model_that_does_not_think_is_not_tried_again() {
    let plain = ChoiceTerms { rescue: false, overhead: Tokens(0), ..terms(EnforcementClass::Effort, 0, 8) };
    let seen = play(plain, &[&[usage(20, 8, None), LIMIT]]);
    assert_eq!((seen.parts.len(), seen.finish), (1, Some(FinishReason::Length)));
    assert_eq!(seen.parts[0], GenerationPart::Total { effort: Some("low".into()), tokens: Tokens(8) });
}

#[test]
fn a_hidden_thought_that_is_broken_off_is_taken_for_as_long_as_it_could_be() {
    let mut phases = ChoiceStateMachine::new(terms(EnforcementClass::Effort, 64, 8));
    phases.begin();
    let spent = phases.spent();
    assert_eq!((spent.thinking, spent.estimated), (Tokens(77), true));
    phases.mark_refused();
    assert_eq!(phases.spent().output() + phases.spent().input(), Tokens(0), "a refused call takes nothing");
}

#[test]
fn a_tool_call_after_a_hidden_thought_is_an_answer_to_it() {
    let call = stint_types::chat::ToolCallDelta { index: 0, id: None, name: None, arguments: "{}".into() };
    let script = [Piece::ToolCall(call), usage(20, 30, Some(25)), Piece::End(GenerationEnd::ToolCalls)];
    let seen = play(terms(EnforcementClass::Effort, 64, 8), &[&script]);
    check(&seen, (25, 0, 5), ThinkingStopReason::Closed, FinishReason::ToolCalls);
}

#[test]
fn after_a_stop_text_an_upstream_that_hides_its_thought_is_heard_out_and_believed() {
    let said = [answer("a b STOP", 0), answer("c d e f ", 0), usage(20, 40, Some(30)), STOP_WORD];
    let seen = play(terms(EnforcementClass::Effort, 64, 8), &[&said]);
    assert_eq!((seen.answer.as_str(), seen.finish, seen.drains), ("a b ", Some(FinishReason::Stop), true));
    let ChoiceUsage { thinking, solution, undelivered: other, estimated, .. } = seen.spent;
    assert_eq!((thinking.0, solution.0 + other.0, estimated), (30, 10, false));
    assert_eq!((other, seen.spent.output()), (Tokens(5), Tokens(40)), "what nobody saw is billed too");
}

#[test]
fn an_upstream_that_is_not_heard_out_is_booked_for_all_that_it_could_have_thought() {
    let most = Tokens(64 + 8 + 5);
    let breaks = [answer("a STOP", 0), answer("c", 0)];
    let seen = play(terms(EnforcementClass::Effort, 64, 8), &[&breaks]);
    assert_eq!((seen.finish, seen.spent.output()), (Some(FinishReason::Stop), most));
    let endless = [answer("a STOP", 0), answer(&"c".repeat(400), 0), usage(20, 900, Some(1)), STOP_WORD];
    let seen = play(terms(EnforcementClass::Effort, 64, 8), &[&endless]);
    assert!((most..=Tokens(140)).contains(&seen.spent.output()), "its limit did not hold: {:?}", seen.spent);
}

#[test]
fn after_a_stop_text_an_upstream_that_shows_its_thought_or_told_of_it_is_let_go() {
    for first in [thought("hm", 0), usage(20, 30, Some(25))] {
        let seen = play(terms(EnforcementClass::Effort, 64, 8), &[&[first, answer("a STOP b", 0)]]);
        assert_eq!((seen.answer.as_str(), seen.finish, seen.drains), ("a ", Some(FinishReason::Stop), false));
    }
}

#[test]
fn what_a_model_without_thoughts_may_have_written_unseen_is_billed_and_is_no_thought() {
    let begun = |thinking: u64, effort: Option<&str>| {
        let terms = ChoiceTerms {
            whole: WholeAnswer::Always,
            rescue: false,
            effort: effort.map(str::to_owned),
            ..terms(EnforcementClass::Effort, thinking, 100)
        };
        let behavior = TargetBehavior { answers_whole: true, ..TargetBehavior::default() };
        play_met(terms, behavior, &[&[]]).spent
    };
    let plain = begun(0, None);
    assert_eq!((plain.thinking, plain.undelivered, plain.output()), (Tokens(0), Tokens(105), Tokens(105)));
    for (thinking, effort) in [(0, Some("low")), (40, None)] {
        let thinker = begun(thinking, effort);
        assert_eq!((thinker.thinking, thinker.undelivered), (Tokens(thinking + 105), Tokens(0)));
    }
}

#[test]
fn a_count_that_no_model_can_have_is_not_believed() {
    let whole = [answer("2", 0), usage(1 << 63, 5, Some(0)), STOP_WORD];
    let seen = play(terms(EnforcementClass::Effort, 0, 100), &[&whole]);
    assert_eq!((seen.spent.prompt, seen.spent.estimated), (Tokens(4 * 105 + (1 << 16)), true));
    let honest = [answer("2", 0), usage(20_000, 5, Some(0)), STOP_WORD];
    let seen = play(terms(EnforcementClass::Effort, 0, 100), &[&honest]);
    assert_eq!((seen.spent.prompt, seen.spent.estimated), (Tokens(20_000), false));
}

#[test]
fn a_summary_of_a_hidden_thought_is_shown_and_is_not_its_count() {
    let shown = |text: &str| Piece::Summary(text.into());
    let whole = [shown("hm"), answer("2", 0), usage(20, 31, Some(30)), STOP_WORD];
    let seen = play(terms(EnforcementClass::Effort, 40, 8), &[&whole]);
    check(&seen, (30, 0, 1), ThinkingStopReason::Closed, FinishReason::Stop);
    assert_eq!(seen.thought, "hm");
    let broken = play(terms(EnforcementClass::Effort, 40, 8), &[&whole[..1]]);
    assert_eq!(
        broken.spent.output(),
        Tokens(40 + 8 + 5),
        "no matter who hung up, the upstream bills what it hides"
    );
    let begun = [usage(20, 0, None), thought("12345678", 0)];
    let broken = play(terms(EnforcementClass::Turn, 40, 8), &[&begun]);
    assert_eq!(
        (broken.spent.prompt, broken.spent.thinking),
        (Tokens(20), Tokens(3)),
        "the prompt is known at once"
    );
}

#[test]
fn where_the_upstream_does_not_say_how_much_was_thought_the_texts_share_its_total() {
    let whole = |thinking| {
        [Piece::Summary("12345678".into()), answer("abcdefgh", 0), usage(20, 30, thinking), STOP_WORD]
    };
    let seen = play(terms(EnforcementClass::Effort, 40, 20), &[&whole(None)]);
    check(&seen, (15, 0, 15), ThinkingStopReason::Closed, FinishReason::Stop);
    assert!(seen.spent.estimated, "only the total is exact");
    let seen = play(terms(EnforcementClass::Effort, 40, 20), &[&whole(Some(0))]);
    let spent = &seen.spent;
    assert_eq!((spent.thinking, spent.solution, spent.estimated), (Tokens(0), Tokens(30), false));
}

#[test]
fn an_empty_answer_behind_a_hidden_thought_is_none() {
    // Some say that they call a tool, and call none.
    for end in [STOP_WORD, Piece::End(GenerationEnd::ToolCalls)] {
        let seen = play(terms(EnforcementClass::Effort, 64, 8), &[&[usage(20, 30, Some(30)), end]]);
        check(&seen, (30, 0, 0), ThinkingStopReason::Stopped, FinishReason::Stop);
        assert_eq!(seen.spent.solution_ended, SolutionStopReason::None);
    }
}

#[test]
fn a_hidden_thought_that_is_broken_off_is_cut() {
    let mut phases = ChoiceStateMachine::new(terms(EnforcementClass::Effort, 64, 8));
    phases.begin();
    assert_eq!(phases.spent().thinking_ended, ThinkingStopReason::Cut);
    phases.on_piece(answer("2 and more", 0));
    assert_eq!(phases.spent().thinking_ended, ThinkingStopReason::Closed);
}
