//! The engine as its callers see it, and the forward pass against itself.

mod answers;
mod damage;
mod eight_bits;
mod pool;
mod reasoner;
mod supervised;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};

use stint_gguf::synth::SyntheticModel;
use stint_gguf::{Gguf, TensorType};

use super::forward::{BatchRow, EngineCapacity, EngineModel, ForwardBatch};
use super::gpu::{DeviceMode, Gpu, shared, shared_as};
use super::kv_format::KvFormat;
use super::ops::{BLOCK, slot_words};
use super::phases::PhaseMachine;
use super::shape::ModelShape;
use super::*;

const MODES: [DeviceMode; 2] = [DeviceMode::Gpu, DeviceMode::SoftwareByLanes];

const GREEDY: SamplingParams = SamplingParams { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 0 };

fn gguf(kind: TensorType) -> Gguf {
    Gguf::from_bytes(SyntheticModel { kind, ..SyntheticModel::default() }.bytes().into()).unwrap()
}

fn settings() -> Settings {
    Settings {
        sequences: 4,
        kv_tokens: 512,
        prefill_chunk: Some(16),
        queue: 2,
        allow_cpu: true,
        ..Settings::default()
    }
}

/// Weights that cannot be opened the first so many times, and what is told of their engine.
fn failing_weights(failing: u32) -> (WeightsOpener, EngineListener, Receiver<EngineEvent>) {
    let (sender, events) = channel();
    let left = AtomicU32::new(failing);
    let weights = move || {
        let fails =
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        if fails { Err(EngineError::NoDevice) } else { Ok(gguf(TensorType::F32)) }
    };
    let listener = move |event: &EngineEvent| {
        let _ = sender.send(event.clone());
    };
    (Box::new(weights), Box::new(listener), events)
}

fn engine(settings: &Settings) -> Engine {
    Engine::start_on(shared(), &gguf(TensorType::F32), settings).unwrap()
}

/// A job whose thought no token of the model can close, so that its budgets alone decide.
fn job(prompt: u32, thinking: u32, solution: u32) -> GenerationJob {
    let thinking = ThinkingPhase {
        budget: thinking,
        hand_off: vec![60, 61, 62],
        start: None,
        end: 63,
        open: true,
        blanks: [].into(),
        spelled: None,
    };
    GenerationJob {
        prompt: (1..=prompt).collect(),
        sampling: GREEDY,
        phases: PhaseBudgets { thinking: Some(thinking), solution, solution_max: solution },
        eos: vec![],
        penalties: TokenPenalties::default(),
        constraint: None,
        logprobs: None,
        scope: CacheScope::default(),
        priority: JobPriority::Interactive,
    }
}

/// All steps and the last word.
fn finish(mut tokens: TokenStream) -> (Vec<GeneratedToken>, GenerationEvent) {
    let mut steps = Vec::new();
    loop {
        match tokens.blocking_next().expect("a last word") {
            GenerationEvent::PromptRead { .. } | GenerationEvent::Logprobs(_) => {}
            GenerationEvent::Token(step) => steps.push(step),
            last => {
                assert!(tokens.blocking_next().is_none());
                return (steps, last);
            }
        }
    }
}

/// Waits for its first token.
fn has_begun(tokens: &mut TokenStream) -> bool {
    let is_read = matches!(tokens.blocking_next(), Some(GenerationEvent::PromptRead { .. }));
    is_read && matches!(tokens.blocking_next(), Some(GenerationEvent::Token(_)))
}

fn ids(engine: &Engine, job: GenerationJob) -> Vec<u32> {
    let (steps, last) = finish(engine.generate(job).unwrap());
    assert!(matches!(last, GenerationEvent::Done(_)), "{last:?}");
    steps.iter().map(|step| step.id).collect()
}

#[test]
fn budgets_are_kept_to_the_token() {
    let engine = engine(&settings());
    for (thinking, solution) in [(0, 1), (1, 1), (7, 3), (20, 0), (5, 12)] {
        let (steps, last) = finish(engine.generate(job(5, thinking, solution)).unwrap());
        let count = |role| steps.iter().filter(|step| step.role == role).count();
        assert_eq!(count(TokenRole::Solution), solution as usize);
        let GenerationEvent::Done(done) = last else { panic!("{last:?}") };
        let closed = done.thinking == ThinkingEnd::Closed;
        assert!(closed || count(TokenRole::Thought) == thinking as usize);
        assert!(closed || count(TokenRole::HandOff) == 3);
        assert_eq!(done.solution, SolutionEnd::Length);
        assert!(!steps.iter().any(|step| step.role == TokenRole::Solution && step.id == 63));
    }
    engine.stop();
}

#[test]
fn a_job_with_nothing_to_generate_is_done_at_once() {
    let engine = engine(&settings());
    let nothing = GenerationJob { phases: PhaseBudgets::without_thinking(0), ..job(3, 0, 0) };
    let (steps, last) = finish(engine.generate(nothing).unwrap());
    assert!(steps.is_empty() && matches!(last, GenerationEvent::Done(_)));
    engine.stop();
}

#[test]
fn a_sequence_generates_the_same_tokens_alone_and_among_others() {
    let kinds = [TensorType::F32, TensorType::F16, TensorType::Q8_0];
    for (kind, grain) in kinds.into_iter().flat_map(|kind| MODES.map(|grain| (kind, grain))) {
        let engine = Engine::start_on(shared_as(grain), &gguf(kind), &settings()).unwrap();
        let warm = |seed| SamplingParams { temperature: 1.0, top_k: 20, top_p: 0.9, min_p: 0.0, seed };
        let jobs: Vec<_> = (0..6u32)
            .map(|n| GenerationJob { sampling: warm(u64::from(n / 2)), ..job(3 + 7 * n, 10 + n, 8) })
            .collect();
        let alone: Vec<_> = jobs.iter().map(|job| ids(&engine, job.clone())).collect();
        // Six for four slots: two join when others have left.
        let streams: Vec<_> = jobs.iter().map(|job| engine.generate(job.clone()).unwrap()).collect();
        for (alone, tokens) in alone.iter().zip(streams) {
            let among: Vec<_> = finish(tokens).0.iter().map(|step| step.id).collect();
            assert_eq!(*alone, among, "{kind:?}, {grain:?}");
        }
        engine.stop();
    }
}

#[test]
fn a_bias_bans_or_forces_a_token_and_penalties_keep_tokens_from_coming_again() {
    let engine = engine(&settings());
    let with =
        |penalties| GenerationJob { penalties, phases: PhaseBudgets::without_thinking(20), ..job(6, 0, 0) };
    let plain = ids(&engine, with(TokenPenalties::default()));
    let bias = |id, bias| TokenPenalties { biases: [(id, bias)].into(), ..TokenPenalties::default() };
    assert!(!ids(&engine, with(bias(plain[0], -100.0))).contains(&plain[0]));
    assert_eq!(ids(&engine, with(bias(9, 1e6))), [9; 20]);
    let penalties = TokenPenalties { presence: 1e6, ..TokenPenalties::default() };
    let unlike = |mut tokens: Vec<u32>| {
        tokens.sort_unstable();
        tokens.dedup();
        tokens.len()
    };
    assert_eq!(unlike(ids(&engine, with(penalties.clone()))), 20, "no token comes twice");
    let alone = ids(&engine, with(penalties.clone()));
    let start = |n| {
        let penalties = if n % 2 == 0 { penalties.clone() } else { TokenPenalties::default() };
        engine.generate(with(penalties)).unwrap()
    };
    let streams: Vec<_> = (0..6).map(start).collect();
    for (n, tokens) in streams.into_iter().enumerate() {
        let among: Vec<_> = finish(tokens).0.iter().map(|token| token.id).collect();
        assert_eq!(among, if n % 2 == 0 { alone.clone() } else { plain.clone() });
    }
    let unknown = engine.generate(with(bias(64, 1.0))).unwrap_err();
    assert!(matches!(unknown, JobRejection::Invalid(_)));
    engine.stop();
}

#[test]
fn white_space_before_a_thought_leaves_it_open_and_has_its_room_in_the_answer_s_budget() {
    let engine = engine(&settings());
    // Every token comes once, those with a bias first: white space, the tag, a token of thought.
    let biases = [(10, 3e6), (11, 2e6), (12, 1e6)].into();
    let penalties = TokenPenalties { presence: 1e7, biases, ..TokenPenalties::default() };
    let (blanks, spelled) = ([10].into(), None);
    let thinking = ThinkingPhase {
        budget: 1,
        hand_off: vec![60],
        start: Some(11),
        end: 63,
        open: false,
        blanks,
        spelled,
    };
    let phases = PhaseBudgets { thinking: Some(thinking), solution: 3, solution_max: 3 };
    let (steps, last) = finish(engine.generate(GenerationJob { penalties, phases, ..job(4, 0, 0) }).unwrap());
    let roles: Vec<_> = steps.iter().map(|step| step.role).collect();
    use TokenRole::{Blank, HandOff, Solution, Tag, Thought};
    assert_eq!(roles, [Blank, Tag, Thought, HandOff, Solution, Solution], "{last:?}");
    let GenerationEvent::Done(done) = last else { panic!("{last:?}") };
    assert_eq!((done.thought_tokens, done.overhead_tokens, done.solution_tokens), (1, 3, 2));
    engine.stop();
}

#[test]
fn a_hand_off_is_computed_in_a_step_or_two_however_long_it_is() {
    let engine = engine(&Settings { prefill_chunk: Some(128), ..settings() });
    let mut long = job(4, 1, 2);
    if let Some(thinking) = &mut long.phases.thinking {
        thinking.hand_off = vec![60; 100];
    }
    let before = engine.turns();
    assert_eq!(ids(&engine, long).len(), 1 + 100 + 2);
    let steps = engine.turns() - before;
    assert!(steps < 20, "{steps} turns for a hand-off of 100 tokens");
    engine.stop();
}

#[test]
fn equal_seeds_draw_equal_tokens_and_others_do_not() {
    let engine = engine(&settings());
    let warm = |seed| GenerationJob {
        sampling: SamplingParams { temperature: 1.5, top_k: 0, top_p: 1.0, min_p: 0.0, seed },
        ..job(4, 20, 20)
    };
    assert_eq!(ids(&engine, warm(1)), ids(&engine, warm(1)));
    assert_ne!(ids(&engine, warm(1)), ids(&engine, warm(2)));
    engine.stop();
}

#[test]
fn commands_are_recorded_while_the_device_does_the_step_before() {
    let gpu = Arc::new(Gpu::open(None, true).unwrap());
    let counts = Arc::clone(&gpu.counts);
    let engine = Engine::start_on(gpu, &gguf(TensorType::F32), &settings()).unwrap();
    let ahead = || counts.recorded_ahead.load(Ordering::Relaxed);
    let before = ahead();
    let alone = ids(&engine, job(4, 20, 20));
    let steps = alone.len() as u64;
    assert!((steps - 8..=steps).contains(&(ahead() - before)), "{} of {steps}", ahead() - before);
    // Texts that begin and end beside it: what was recorded does not fit, or does.
    let others: Vec<_> = (1..4).map(|n| engine.generate(job(3 * n, n, 5 * n)).unwrap()).collect();
    assert_eq!(ids(&engine, job(4, 20, 20)), alone);
    others.into_iter().for_each(|tokens| drop(finish(tokens)));
    engine.stop();
}

#[test]
fn a_software_driver_refuses_a_model_that_is_too_large_for_it_and_names_the_way() {
    if shared().info.kind != DeviceKind::Cpu {
        return;
    }
    let started = |most| {
        let settings = Settings { cpu_weights_max: Some(most), ..settings() };
        Engine::start_on(shared(), &gguf(TensorType::F32), &settings)
    };
    let error = started(10_000).unwrap_err().to_string();
    assert!(error.contains("`allow_cpu = true`") && error.contains("kind = \"llamacpp\""), "{error}");
    started(1_000_000).unwrap().stop();
}

#[test]
fn a_model_of_every_family_and_format_generates() {
    let plain = SyntheticModel { hidden: 256, feed_forward: 256, head_dim: 64, ..SyntheticModel::default() };
    let families = [plain.clone(), plain.clone().qwen2(), plain.clone().llama(), plain.qwen3moe(8, 2)];
    for (n, kind) in TensorType::ALL.into_iter().enumerate() {
        let synth = SyntheticModel { kind, ..families[n % families.len()].clone() };
        let gguf = Gguf::from_bytes(synth.bytes().into()).unwrap();
        let engine = Engine::start_on(shared(), &gguf, &settings()).unwrap();
        assert_eq!(ids(&engine, job(20, 3, 5)).len(), 3 + 3 + 5, "{kind:?}");
        engine.stop();
    }
}

#[test]
fn jobs_that_cannot_run_are_refused_with_the_reason() {
    let engine = engine(&settings());
    let refused = |job: GenerationJob| engine.generate(job).unwrap_err();
    assert_eq!(engine.context(), 128);
    assert_eq!(refused(job(60, 60, 6)), JobRejection::TooLong { needed: 129, context: 128 });
    assert!(matches!(refused(job(0, 1, 1)), JobRejection::Invalid(_)));
    assert!(matches!(refused(GenerationJob { prompt: vec![64], ..job(1, 1, 1) }), JobRejection::Invalid(_)));
    assert!(matches!(refused(GenerationJob { eos: vec![1; 9], ..job(1, 1, 1) }), JobRejection::Invalid(_)));
    let hot = SamplingParams { temperature: f32::NAN, ..GREEDY };
    assert!(matches!(refused(GenerationJob { sampling: hot, ..job(1, 1, 1) }), JobRejection::Invalid(_)));
    engine.stop();
    assert_eq!(refused(job(1, 1, 1)), JobRejection::Stopped);
    assert!(!engine.is_alive());
}

#[test]
fn a_full_queue_refuses_and_a_freed_one_takes_again() {
    let engine = engine(&Settings { sequences: 1, queue: 1, ..settings() });
    let first = engine.generate(job(4, 60, 50)).unwrap();
    let second = engine.generate(job(4, 1, 1)).unwrap();
    assert_eq!(engine.generate(job(4, 1, 1)).unwrap_err(), JobRejection::Busy);
    drop(first);
    finish(second);
    assert_eq!(finish(engine.generate(job(4, 1, 1)).unwrap()).0.len(), 5);
    engine.stop();
}

#[test]
fn a_job_that_goes_on_with_another_goes_before_those_that_have_not_begun() {
    let engine = engine(&Settings { sequences: 1, queue: 2, ..settings() });
    let mut first = engine.generate(job(4, 60, 50)).unwrap();
    assert!(has_begun(&mut first));
    let waits = engine.generate(job(4, 60, 50)).unwrap();
    let resumed = engine.generate(GenerationJob { priority: JobPriority::Resumes, ..job(4, 1, 1) }).unwrap();
    let one = finish(first).0.len() + 1;
    assert_eq!(finish(resumed).0.len(), 5);
    assert!(engine.load().counts.decoded < 2 * one as u64, "what waits has not been served before it");
    finish(waits);
    engine.stop();
}

#[test]
fn a_job_that_somebody_waits_for_goes_before_those_that_nobody_does() {
    let engine = engine(&Settings { sequences: 1, queue: 3, ..settings() });
    let mut first = engine.generate(job(4, 60, 50)).unwrap();
    assert!(has_begun(&mut first));
    let batch = |solution| GenerationJob { priority: JobPriority::Batch, ..job(4, 60, solution) };
    let waits = [50, 49].map(|solution| engine.generate(batch(solution)).unwrap());
    let interactive = engine.generate(job(4, 1, 1)).unwrap();
    let one = finish(first).0.len() + 1;
    assert_eq!(finish(interactive).0.len(), 5);
    assert!(engine.load().counts.decoded < 2 * one as u64, "no batch job has been served before it");
    let last = waits.map(|tokens| finish(tokens).1);
    assert!(last.iter().all(|last| matches!(last, GenerationEvent::Done(_))), "each of those has its turn");
    engine.stop();
}

#[test]
fn hanging_up_frees_the_cache_for_those_who_wait() {
    // The cache holds one such prompt, so the second can only run once the first's blocks are free.
    let engine = engine(&Settings { kv_tokens: 128, prefix_reuse: false, ..settings() });
    let mut first = engine.generate(job(60, 20, 2)).unwrap();
    assert!(has_begun(&mut first));
    let mut second = engine.generate(job(60, 20, 3)).unwrap();
    drop(first);
    assert!(has_begun(&mut second));
    drop(second);
    assert_eq!(finish(engine.generate(job(2, 1, 1)).unwrap()).0.len(), 5);
    engine.stop();
    let load = engine.load();
    assert_eq!((load.running, load.waiting, load.blocks_free), (0, 0, load.blocks_total));
}

/// What four jobs make that may each fill the cache, one after the other and all at once.
#[test]
fn who_has_to_stop_for_want_of_room_goes_on_with_the_same_tokens() {
    let small = Settings { kv_tokens: 160, prefix_reuse: false, ..settings() };
    let warm = SamplingParams { temperature: 1.0, top_k: 20, top_p: 0.9, min_p: 0.0, seed: 3 };
    for (sampling, grain) in [GREEDY, warm].into_iter().flat_map(|it| MODES.map(|grain| (it, grain))) {
        let engine = Engine::start_on(shared_as(grain), &gguf(TensorType::F32), &small).unwrap();
        let jobs: Vec<_> = (0..4).map(|n| GenerationJob { sampling, ..job(10 + n, 60, 30) }).collect();
        let alone: Vec<_> = jobs.iter().map(|job| finish(engine.generate(job.clone()).unwrap()).0).collect();
        assert_eq!(engine.load().counts.preempted, 0);
        let streams: Vec<_> = jobs.iter().map(|job| engine.generate(job.clone()).unwrap()).collect();
        let together: Vec<_> = streams.into_iter().map(|tokens| finish(tokens).0).collect();
        assert_eq!(alone, together);
        assert!(engine.load().counts.preempted > 0);
        engine.stop();
    }
}

/// How many tokens of its prompt a job found in the cache, and what it made.
fn reused(engine: &Engine, job: GenerationJob) -> (u32, Vec<GeneratedToken>) {
    let mut tokens = engine.generate(job).unwrap();
    let Some(GenerationEvent::PromptRead { reused, .. }) = tokens.blocking_next() else {
        panic!("the prompt is read first")
    };
    (reused, finish(tokens).0)
}

#[test]
fn what_was_read_before_is_read_no_more_and_makes_the_same_tokens() {
    let kinds = [TensorType::F32, TensorType::Q8_0];
    for (kind, grain) in kinds.into_iter().flat_map(|kind| MODES.map(|grain| (kind, grain))) {
        let start = |prefix_reuse| {
            let settings = Settings { prefix_reuse, ..settings() };
            Engine::start_on(shared_as(grain), &gguf(kind), &settings).unwrap()
        };
        let (with, without) = (start(true), start(false));
        let mut text = GenerationJob { phases: PhaseBudgets::without_thinking(22), ..job(50, 0, 0) };
        for (found, turn) in [(0, 1), (64, 2), (80, 3)] {
            let again = reused(&with, text.clone());
            let anew = reused(&without, text.clone());
            assert_eq!((again.0, anew.0), (found, 0), "{kind:?}, {grain:?}, turn {turn}");
            assert_eq!(again.1, anew.1, "{kind:?}, {grain:?}, turn {turn}");
            text.prompt.extend(again.1.iter().map(|token| token.id));
            text.prompt.truncate(text.prompt.len() - 3);
            text.phases = PhaseBudgets::without_thinking(17);
        }
        assert_eq!(with.load().counts.reused, 64 + 80);
        let other = GenerationJob { scope: CacheScope::of("another".into()), ..text };
        assert_eq!(reused(&with, other).0, 0, "nobody finds what others asked");
        with.stop();
        without.stop();
    }
}

/// Which of these jobs, taken in at once, had its prompt read alone.
fn read_alone(engine: &Engine, jobs: Vec<GenerationJob>) -> Vec<bool> {
    // All of them are there before the next step.
    engine.inject(InjectedFault::Hang(std::time::Duration::from_millis(300)));
    let streams: Vec<_> = jobs.into_iter().map(|job| engine.generate(job).unwrap()).collect();
    let is_alone = |mut stream: TokenStream| match stream.blocking_next() {
        Some(GenerationEvent::PromptRead { alone, .. }) => alone,
        other => panic!("{other:?}"),
    };
    streams.into_iter().map(is_alone).collect()
}

#[test]
fn a_prompt_that_waits_for_others_or_is_read_beside_them_says_so() {
    let engine = engine(&settings());
    let other = |first| GenerationJob { prompt: (first..first + 40).collect(), ..job(1, 2, 2) };
    assert_eq!(read_alone(&engine, vec![other(1)]), [true]);
    // The choices of one request: one reads, the others take it from the cache.
    assert_eq!(read_alone(&engine, vec![other(2), other(2), other(2)]), [true, false, false]);
    // The first is read first, and hardly slower for the second.
    assert_eq!(read_alone(&engine, vec![other(3), other(4)]), [true, false]);
    assert_eq!(
        read_alone(&engine, vec![other(6), GenerationJob { prompt: vec![7; 20], ..job(1, 2, 2) }]),
        [false, false]
    );
    assert_eq!(read_alone(&engine, vec![other(5)]), [true]);
}

#[test]
fn stopping_ends_every_stream_with_a_last_word() {
    let engine = engine(&Settings { sequences: 1, ..settings() });
    let running = engine.generate(job(4, 60, 50)).unwrap();
    let waiting = engine.generate(job(4, 60, 50)).unwrap();
    engine.stop();
    for tokens in [running, waiting] {
        let (_, last) = finish(tokens);
        assert!(
            matches!(last, GenerationEvent::Failed(EngineError::Stopped) | GenerationEvent::Done(_)),
            "{last:?}"
        );
    }
}

#[test]
fn a_lost_device_ends_the_stream_instead_of_hanging() {
    let gpu = Arc::new(Gpu::open(None, true).unwrap());
    let engine = Engine::start_on(Arc::clone(&gpu), &gguf(TensorType::F32), &settings()).unwrap();
    let mut tokens = engine.generate(job(4, 60, 50)).unwrap();
    tokens.blocking_next();
    gpu.device.destroy();
    let (_, last) = finish(tokens);
    assert!(matches!(last, GenerationEvent::Failed(_)), "{last:?}");
    // A moment may pass before the thread has told its handles.
    while engine
        .generate(job(1, 1, 1))
        .is_ok_and(|tokens| !matches!(finish(tokens).1, GenerationEvent::Failed(_)))
    {}
    engine.stop();
}

#[test]
fn a_model_gets_as_large_a_cache_as_there_is_memory_for_or_is_refused_before_it_is_loaded() {
    let long = SyntheticModel { context: 8192, ..SyntheticModel::default() };
    let gguf = Gguf::from_bytes(long.bytes().into()).unwrap();
    let start = |memory_max| {
        let settings = Settings { kv_tokens: 4096, memory_max, ..settings() };
        Engine::start_on(shared(), &gguf, &settings)
    };
    let plenty = start(None).unwrap();
    let all = plenty.memory_bytes();
    assert_eq!((plenty.kv_tokens(), plenty.context()), (4096, 4096));
    plenty.stop();
    let tight = start(Some(all - 1)).unwrap();
    assert_eq!((tight.kv_tokens(), tight.context()), (4080, 4080));
    assert!(tight.memory_bytes() < all && ids(&tight, job(20, 3, 5)).len() == 11);
    tight.stop();
    let error = start(Some(all / 8)).unwrap_err();
    assert!(matches!(error, EngineError::TooLargeForDevice { tokens: 1024, .. }), "{error}");
    assert!(error.to_string().contains("`memory_max`"), "{error}");
}

#[test]
fn settings_that_the_device_cannot_meet_are_refused() {
    let start =
        |settings: &Settings| Engine::start_on(shared(), &gguf(TensorType::F32), settings).unwrap_err();
    let message = start(&Settings { kv_tokens: 8, ..settings() }).to_string();
    assert!(message.contains("kv_tokens"), "{message}");
    assert!(start(&Settings { sequences: 0, ..settings() }).to_string().contains("sequences"));
    let other = Gguf::from_static(b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0").unwrap();
    let error = Engine::start_on(shared(), &other, &settings()).unwrap_err();
    assert!(error.to_string().contains("qwen3"), "{error}");
}

/// A model with three slots of 64 positions, their blocks interleaved.
fn model(kind: TensorType, grain: DeviceMode, kv_format: KvFormat) -> EngineModel {
    let gguf = gguf(kind);
    let shape = ModelShape::read(&gguf).unwrap();
    let extent = EngineCapacity { slots: 3, rows: 200, context: 64, blocks: 12, kv_format };
    let model = EngineModel::load(shared_as(grain), &gguf, &shape, extent).unwrap();
    let machine = PhaseMachine::new(PhaseBudgets::without_thinking(9), vec![]);
    for slot in 0..3 {
        let blocks: Vec<_> = (0..64 / BLOCK).map(|n| n * 3 + slot).rev().collect();
        model.init_slot(slot, &slot_words(&machine, GREEDY));
        model.update_table(slot, 0, &blocks);
    }
    model
}

/// Rows of a slot's text, whose tokens depend on slot and position.
fn rows(slot: u32, positions: std::ops::Range<u32>) -> Vec<BatchRow> {
    positions.map(|position| BatchRow { token: (position * 7 + slot * 13) % 64, slot, position }).collect()
}

/// The bits of the logits after the last of these rows.
fn last(model: &EngineModel, rows: Vec<BatchRow>) -> Vec<u32> {
    let pick = u32::try_from(rows.len() - 1).unwrap();
    let logits = model.logits(&ForwardBatch { rows, picks: vec![pick] }).unwrap();
    logits[0].iter().map(|logit| logit.to_bits()).collect()
}

/// All that a result's bits may depend on, beside the sequence itself.
fn kinds_and_grains() -> impl Iterator<Item = (TensorType, DeviceMode, KvFormat)> {
    let kinds = [TensorType::F32, TensorType::F16, TensorType::Q8_0].into_iter();
    kinds.flat_map(|kind| {
        MODES.into_iter().flat_map(move |grain| {
            [KvFormat::F16, KvFormat::F32, KvFormat::Q8_0].map(|format| (kind, grain, format))
        })
    })
}

#[test]
fn a_prompt_in_chunks_has_the_same_bits_as_in_one_piece() {
    for (kind, grain, format) in kinds_and_grains() {
        let model = model(kind, grain, format);
        let whole = last(&model, rows(0, 0..50));
        for chunk in [1, 2, 15, 16, 17, 49] {
            let mut bits = Vec::new();
            for at in (0..50).step_by(chunk as usize) {
                bits = last(&model, rows(0, at..(at + chunk).min(50)));
            }
            assert_eq!(bits, whole, "{kind:?}, {grain:?}, {format:?}, chunks of {chunk}");
        }
    }
}

/// Attention goes over such a prompt in two splits.
#[test]
fn a_prompt_of_several_splits_has_the_same_bits_in_chunks_and_beside_others() {
    let synth = SyntheticModel { context: 512, ..SyntheticModel::default() };
    let gguf = Gguf::from_bytes(synth.bytes().into()).unwrap();
    let shape = ModelShape::read(&gguf).unwrap();
    for (grain, kv_format) in
        MODES.into_iter().flat_map(|grain| [(grain, KvFormat::F16), (grain, KvFormat::Q8_0)])
    {
        let extent = EngineCapacity { slots: 2, rows: 400, context: 400, blocks: 50, kv_format };
        let model = EngineModel::load(shared_as(grain), &gguf, &shape, extent).unwrap();
        for slot in 0..2 {
            model.update_table(slot, 0, &(slot * 25..slot * 25 + 25).collect::<Vec<_>>());
        }
        let whole = last(&model, rows(0, 0..300));
        for chunk in [100, 257] {
            last(&model, rows(0, 0..chunk));
            let beside = [rows(1, 0..40), rows(0, chunk..299)].concat();
            last(&model, beside);
            assert_eq!(last(&model, rows(0, 299..300)), whole, "{grain:?}, {kv_format:?}, first {chunk}");
        }
    }
}

#[test]
fn a_sequence_has_the_same_bits_alone_and_in_a_batch() {
    for (kind, grain, format) in kinds_and_grains() {
        let alone = |(slot, length)| last(&model(kind, grain, format), rows(slot, 0..length));
        let alone = [(0, 33), (1, 50), (2, 7)].map(alone);
        let model = model(kind, grain, format);
        let all = [rows(0, 0..33), rows(1, 0..50), rows(2, 0..7)].concat();
        let logits = model.logits(&ForwardBatch { rows: all, picks: vec![32, 82, 89] }).unwrap();
        for (alone, among) in alone.iter().zip(&logits) {
            let among: Vec<_> = among.iter().map(|logit| logit.to_bits()).collect();
            assert_eq!(*alone, among, "{kind:?}, {grain:?}, {format:?}");
        }
    }
}

/// How far some logits are from others, in standard deviations of those: the root of the mean of squares.
fn distance(some: &[f32], others: &[f32]) -> f64 {
    let mean = others.iter().map(|logit| f64::from(*logit)).sum::<f64>() / others.len() as f64;
    let spread = others.iter().map(|logit| (f64::from(*logit) - mean).powi(2)).sum::<f64>();
    let off = some.iter().zip(others).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
    (off / spread).sqrt()
}

/// The logits after 40 tokens, of a random model of such weights.
fn logits_after_some(kind: TensorType, mode: DeviceMode, kv_format: KvFormat) -> Vec<f32> {
    let synth = SyntheticModel {
        hidden: 256,
        feed_forward: 512,
        head_dim: 64,
        layers: 4,
        kind,
        ..SyntheticModel::default()
    };
    let gguf = Gguf::from_bytes(synth.bytes().into()).unwrap();
    let shape = ModelShape::read(&gguf).unwrap();
    let extent = EngineCapacity { slots: 1, rows: 64, context: 64, blocks: 4, kv_format };
    let model = EngineModel::load(shared_as(mode), &gguf, &shape, extent).unwrap();
    model.update_table(0, 0, &[0, 1, 2, 3]);
    let read = ForwardBatch { rows: rows(0, 0..40), picks: vec![39] };
    model.logits(&read).unwrap().concat()
}

#[test]
fn activations_in_bytes_move_logits_by_a_few_hundredths_of_what_they_differ_by() {
    for kind in [TensorType::Q8_0, TensorType::Q4_0, TensorType::Q4K, TensorType::Q6K] {
        let [bytes, floats] =
            [DeviceMode::Gpu, DeviceMode::GpuFloats].map(|mode| logits_after_some(kind, mode, KvFormat::F32));
        let distance = distance(&bytes, &floats);
        assert!((1e-6..0.05).contains(&distance), "{kind:?}: {distance}");
    }
}

#[test]
fn the_kernels_of_a_step_are_timed_as_often_as_they_are_dispatched() {
    let model = model(TensorType::Q8_0, DeviceMode::Gpu, KvFormat::F16);
    let before = model.dispatches();
    let times = match model.time_dispatches(&ForwardBatch { rows: rows(0, 0..5), picks: vec![4] }) {
        Ok(times) => times,
        // Not every device has a clock.
        Err(error) => return assert!(error.to_string().contains("clock"), "{error}"),
    };
    assert_eq!(times.len() as u64, model.dispatches() - before);
    assert!(times.iter().any(|(name, _)| name == "matmul of bytes for 8"), "{times:?}");
    assert!(times.iter().all(|(_, seconds)| (0.0..10.0).contains(seconds)), "{times:?}");
}
