//! Tests of the phase machine: scripted pieces in, steps out.

mod continued;
mod effort;
mod inline;
mod late;
mod native;
mod overrun;
mod turn;
mod untrusted_counts;

use stint_backend::{GenerationEnd, GenerationPart, TagEdge, TokenUsage};
use stint_types::catalog::{LimitedBy, ThinkingStopReason};
use stint_types::chat::{CacheTtl, ChoiceEvent, CompletionKind, FinishReason};

use super::*;

pub(super) fn terms(class: EnforcementClass, thinking: u64, solution: u64) -> ChoiceTerms {
    ChoiceTerms {
        class,
        resume: (class != EnforcementClass::Effort).then_some(class),
        thinking: Tokens(thinking),
        solution: Tokens(solution),
        answer_takes_rest: false,
        solution_by: LimitedBy::Caller,
        whole: WholeAnswer::Never,
        tells_limit: true,
        output_min: Tokens(1),
        overhead: Tokens(5),
        effort: Some("low".into()),
        visible_max: None,
        limits_thoughts: false,
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
pub(super) fn play_met(terms: ChoiceTerms, behavior: TargetBehavior, script: &[&[Piece]]) -> PlayedChoice {
    let mut phases = ChoiceStateMachine::new(terms);
    phases.set_behavior(behavior);
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
                Some(_) | None => {}
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
