//! Tests with upstreams that exceed their limits, or report other counts than they wrote.

use stint_backend::{Remark, Turns};
use stint_prompt::tags::{Splitter, TaggedSpan};
use stint_types::catalog::SolutionStopReason;
use stint_types::chat::{AnswerApi, ProviderMembers};

use super::*;

/// A token of three characters, as the upstream sends it: not counted.
fn tokens(count: usize) -> Vec<Piece> {
    vec![answer("so ", 0); count]
}

fn thoughts(count: usize) -> Vec<Piece> {
    vec![thought("hm ", 0); count]
}

/// The most characters that a limit lets pass.
fn most(limit: u64) -> usize {
    usize::try_from(limit * 8).unwrap()
}

fn ended(seen: &PlayedChoice) -> (SolutionStopReason, Option<FinishReason>) {
    (seen.spent.solution_ended, seen.finish)
}

const CLASSES: [EnforcementClass; 5] = [
    EnforcementClass::Effort,
    EnforcementClass::Turn,
    EnforcementClass::Native,
    EnforcementClass::Continue,
    EnforcementClass::Inline,
];

#[test]
fn an_upstream_that_writes_without_end_is_hung_up_on_in_every_class() {
    for class in CLASSES {
        let terms = ChoiceTerms { overhead: Tokens(0), ..terms(class, 0, 10) };
        let seen = play(terms, &[&tokens(5_000)]);
        assert_eq!(ended(&seen), (SolutionStopReason::Upstream, Some(FinishReason::Length)), "{class:?}");
        assert!(seen.answer.len() <= most(10), "{class:?}: {}", seen.answer.len());
        assert!(seen.taken <= 44 * 8 / 3 + 1, "{class:?}: {} pieces", seen.taken);
        assert!(seen.spent.output() <= Tokens(43), "{class:?}: {:?}", seen.spent);
        assert_eq!(seen.spent.solution, Tokens(10), "{class:?}");
    }
}

#[test]
fn one_huge_event_is_cut_to_the_limit_and_never_booked_whole() {
    for class in CLASSES {
        let terms = ChoiceTerms { overhead: Tokens(0), ..terms(class, 0, 10) };
        let seen = play(terms, &[&[answer(&"so ".repeat(1_000_000), 0), STOP_WORD]]);
        assert_eq!(ended(&seen), (SolutionStopReason::Upstream, Some(FinishReason::Length)), "{class:?}");
        assert!(seen.answer.len() <= most(10) && seen.spent.output() <= Tokens(43), "{class:?}");
    }
}

#[test]
fn a_count_that_is_too_low_hides_nothing_and_one_that_is_too_high_costs_no_more_than_can_have_been_written() {
    let low: Vec<Piece> =
        tokens(5_000).into_iter().flat_map(|piece| [piece, usage(20, 1, Some(0))]).collect();
    let seen = play(ChoiceTerms { overhead: Tokens(0), ..terms(EnforcementClass::Turn, 0, 10) }, &[&low]);
    assert_eq!(ended(&seen).0, SolutionStopReason::Upstream);
    assert!(seen.answer.len() <= most(10));
    let high: &[Piece] = &[answer("four", 0), usage(20, 1_000_000, Some(0)), STOP_WORD];
    let seen = play(ChoiceTerms { overhead: Tokens(0), ..terms(EnforcementClass::Turn, 0, 10) }, &[high]);
    assert_eq!(
        (seen.answer.as_str(), ended(&seen)),
        ("four", (SolutionStopReason::Stop, Some(FinishReason::Stop)))
    );
    assert_eq!(seen.spent.output(), Tokens(43));
    assert!(
        seen.observations.iter().any(|it| matches!(it, BehaviorObservation::Overran { .. })),
        "it is named"
    );
}

#[test]
fn pieces_are_counted_as_tokens_where_the_target_is_known_for_it() {
    let behavior = TargetBehavior { has_token_per_piece: true, ..TargetBehavior::default() };
    let terms = ChoiceTerms { overhead: Tokens(0), ..terms(EnforcementClass::Turn, 0, 10) };
    let seen = play_known(terms, behavior, &[&tokens(5_000)]);
    assert_eq!((seen.answer.as_str(), seen.taken), ("so so so so so so so so so so ", 44));
    assert_eq!(ended(&seen).0, SolutionStopReason::Upstream);
}

#[test]
fn what_looked_like_too_much_is_passed_on_where_its_count_says_that_it_was_within_the_limit() {
    let long = "pneumonoultramicroscopicsilicovolcanoconiosis-and-so-forth ".repeat(2);
    let within: &[Piece] = &[answer(&long, 0), usage(20, 10, Some(0)), LIMIT];
    let plain = ChoiceTerms { overhead: Tokens(0), ..terms(EnforcementClass::Turn, 0, 10) };
    let seen = play(plain.clone(), &[within]);
    assert_eq!((seen.answer.as_str(), ended(&seen).0), (long.as_str(), SolutionStopReason::Caller));
    let untold: &[Piece] = &[answer(&long, 0), LIMIT];
    // Seventeen letters of each of the longest words weigh nothing.
    assert_eq!(play(plain, &[untold]).answer.len(), most(10) + 2 * 17, "nobody says that it was");
}

#[test]
fn a_target_that_was_told_no_limit_breaks_none() {
    let terms = ChoiceTerms {
        overhead: Tokens(0),
        tells_limit: false,
        solution_by: LimitedBy::Model,
        ..terms(EnforcementClass::Turn, 0, 10)
    };
    let seen = play(terms, &[&tokens(5_000)]);
    assert_eq!(ended(&seen), (SolutionStopReason::Model, Some(FinishReason::Length)));
    assert_eq!(seen.observations, []);
}

#[test]
fn the_first_phase_of_a_thought_is_held_too_and_answered() {
    for class in [EnforcementClass::Continue, EnforcementClass::Turn, EnforcementClass::Native] {
        let second: &[Piece] = &[HAND_OFF, answer("2", 0), usage(40, 1, None), STOP_WORD];
        let terms = ChoiceTerms { resume: Some(EnforcementClass::Turn), ..terms(class, 10, 10) };
        let seen = play(terms, &[&thoughts(5_000), second]);
        assert_eq!((seen.answer.as_str(), seen.finish), ("2", Some(FinishReason::Stop)), "{class:?}");
        assert!(seen.thought.len() < 44 * 8, "{class:?}: {}", seen.thought.len());
        assert_eq!(seen.parts.len(), 2);
    }
}

#[test]
fn a_tool_call_without_end_is_broken_off_and_told_as_unfinished() {
    let call = |arguments: &str| {
        Piece::ToolCall(stint_types::chat::ToolCallDelta {
            index: 0,
            id: None,
            name: None,
            arguments: arguments.into(),
        })
    };
    let mut pieces = vec![call("{\"text\": \"")];
    pieces.extend(std::iter::repeat_n(call("and so on "), 100_000));
    let seen =
        play(ChoiceTerms { overhead: Tokens(0), ..terms(EnforcementClass::Effort, 0, 10) }, &[&pieces]);
    assert_eq!(ended(&seen), (SolutionStopReason::Upstream, Some(FinishReason::Length)));
    assert_eq!(seen.spent.unfinished_calls, 1);
    assert!(seen.taken < 40, "{}", seen.taken);
}

/// As the readers of chat completions have it.
fn piece(span: TaggedSpan) -> Piece {
    match span {
        TaggedSpan::Thought(text) => thought(&text, 0),
        TaggedSpan::Answer(text) => answer(&text, 0),
        TaggedSpan::Start => Piece::Tag { tokens: Tokens::ZERO, edge: TagEdge::Start },
        TaggedSpan::End => Piece::Tag { tokens: Tokens::ZERO, edge: TagEdge::End },
    }
}

/// An upstream that keeps to OpenAI's form, and to its limit, and does not know how to continue a turn.
fn mixes_tags(limit: usize, again: bool) -> Vec<Piece> {
    let text = "<think>one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen \
                seventeen eighteen nineteen twenty</think>The answer is 4.";
    let mut splitter = if again {
        Splitter::after_thought("<think>", "</think>")
    } else {
        Splitter::new("<think>", "</think>", false)
    };
    let all: Vec<&str> = text.split_inclusive([' ', '>']).collect();
    let mut spans: Vec<_> = all.iter().take(limit).flat_map(|token| splitter.push(token)).collect();
    spans.extend(splitter.finish());
    let mut pieces: Vec<Piece> = spans.into_iter().map(piece).collect();
    let written = all.len().min(limit) as u64;
    pieces.push(usage(20, written, None));
    pieces.push(if limit < all.len() { LIMIT } else { STOP_WORD });
    pieces
}

#[test]
fn an_answer_is_delivered_once_wherever_the_first_phase_is_cut() {
    for cut in 1..=44 {
        let terms = terms(EnforcementClass::Continue, cut, 400);
        let seen =
            play(terms, &[&mixes_tags(usize::try_from(cut).unwrap(), false), &mixes_tags(usize::MAX, true)]);
        assert_eq!(
            (seen.answer.as_str(), seen.finish),
            ("The answer is 4.", Some(FinishReason::Stop)),
            "cut at {cut}"
        );
    }
}

#[test]
fn an_answer_is_delivered_once_where_the_first_phase_does_not_hold_its_limit() {
    for budget in 1..=20 {
        for ending in [LIMIT, STOP_WORD] {
            let mut first = mixes_tags(usize::MAX, false);
            first.pop();
            first.push(ending);
            let seen = play(
                terms(EnforcementClass::Continue, budget, 400),
                &[&first, &mixes_tags(usize::MAX, true)],
            );
            assert_eq!(seen.answer, "The answer is 4.", "a budget of {budget}");
        }
    }
}

fn shown_terms() -> ChoiceTerms {
    ChoiceTerms {
        visible_max: Some(Tokens(20)),
        effort_least: Some("minimal".into()),
        ..terms(EnforcementClass::Effort, 20, 100)
    }
}

const TAKES_TURNS: TargetBehavior = TargetBehavior {
    turns: Turns::Always,
    has_token_per_piece: false,
    shows_thoughts: false,
    ignores_switch: false,
    never_thinks: false,
    breaks_limits: false,
    answers_whole: false,
    is_measured: false,
};

#[test]
fn effort_a_thought_that_shows_is_cut_at_a_stated_budget_and_answered_in_a_new_turn() {
    let second: &[Piece] = &[answer("2", 0), usage(40, 1, Some(0)), STOP_WORD];
    let seen = play_known(shown_terms(), TAKES_TURNS, &[&thoughts(2_000), second]);
    assert_eq!((seen.answer.as_str(), seen.finish), ("2", Some(FinishReason::Stop)));
    assert!(seen.taken < 30, "{}", seen.taken);
    assert!(matches!(seen.parts[1], GenerationPart::Solution { .. }));
    assert!(seen.observations.contains(&BehaviorObservation::ShowsThoughts));
    assert!(seen.observations.contains(&BehaviorObservation::ThinkingSwitched(true)));
}

#[test]
fn effort_a_word_alone_cuts_nothing() {
    let mut whole = thoughts(60);
    whole.extend([answer("2", 0), usage(20, 61, Some(60)), STOP_WORD]);
    let seen = play_known(ChoiceTerms { visible_max: None, ..shown_terms() }, TAKES_TURNS, &[&whole]);
    assert_eq!((seen.answer.as_str(), seen.parts.len(), seen.spent.thinking), ("2", 1, Tokens(60)));
}

#[test]
fn effort_a_target_that_cannot_be_kept_from_thinking_is_not_asked_twice() {
    let mut empty = thoughts(120);
    empty.extend([usage(20, 120, Some(120)), LIMIT]);
    let seen = play_known(shown_terms(), TAKES_TURNS, &[&empty, &empty]);
    assert_eq!(seen.parts.len(), 2);
    assert!(
        seen.observations.contains(&BehaviorObservation::ThinkingSwitched(false)),
        "{:?}",
        seen.observations
    );
    let known = TargetBehavior { ignores_switch: true, ..TAKES_TURNS };
    let seen = play_known(shown_terms(), known, &[&empty, &empty]);
    assert_eq!((seen.parts.len(), seen.lacks_answer), (1, true));
}

#[test]
fn an_answer_is_lacking_only_where_a_limit_took_it() {
    let of = |pieces: &[Piece]| {
        play(ChoiceTerms { rescue: false, ..terms(EnforcementClass::Effort, 20, 100) }, &[pieces])
            .lacks_answer
    };
    assert!(of(&[usage(20, 125, Some(125)), LIMIT]));
    assert!(!of(&[thought("hm", 0), STOP_WORD]), "it was done behind its thought");
    assert!(!of(&[usage(20, 1, Some(0)), STOP_WORD]), "it answered with nothing");
    assert!(!of(&[answer("\n", 0), LIMIT]), "blank is an answer");
    assert!(!of(&[Piece::End(GenerationEnd::Filtered)]));
}

fn play_known(terms: ChoiceTerms, behavior: TargetBehavior, script: &[&[Piece]]) -> PlayedChoice {
    play_met(terms, behavior, script)
}

#[test]
fn an_answer_says_who_has_ended_it() {
    let of = |told: u64, ending: GenerationEnd| {
        let terms = ChoiceTerms { rescue: false, ..terms(EnforcementClass::Effort, 0, 100) };
        let seen = play(terms, &[&[answer("1 2", 0), usage(20, told, Some(0)), Piece::End(ending)]]);
        (seen.spent.solution_ended, seen.finish)
    };
    let length = Some(FinishReason::Length);
    assert_eq!(of(105, GenerationEnd::Limit), (SolutionStopReason::Caller, length));
    assert_eq!(of(90, GenerationEnd::Limit), (SolutionStopReason::Caller, length), "not all count alike");
    assert_eq!(
        of(50, GenerationEnd::Limit),
        (SolutionStopReason::Model, length),
        "it has a limit of its own"
    );
    assert_eq!(
        of(0, GenerationEnd::Limit),
        (SolutionStopReason::Caller, length),
        "nobody knows how much it wrote"
    );
    assert_eq!(of(105, GenerationEnd::ModelLimit), (SolutionStopReason::Model, length));
    assert_eq!(of(50, GenerationEnd::BrokenOff), (SolutionStopReason::Upstream, length));
    let filtered = (SolutionStopReason::Upstream, Some(FinishReason::ContentFilter));
    assert_eq!(of(50, GenerationEnd::Filtered), filtered);
}

#[test]
fn nobody_asks_for_the_answer_behind_a_thought_that_was_withheld() {
    for class in [EnforcementClass::Continue, EnforcementClass::Turn] {
        let script = [thought("hm", 0), usage(20, 3, None), Piece::End(GenerationEnd::Filtered)];
        let seen = play(terms(class, 20, 100), &[&script]);
        assert_eq!((seen.parts.len(), seen.finish), (1, Some(FinishReason::ContentFilter)), "{class:?}");
    }
}

#[test]
fn what_a_provider_says_besides_is_no_more_of_an_answer_that_is_over() {
    let members = Piece::Remark(Remark::Members(Box::new(ProviderMembers::new(AnswerApi::Chat))));
    let terms = ChoiceTerms { rescue: false, ..terms(EnforcementClass::Effort, 0, 10) };
    let seen = play(terms, &[&[answer("1 2", 0), usage(20, 1_000_000, Some(0)), members, STOP_WORD]]);
    assert_eq!((seen.answer.as_str(), seen.finish), ("1 2", Some(FinishReason::Stop)));
}
