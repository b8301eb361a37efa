use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;

use crate::{Fault, GenerationEnd, GenerationPart, Remark, Thought};
use stint_types::catalog::EnforcementClass;
use stint_types::chat::{Message, Role};

use super::*;

fn call(part: GenerationPart) -> BackendCall {
    let request = Request::new("m", vec![Message::text(Role::User, "12+30*4?")]);
    BackendCall {
        request: Arc::new(request),
        class: EnforcementClass::Inline,
        part,
        seed: 1,
        hidden: false,
        whole: false,
        tells_limit: true,
        effort: None,
        effort_least: None,
    }
}

fn model() -> ScriptedReply {
    ScriptedReply::new().thinks(5).answers("it is 42").answers_when_cut("no idea")
}

/// The pieces in short: thought, tag, hand-off, answer, end; usage as prompt+completion.
async fn check(reply: ScriptedReply, part: GenerationPart, expected: &str) {
    let backend = ScriptedBackend::always(reply).reading(Tokens(9));
    let generation = backend.generate(call(part)).await.unwrap();
    let pieces: Vec<String> = generation.map(|piece| short(&piece.unwrap())).collect().await;
    assert_eq!(pieces.join(" "), expected);
    assert_eq!(backend.records()[0].state, CallState::Finished);
}

fn short(piece: &Piece) -> String {
    match piece {
        Piece::Thought { tokens, .. } => format!("t{tokens}"),
        Piece::Tag { .. } => "tag".to_owned(),
        Piece::HandOff { tokens } => format!("h{tokens}"),
        Piece::Answer { text, tokens } => format!("{}{tokens}", text.trim()),
        Piece::Signed(_) => "signed".to_owned(),
        Piece::Remark(Remark::StoppedBy(text)) => format!("by {text}"),
        Piece::Remark(Remark::ThoughtsDropped(count)) => format!("dropped {count}"),
        Piece::Remark(Remark::Fingerprint(name)) => format!("in {name}"),
        Piece::Remark(Remark::Members(members)) => format!("{members:?}"),
        Piece::Unthought => "unthought".to_owned(),
        Piece::Summary(text) => format!("({text})"),
        Piece::ToolCall(delta) => format!("call{}", delta.index),
        Piece::Usage(usage) => format!("{}+{}", usage.prompt, usage.completion),
        Piece::End(GenerationEnd::Stop { tokens }) => format!("stop{tokens}"),
        Piece::End(ending) => format!("{ending:?}").to_lowercase(),
        Piece::Logprobs(entries) => format!("{} logprobs", entries.len()),
        Piece::Note(note) => format!("{note:?}").to_lowercase(),
    }
}

fn whole(thinking: u64, solution: u64) -> GenerationPart {
    GenerationPart::Whole { thinking: Tokens(thinking), solution: Tokens(solution) }
}

fn solution(closed: bool, solution: u64) -> GenerationPart {
    let thought = Thought { ids: vec![1], text: "x".to_owned(), closed };
    GenerationPart::after_thought(thought, Tokens(solution))
}

#[tokio::test]
async fn inline_budgets_are_held_to_the_token() {
    check(model(), whole(6, 9), "t1 t1 t1 t1 t1 tag it1 is1 421 9+10 stop1").await;
    check(model(), whole(5, 9), "t1 t1 t1 t1 t1 h3 no1 idea1 9+11 stop1").await;
    check(model(), whole(2, 1), "t1 t1 h3 no1 9+6 limit").await;
    check(model(), whole(0, 9), "h3 no1 idea1 9+6 stop1").await;
    check(model().stops_thinking(), whole(9, 9), "t1 t1 t1 t1 t1 9+6 stop1").await;
}

#[tokio::test]
async fn a_thought_and_its_answer_are_made_one_by_one() {
    let thought = |thinking| GenerationPart::Thought { thinking: Tokens(thinking), solution: Tokens(8) };
    check(model(), thought(6), "t1 t1 t1 t1 t1 tag 9+6 stop0").await;
    check(model(), thought(3), "t1 t1 t1 9+3 limit").await;
    check(model(), solution(true, 9), "it1 is1 421 9+4 stop1").await;
    check(model(), solution(false, 2), "h3 no1 idea1 9+5 limit").await;
}

#[tokio::test]
async fn one_limit_for_both_starves_the_answer() {
    let total = |tokens| GenerationPart::Total { effort: None, tokens: Tokens(tokens) };
    check(model(), total(20), "t0 t0 t0 t0 t0 it0 is0 420 9+9 stop0").await;
    check(model().hides_thoughts(), total(6), "it0 9+6 limit").await;
    check(model().hides_thoughts(), total(4), "9+4 limit").await;
    check(model().hides_thoughts().counts_nothing(), total(20), "it0 is0 420 stop0").await;
}

#[tokio::test]
async fn a_play_may_refuse_or_break() {
    let failure = Failure::new(Fault::Overload, "no room").unsent();
    let plays = vec![model().refuses(failure.clone()), model().breaks_after(2, failure.clone())];
    let backend = ScriptedBackend::in_turn(plays);
    assert_eq!(backend.generate(call(whole(9, 9))).await.err(), Some(failure.clone()));
    let mut generation = backend.generate(call(whole(9, 9))).await.unwrap();
    assert!(generation.next().await.unwrap().is_ok());
    assert!(generation.next().await.unwrap().is_ok());
    assert_eq!(generation.next().await, Some(Err(failure)));
    assert_eq!(generation.next().await, None);
    let states: Vec<CallState> = backend.records().iter().map(|record| record.state).collect();
    assert_eq!(states, [CallState::Refused, CallState::Failed]);
}

#[tokio::test]
async fn a_gate_holds_the_pieces_back_and_a_drop_is_seen() {
    let gate = PieceGate::shut();
    let backend = Arc::new(ScriptedBackend::always(model().waits_at(&gate)));
    let mut generation = backend.generate(call(whole(9, 9))).await.unwrap();
    assert!(generation.next().now_or_never().is_none());
    gate.let_through(1);
    assert!(generation.next().await.unwrap().is_ok());
    drop(generation);
    let records = backend.until(|records| records[0].state != CallState::Running).await;
    assert_eq!((records[0].state, records[0].delivered), (CallState::Cancelled, 1));
}

#[tokio::test(start_paused = true)]
async fn pauses_are_taken_from_tokios_clock() {
    let start = tokio::time::Instant::now();
    check(model().pauses(Duration::from_secs(1)), whole(1, 1), "t1 h3 no1 9+5 limit").await;
    assert_eq!(start.elapsed().as_secs(), 5);
}
