//! The embedded reasoner: real thoughts, really cut.

use std::path::Path;

use crate::gpu::shared;
use crate::{
    CacheScope, Engine, GeneratedToken, GenerationEvent, GenerationJob, GenerationSummary, KvFormat,
    PhaseBudgets, Settings, SolutionEnd, ThinkingEnd, ThinkingPhase, TokenPenalties, TokenRole, TokenStream,
};
use stint_gguf::Gguf;

use super::{GREEDY, finish, settings};

const FIRST_BYTE: u32 = 16;

/// Easy ones, so that a model trained again still knows them.
const PROBLEMS: [(&str, &str); 8] = [
    ("Please calculate 64*4.", "256"),
    ("Compute 19*25.", "475"),
    ("3 * 35 - 94", "11"),
    ("Calculate 73*75.", "5475"),
    ("Compute 12+30.", "42"),
    ("Calculate 8*7.", "56"),
    ("Compute 85-17.", "68"),
    ("Ben buys 28 boxes of 4 books and 73 single books. How many books is that?", "185"),
];

fn reasoner() -> Engine {
    reasoner_with(KvFormat::F16)
}

fn reasoner_with(kv_format: KvFormat) -> Engine {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("models/reasoner.gguf");
    let settings = Settings { kv_format, ..settings() };
    Engine::start_on(shared(), &Gguf::open(&path).unwrap(), &settings).unwrap()
}

/// The chat as the model's template renders it; every byte is a token.
fn job(question: &str, thinking: u32) -> GenerationJob {
    let bytes = |text: &str| text.bytes().map(|byte| FIRST_BYTE + u32::from(byte)).collect::<Vec<_>>();
    let (start, end, think, user, assistant, newline) = (1, 2, 3, 5, 6, FIRST_BYTE + 10);
    let asked = [vec![start, user, newline], bytes(question), vec![end, newline]].concat();
    let prompt = [asked, vec![start, assistant, newline, think, newline]].concat();
    let hand_off = vec![newline, 4, 8];
    let thinking = ThinkingPhase {
        budget: thinking,
        hand_off,
        start: Some(think),
        end: 4,
        open: true,
        blanks: [].into(),
        spelled: None,
    };
    GenerationJob {
        prompt,
        sampling: GREEDY,
        phases: PhaseBudgets { thinking: Some(thinking), solution: 8, solution_max: 8 },
        eos: vec![end],
        penalties: TokenPenalties::default(),
        constraint: None,
        logprobs: None,
        scope: CacheScope::default(),
        priority: crate::JobPriority::Interactive,
    }
}

/// The answer's text, the steps and how it ended.
fn answer(tokens: TokenStream) -> (String, Vec<GeneratedToken>, GenerationSummary) {
    let (steps, last) = finish(tokens);
    let GenerationEvent::Done(done) = last else { panic!("{last:?}") };
    let solution = steps.iter().filter(|step| step.role == TokenRole::Solution);
    let text = solution.filter_map(|step| char::from_u32(step.id.checked_sub(FIRST_BYTE)?)).collect();
    (text, steps, done)
}

fn right(engine: &Engine, budget: u32) -> usize {
    let ask = |(question, _): &(&str, &str)| engine.generate(job(question, budget)).unwrap();
    let mut right = 0;
    // As many at once as there are slots.
    for problems in PROBLEMS.chunks(4) {
        let streams: Vec<_> = problems.iter().map(ask).collect();
        for ((_, expected), tokens) in problems.iter().zip(streams) {
            right += usize::from(answer(tokens).0.trim() == *expected);
        }
    }
    right
}

#[test]
fn thoughts_left_to_their_end_are_closed_and_answer_rightly() {
    let engine = reasoner();
    let (text, steps, done) = answer(engine.generate(job(PROBLEMS[0].0, 120)).unwrap());
    assert_eq!(text.trim(), PROBLEMS[0].1);
    assert_eq!((done.thinking, done.solution), (ThinkingEnd::Closed, SolutionEnd::Stop));
    let count = |role| steps.iter().filter(|step| step.role == role).count();
    assert_eq!((count(TokenRole::Tag), count(TokenRole::HandOff), count(TokenRole::End)), (1, 0, 1));
    assert_eq!(done.thought_tokens as usize, count(TokenRole::Thought));
    engine.stop();
}

#[test]
fn a_budget_of_one_more_than_the_thought_closes_and_of_just_the_thought_cuts() {
    let engine = reasoner();
    let (_, steps, done) = answer(engine.generate(job(PROBLEMS[0].0, 120)).unwrap());
    let own = done.thought_tokens;
    let (_, same, done) = answer(engine.generate(job(PROBLEMS[0].0, own + 1)).unwrap());
    assert_eq!((same, done.thinking), (steps.clone(), ThinkingEnd::Closed));
    let (_, cut, done) = answer(engine.generate(job(PROBLEMS[0].0, own)).unwrap());
    assert_eq!((done.thinking, done.thought_tokens), (ThinkingEnd::Cut, own));
    assert_eq!(cut[..own as usize], steps[..own as usize]);
    assert_eq!(
        cut[own as usize..own as usize + 3].iter().map(|step| step.id).collect::<Vec<_>>(),
        [26, 4, 8]
    );
    engine.stop();
}

#[test]
fn a_larger_thinking_budget_answers_more_rightly() {
    let engine = reasoner();
    let (none, all) = (right(&engine, 0), right(&engine, 120));
    assert!(all >= PROBLEMS.len() - 2, "{all} right with 120 tokens of thought");
    assert!(none < all, "{none} right without a thought, {all} with");
    engine.stop();
}

#[test]
fn a_cache_of_eight_bits_answers_as_rightly() {
    let engine = reasoner_with(KvFormat::Q8_0);
    let all = right(&engine, 120);
    assert!(all >= PROBLEMS.len() - 2, "{all} right with 120 tokens of thought");
    engine.stop();
}
