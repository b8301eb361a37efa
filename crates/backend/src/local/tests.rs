//! Tests with the real engine and the real embedded model.

use std::path::Path;

use futures_util::StreamExt;

use crate::{GenerationEnd, Retry, TagEdge, TokenUsage};
use stint_engine::InjectedFault;
use stint_gguf::Gguf;
use stint_prompt::Vocabulary;
use stint_types::catalog::EnforcementClass;
use stint_types::chat::{Message, Role};

use super::*;

fn local() -> LocalBackend {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("models/reasoner.gguf");
    let file = Gguf::open(&path).unwrap();
    let vocabulary = Vocabulary::from_gguf(&file).unwrap();
    let format = PromptFormat::new(&vocabulary, "<think>", "</think>").unwrap();
    let settings =
        engine::Settings { sequences: 2, kv_tokens: 512, allow_cpu: true, ..engine::Settings::default() };
    let again = Box::new(move || Ok(Gguf::open(&path)?));
    let engine = PooledEngine::start(&file, again, &settings, Box::new(|_| ())).unwrap();
    LocalBackend::new(engine, Arc::new(format), Settings::default()).unwrap()
}

fn call(text: &str, part: GenerationPart) -> BackendCall {
    let request = Request {
        sampling: stint_types::chat::SamplingOptions {
            temperature: Some(0.0),
            ..stint_types::chat::SamplingOptions::default()
        },
        ..Request::new("m", vec![Message::text(Role::User, text)])
    };
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

async fn run(local: &LocalBackend, part: GenerationPart) -> Vec<Piece> {
    let generation = local.generate(call("12+30*4?", part)).await.unwrap();
    generation.map(Result::unwrap).collect().await
}

fn whole(thinking: u64, solution: u64) -> GenerationPart {
    GenerationPart::Whole { thinking: Tokens(thinking), solution: Tokens(solution) }
}

#[test]
fn a_hand_off_that_the_engine_has_no_room_for_is_refused_before_any_request() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("models/reasoner.gguf");
    let vocabulary = Vocabulary::from_gguf(&Gguf::open(&path).unwrap()).unwrap();
    let format = PromptFormat::new(&vocabulary, "<think>", "</think>").unwrap();
    let of = |hand_off: String| Settings { hand_off, ..Settings::default() }.hand_off_tokens(&format);
    assert_eq!(of("\n</think>\n\n".to_owned()).unwrap().len(), 3);
    let refused = of("1+".repeat(2000) + "</think>");
    assert!(matches!(refused, Err(PromptError::HandOffTooLong { max: 256, .. })), "{refused:?}");
}

#[test]
fn what_stands_beside_the_budgets_is_counted_in_the_model_s_own_tokens() {
    // The end of the text, and two tokens of the template that close an empty thought.
    let expected = LocalModelLimits {
        context: Tokens(512),
        context_wanted: Tokens(512),
        overhead: Tokens(5),
        unthinking_overhead: Tokens(3),
        thinks: true,
    };
    assert_eq!(local().limits(), expected);
}

/// The thought, what else came in short, and the answer without the blank before it.
fn read(pieces: &[Piece]) -> (String, Vec<u32>, String, String) {
    let (mut thought, mut ids, mut rest, mut answer) =
        (String::new(), Vec::new(), String::new(), String::new());
    for piece in pieces {
        match piece {
            Piece::Thought { text, ids: more, .. } => {
                thought.push_str(text);
                ids.extend(more);
            }
            Piece::Answer { text, .. } => answer.push_str(text),
            Piece::Tag { edge: TagEdge::Start, .. } => rest.push_str("start "),
            Piece::Tag { edge: TagEdge::End, .. } => rest.push_str("closed "),
            Piece::HandOff { .. } => rest.push_str("hand "),
            Piece::End(GenerationEnd::Stop { tokens }) => rest.push_str(&format!("stop{tokens}")),
            Piece::End(ending) => rest.push_str(&format!("{ending:?}")),
            Piece::Usage(_)
            | Piece::Summary(_)
            | Piece::Signed(_)
            | Piece::Remark(_)
            | Piece::Unthought
            | Piece::Logprobs(_)
            | Piece::Note(_)
            | Piece::ToolCall(_) => {}
        }
    }
    (thought, ids, rest, answer.trim_start().to_owned())
}

#[tokio::test]
async fn a_thought_that_is_cut_is_gone_on_with_before_its_model_is_let_go() {
    let local = local();
    let at_once = stint_engine::Residency { load_on_startup: false, keep_alive: Some(Duration::ZERO) };
    local.engine.activate(at_once).unwrap();
    let mut thinking = local.generate(call("12+30*4?", whole(60, 20))).await.unwrap();
    while !matches!(thinking.next().await.unwrap().unwrap(), Piece::Thought { .. }) {}
    let loads = local.engine.totals().loads;
    drop(thinking);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(local.engine.is_loaded());
    let thought = Thought { text: "30*4=1".into(), ..Thought::default() }.into();
    run(&local, GenerationPart::Solution { thought, answer: String::new(), solution: Tokens(4) }).await;
    assert_eq!(local.engine.totals().loads, loads);
    // An answer that has come to its end keeps nothing: that of the cut one has passed.
    tokio::time::sleep(Duration::from_millis(2500)).await;
    run(&local, whole(0, 2)).await;
    let ended = std::time::Instant::now();
    while local.engine.is_loaded() {
        assert!(ended.elapsed() < Duration::from_millis(1500), "{:?}", ended.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn the_embedded_model_thinks_answers_and_is_cut_to_the_token() {
    let local = local();
    let pieces = run(&local, whole(60, 20)).await;
    let (thought, ids, rest, answer) = read(&pieces);
    assert!(thought.starts_with("30*4=120\n") && thought.ends_with("=132\n"), "{thought}");
    assert_eq!((rest.as_str(), answer.as_str()), ("closed stop1", "132"));

    let (cut, cut_ids, rest, _) = read(&run(&local, whole(7, 4)).await);
    assert_eq!((cut.as_str(), &cut_ids[..]), ("30*4=12", &ids[..7]));
    assert!(rest.starts_with("hand hand hand "), "{rest}");

    let (none, _, rest, _) = read(&run(&local, whole(0, 20)).await);
    assert_eq!((none.as_str(), rest.as_str()), ("", "stop1"));

    assert!(matches!(pieces[0], Piece::Usage(_)), "the prompt is known before the first token");
    let prompt = local.prompt_tokens(&call("12+30*4?", whole(1, 1)).request);
    let Some(Piece::Usage(usage)) = pieces.iter().rfind(|piece| matches!(piece, Piece::Usage(_))) else {
        panic!("no usage in {pieces:?}")
    };
    let thinking = Tokens(ids.len() as u64);
    // The tag, a blank line, the answer's digits, the end of text.
    let completion = thinking + Tokens(1 + 1 + 3 + 1);
    assert_eq!(*usage, TokenUsage { prompt, completion, thinking: Some(thinking), ..TokenUsage::default() });
    assert!(local.conditions().token > 0.0 && local.conditions().healthy);

    // A thought that somebody else cut goes on from its ids: with the hand-off, or from its own end.
    let thought = |closed| Thought { ids: ids.clone(), text: String::new(), closed };
    let part = |closed| GenerationPart::after_thought(thought(closed), Tokens(20));
    let (_, _, rest, answer) = read(&run(&local, part(true)).await);
    assert_eq!((rest.as_str(), answer.as_str()), ("stop1", "132"));
    let (_, _, rest, _) = read(&run(&local, part(false)).await);
    assert!(rest.starts_with("hand hand hand "), "{rest}");
}

#[tokio::test]
async fn what_does_not_fit_the_context_has_its_own_code() {
    let local = local();
    let failure = local.generate(call(&"1+".repeat(400), whole(60, 20))).await.err().unwrap();
    assert_eq!((failure.fault, failure.code), (Fault::Caller, Some("context_length_exceeded")));
    assert!(failure.unsent);
    let failure = local
        .generate(call("1+1", GenerationPart::Thought { thinking: Tokens(1), solution: Tokens(8) }))
        .await
        .err()
        .unwrap();
    assert_eq!((failure.fault, failure.unsent), (Fault::Caller, true));
}

#[tokio::test]
async fn a_dead_engine_is_not_healthy_and_refuses_by_its_own_fault() {
    let local = local();
    let ask = || local.generate(call(&"1+".repeat(400), whole(60, 20)));
    for _ in 0..3 {
        assert_eq!(ask().await.err().unwrap().fault, Fault::Caller);
    }
    assert!(local.conditions().healthy, "a caller's mistakes are not the engine's");
    local.engine.stop();
    assert!(!local.conditions().healthy);
    assert_eq!(ask().await.err().unwrap().fault, Fault::Backend);
    assert_eq!(&*local.outage().unwrap().reason, "the engine was stopped");
}

#[tokio::test]
async fn while_an_engine_is_started_again_another_model_may_be_asked_at_once() {
    let local = local();
    local.engine.inject(InjectedFault::LoseDevice);
    let in_flight = local.generate(call("1+1", whole(60, 20))).await;
    let pieces: Vec<_> = match in_flight {
        Ok(generation) => generation.collect().await,
        Err(refused) => vec![Err(refused)],
    };
    let check = |failure: &Failure, unsent| {
        assert_eq!((failure.fault, failure.code), (Fault::Backend, Some(ENGINE_RESTARTING)));
        assert_eq!((failure.retry, failure.unsent), (Retry::Elsewhere, unsent), "{failure:?}");
        assert!(failure.retry_after > Some(Duration::ZERO));
    };
    check(pieces.last().unwrap().as_ref().unwrap_err(), false);
    let outage = local.outage().unwrap();
    assert_eq!(&*outage.reason, "the GPU was lost; the engine is started again");
    assert!(outage.retry_in.is_some() && !local.conditions().healthy);
    check(&local.generate(call("1+1", whole(60, 20))).await.err().unwrap(), true);
    let back = async {
        while local.outage().is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), back).await.expect("it is back within 10 s");
    assert_eq!(read(&run(&local, whole(60, 20)).await).3, "132");
}

#[tokio::test]
async fn choices_of_one_prompt_teach_the_time_of_reading_it_once() {
    let local = local();
    let long = "1+".repeat(60) + "1?";
    // Both are taken in before the engine goes on.
    local.engine.inject(InjectedFault::Hang(Duration::from_millis(300)));
    let both = [0, 1].map(|_| local.generate(call(&long, whole(0, 4))));
    for generation in futures_util::future::join_all(both).await {
        let pieces: Vec<_> = generation.unwrap().collect().await;
        assert!(matches!(pieces.last(), Some(Ok(Piece::End(_)))), "{pieces:?}");
    }
    assert_eq!(local.speed.prompts_measured(), 1);
}
