//! Scripts of pieces, and what the machine makes of them.

use super::*;
use crate::backend::{BehaviorObservation, GenerationEnd, TargetBehavior, TokenUsage};

pub(super) fn terms(class: EnforcementClass, thinking: u64, solution: u64) -> ChoiceTerms {
    ChoiceTerms {
        class,
        resume: (class != EnforcementClass::Effort).then_some(class),
        thinking: Tokens(thinking),
        solution: Tokens(solution),
        answer_takes_rest: false,
        solution_by: LimitedBy::Caller,
        tells_limit: true,
        overhead: Tokens(5),
        effort: Some("low".into()),
        visible_max: None,
        continuation: None,
        rescue: class == EnforcementClass::Effort,
        effort_least: Some("none".into()),
        prompt: Tokens(100),
        has_free_input: false,
        cache_ttl: CacheTtl::Minutes,
        stop: vec!["STOP".into()],
        kind: CompletionKind::Chat,
    }
}

pub(super) fn thought(text: &str, tokens: u64) -> Piece {
    let ids = (0..tokens).map(|id| u32::try_from(id).unwrap()).collect();
    Piece::Thought { text: text.into(), tokens: Tokens(tokens), ids }
}

pub(super) fn answer(text: &str, tokens: u64) -> Piece {
    Piece::Answer { text: text.into(), tokens: Tokens(tokens) }
}

pub(super) fn usage(prompt: u64, completion: u64, thinking: Option<u64>) -> Piece {
    let thinking = thinking.map(Tokens);
    Piece::Usage(TokenUsage {
        prompt: Tokens(prompt),
        completion: Tokens(completion),
        thinking,
        ..TokenUsage::default()
    })
}

const TAG: Piece = Piece::Tag { tokens: Tokens(1), edge: TagEdge::End };
pub(super) const HAND_OFF: Piece = Piece::HandOff { tokens: Tokens(3) };
const EOS: Piece = Piece::End(GenerationEnd::Stop { tokens: Tokens(1) });
pub(super) const STOP_WORD: Piece = Piece::End(GenerationEnd::Stop { tokens: Tokens(0) });
pub(super) const LIMIT: Piece = Piece::End(GenerationEnd::Limit);

/// What a caller sees of a choice, and its account.
pub(super) struct PlayedChoice {
    pub(super) thought: String,
    pub(super) answer: String,
    pub(super) parts: Vec<GenerationPart>,
    pub(super) finish: Option<FinishReason>,
    /// The answer was over before the upstream was.
    drains: bool,
    /// How many pieces were taken.
    pub(super) taken: usize,
    pub(super) observations: Vec<BehaviorObservation>,
    pub(super) lacks_answer: bool,
    pub(super) spent: ChoiceUsage,
}

/// Plays one list of pieces for each part that the machine calls for.
pub(super) fn play(terms: ChoiceTerms, script: &[&[Piece]]) -> PlayedChoice {
    play_met(terms, TargetBehavior::default(), script)
}

/// The same with a target of which something is known.
pub(super) fn play_met(terms: ChoiceTerms, conduct: TargetBehavior, script: &[&[Piece]]) -> PlayedChoice {
    let mut phases = ChoiceStateMachine::new(terms);
    phases.set_behavior(conduct);
    let mut seen = PlayedChoice {
        thought: String::new(),
        answer: String::new(),
        parts: vec![phases.begin()],
        finish: None,
        drains: false,
        taken: 0,
        observations: Vec::new(),
        lacks_answer: false,
        spent: ChoiceUsage::default(),
    };
    for part in script {
        for piece in *part {
            if seen.finish.is_some() {
                break;
            }
            seen.taken += 1;
            if seen.drains {
                if phases.drain(piece.clone()) {
                    break;
                }
                continue;
            }
            let shown = match phases.on_piece(piece.clone()) {
                ChoiceStep::Continue => None,
                ChoiceStep::Show(event) => Some(event),
                ChoiceStep::Drain(event) => {
                    seen.drains = true;
                    event
                }
                ChoiceStep::Call(part) => {
                    seen.parts.push(part);
                    break;
                }
                ChoiceStep::GoOn(..) => panic!("nothing is paid for here"),
                ChoiceStep::Finish(event, finish) => {
                    seen.finish = Some(finish);
                    event
                }
            };
            match shown {
                Some(ChoiceEvent::Thought(text)) => seen.thought += &text,
                Some(ChoiceEvent::Answer(text)) => seen.answer += &text,
                Some(ChoiceEvent::ToolCall(_) | ChoiceEvent::Signed(_) | ChoiceEvent::Logprobs(_)) | None => {
                }
            }
        }
    }
    if seen.drains {
        seen.finish = Some(phases.finish_drain());
    }
    seen.spent = phases.spent();
    seen.observations = phases.take_observations();
    seen.lacks_answer = seen.finish.is_some_and(|finish| phases.lacks_answer(finish));
    seen
}

/// (thinking, overhead, solution, how the thought ended) and the reason of the end.
fn check(seen: &PlayedChoice, counts: (u64, u64, u64), ended: ThinkingStopReason, finish: FinishReason) {
    let ChoiceUsage { thinking, overhead, solution, thinking_ended, .. } = seen.spent;
    assert_eq!((thinking.0, overhead.0, solution.0), counts);
    assert_eq!((thinking_ended, seen.finish), (ended, Some(finish)));
}

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
fn continue_counts_a_thought_inside_the_answer_as_answer_and_hides_it() {
    let first: &[Piece] = &[thought("1+1", 3), usage(20, 3, None), LIMIT];
    let second: &[Piece] = &[HAND_OFF, answer("2", 1), thought("or 3?", 7), thought("no", 9)];
    let seen = play(terms(EnforcementClass::Continue, 3, 8), &[first, second]);
    check(&seen, (3, 3, 8), ThinkingStopReason::Cut, FinishReason::Length);
    assert_eq!((seen.thought.as_str(), seen.answer.as_str()), ("1+1", "2"));
}

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
    let call = crate::chat::ToolCallDelta { index: 0, id: None, name: None, arguments: "{}".into() };
    let script = [Piece::ToolCall(call), usage(20, 30, Some(25)), Piece::End(GenerationEnd::ToolCalls)];
    let seen = play(terms(EnforcementClass::Effort, 64, 8), &[&script]);
    check(&seen, (25, 0, 5), ThinkingStopReason::Closed, FinishReason::ToolCalls);
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
fn a_stop_text_ends_the_choice() {
    let script = [usage(20, 0, None), thought("x", 1), TAG, answer("a ST", 1), answer("OP b", 1)];
    let seen = play(terms(EnforcementClass::Inline, 9, 9), &[&script]);
    check(&seen, (1, 1, 2), ThinkingStopReason::Closed, FinishReason::Stop);
    assert_eq!(seen.answer, "a ");
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
        "whoever hung up, the upstream bills what it hides"
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
