//! Providers that do not hold their limits, or say other than what they write: every dialect in each of its ways.

mod liar;
mod slow;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::harness::alone::is_alone;
use crate::harness::{Answer, World, model, tenant};
use stint_backend::Backend;
use stint_backend::remote::anthropic::{self, AnthropicBackend};
use stint_backend::remote::gemini::{self, GeminiBackend};
use stint_backend::remote::llamacpp::{self, LlamaCppBackend};
use stint_backend::remote::openai::{self, Dialect, OpenAiBackend};
use stint_backend::remote::responses::{self, OpenAiResponsesBackend};
use stint_backend::remote::vllm::VllmBackend;
use stint_backend::remote::{self, Connections};
use stint_types::catalog::{EnforcementClass, HandOff, Model};
use stint_types::units::Tokens;

use liar::{Liar, Lie, Speech};

/// What the caller allows of the answer, and of the thought where one is wanted: the least that OpenAI's Responses take.
const LIMIT: u64 = 16;
/// The most that is written in sight before a call is hung up on.
const TOLERATED: u64 = LIMIT + LIMIT / 10 + 32;
/// What the key has, in nano-dollars.
const FUNDS: u64 = 20_000;

/// A dialect, and how it holds a thought.
#[derive(Debug, Clone, Copy)]
enum Way {
    Chat(fn() -> Dialect, EnforcementClass),
    Raw,
    LlamaCpp,
    Anthropic(EnforcementClass),
    Gemini,
    Responses,
}

const WAYS: [Way; 23] = [
    Way::Chat(Dialect::openai, EnforcementClass::Effort),
    Way::Chat(Dialect::xai, EnforcementClass::Effort),
    Way::Chat(Dialect::deepseek, EnforcementClass::Continue),
    Way::Chat(Dialect::deepseek, EnforcementClass::Turn),
    Way::Chat(Dialect::mistral, EnforcementClass::Continue),
    Way::Chat(Dialect::mistral, EnforcementClass::Turn),
    Way::Chat(Dialect::dashscope, EnforcementClass::Native),
    Way::Chat(Dialect::dashscope, EnforcementClass::Turn),
    Way::Chat(Dialect::openrouter, EnforcementClass::Native),
    Way::Chat(Dialect::openrouter, EnforcementClass::Turn),
    Way::Chat(Dialect::vllm, EnforcementClass::Native),
    Way::Chat(Dialect::vllm, EnforcementClass::Turn),
    Way::Chat(Dialect::sglang, EnforcementClass::Native),
    Way::Chat(Dialect::sglang, EnforcementClass::Continue),
    Way::Chat(Dialect::sglang, EnforcementClass::Turn),
    Way::Chat(Dialect::llamacpp, EnforcementClass::Native),
    Way::Chat(Dialect::ollama, EnforcementClass::Turn),
    Way::Raw,
    Way::LlamaCpp,
    Way::Anthropic(EnforcementClass::Native),
    Way::Anthropic(EnforcementClass::Turn),
    Way::Gemini,
    Way::Responses,
];

impl Way {
    fn speech(self) -> Speech {
        match self {
            Way::Chat(..) => Speech::Chat,
            Way::Raw => Speech::Raw,
            Way::LlamaCpp => Speech::LlamaCpp,
            Way::Anthropic(_) => Speech::Anthropic,
            Way::Gemini => Speech::Gemini,
            Way::Responses => Speech::Responses,
        }
    }

    fn class(self) -> EnforcementClass {
        match self {
            Way::Chat(_, class) | Way::Anthropic(class) => class,
            Way::Raw | Way::LlamaCpp => EnforcementClass::Continue,
            Way::Gemini => EnforcementClass::Native,
            Way::Responses => EnforcementClass::Effort,
        }
    }

    fn backend(self, liar: &Liar) -> Arc<dyn Backend> {
        let base_url = match self {
            Way::LlamaCpp => liar.address.clone(),
            _ => format!("{}/v1", liar.address),
        };
        self.backend_at(remote::Settings { base_url, ..remote::Settings::default() })
    }

    fn backend_at(self, client: remote::Settings) -> Arc<dyn Backend> {
        let connections = Connections::default();
        let (name, model) = (Arc::<str>::from("m"), "m".to_owned());
        let chat = |dialect| openai::Settings {
            client: client.clone(),
            name: name.clone(),
            model: model.clone(),
            dialect,
            ..openai::Settings::default()
        };
        match self {
            Way::Chat(dialect, _) => Arc::new(OpenAiBackend::new(&connections, chat(dialect())).unwrap()),
            Way::Raw => Arc::new(VllmBackend::new(&connections, chat(Dialect::vllm())).unwrap()),
            Way::LlamaCpp => {
                let settings = llamacpp::Settings { client, ..llamacpp::Settings::default() };
                Arc::new(LlamaCppBackend::new(&connections, settings).unwrap())
            }
            Way::Anthropic(_) => {
                let settings = anthropic::Settings { client, name, model, ..anthropic::Settings::default() };
                Arc::new(AnthropicBackend::new(&connections, settings).unwrap())
            }
            Way::Gemini => {
                let settings = gemini::Settings { client, name, model, ..gemini::Settings::default() };
                Arc::new(GeminiBackend::new(&connections, settings).unwrap())
            }
            Way::Responses => {
                let settings = responses::Settings { client, name, model, ..responses::Settings::default() };
                Arc::new(OpenAiResponsesBackend::new(&connections, settings).unwrap())
            }
        }
    }
}

/// The gateway before one liar.
struct Scene {
    liar: Liar,
    thinking: u64,
    world: World,
}

impl Scene {
    async fn new(way: Way, lie: Lie, thinks: bool) -> Scene {
        let liar = Liar::start(way.speech(), lie, thinks);
        let nothing =
            HandOff { text: String::new(), overhead: Tokens(0), overhead_without_thought: Tokens(0) };
        let classes = match way {
            Way::Anthropic(EnforcementClass::Native) => {
                vec![EnforcementClass::Native, EnforcementClass::Turn]
            }
            _ => vec![way.class()],
        };
        let model = Model { classes, hand_off: nothing, ..model("m", way.class()) };
        let world = World::with(vec![(model, way.backend(&liar))], vec![tenant("t", FUNDS)], |_| ()).await;
        // Anthropic's models think so much at least, or not at all.
        let thinking = if matches!(way, Way::Anthropic(_)) { 1_024 } else { LIMIT };
        Scene { liar, thinking, world }
    }

    async fn ask(&self, thinks: bool, stream: bool) -> Answer {
        let thinking = if thinks { self.thinking } else { 0 };
        let body = json!({
            "model": "m",
            "messages": [{ "role": "user", "content": "What is it?" }],
            "budget": { "thinking_tokens": thinking, "solution_tokens": LIMIT },
            "stream": stream,
        });
        self.world.ask("sk-t", &body).await
    }

    async fn spent(&self) -> u64 {
        self.world.settled().await;
        self.world.account("t").spent.money.0
    }

    fn overruns(&self) -> u64 {
        self.world.metrics.backends.overruns.with_label_values(&["m", "0"]).get()
    }
}

/// What was said, and the entry about the answer, of an answer that came whole or as a stream.
fn read(answer: &Answer, stream: bool) -> (String, Value, Value) {
    if !stream {
        let whole = answer.json();
        let choice = &whole["choices"][0];
        let text = choice["message"]["content"].as_str().unwrap_or_default().to_owned();
        return (text, choice["finish_reason"].clone(), whole["budget"]["solution"].clone());
    }
    let chunks = answer.chunks().all;
    let text = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    let last = chunks.iter().find(|chunk| !chunk["budget"].is_null()).cloned().unwrap_or_default();
    (text, last["choices"][0]["finish_reason"].clone(), last["budget"]["solution"].clone())
}

/// Pages of this process that are in memory, in bytes.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

/// What is defensible to book: each of two calls reads its prompt and the thought before it, and writes what is tolerated.
fn booked_max(thinking: u64) -> u64 {
    2 * (600 + 2 * thinking + 4 * (2 * thinking + 2 * TOLERATED + 64))
}

async fn check_answer(way: Way, lie: Lie, stream: bool) {
    let scene = Scene::new(way, lie, false).await;
    let answer = scene.ask(false, stream).await;
    let what = format!(
        "{way:?} {lie:?} stream={stream}: {} {}",
        answer.status,
        &answer.text[..answer.text.len().min(900)]
    );
    let spent = scene.spent().await;
    assert!(spent <= booked_max(0), "{what}: {spent} booked");
    if lie == Lie::GiantEvent {
        assert!(answer.status == 502 || answer.text.contains("upstream_failed"), "{what}");
        return;
    }
    let (text, finish, solution) = read(&answer, stream);
    assert!(text.len() as u64 <= 8 * LIMIT, "{what}: {} bytes", text.len());
    assert!(solution["used"].as_u64().is_some_and(|used| used <= TOLERATED), "{what}");
    match lie {
        // Who hears it in between, or waits for the end of the stream, hangs up on it.
        Lie::Growing | Lie::AfterEnd => {
            assert!(solution["ended"] == "stop" || solution["ended"] == "upstream", "{what}");
        }
        _ if lie.is_short() => {
            assert_eq!((finish, solution["ended"].as_str()), (json!("stop"), Some("stop")), "{what}");
        }
        _ => {
            assert_eq!(finish, "length", "{what}");
            // Who counts each token is held to the token, before it is clear that it would have gone on.
            let counted = matches!(way, Way::Raw | Way::LlamaCpp);
            let huge = lie == Lie::HugeEvents;
            let ended = if counted && !huge { "caller" } else { "upstream" };
            assert_eq!(solution["ended"], ended, "{what}");
            assert_eq!(scene.overruns() > 0, ended == "upstream", "{what}");
        }
    }
    scene.world.stop().await;
    // What was on its way already is not to be had back.
    let written = scene.liar.written.load(Ordering::SeqCst);
    assert!(!matches!(lie, Lie::NeverEnds | Lie::AfterEnd) || written < 200_000, "{what}: {written} texts");
}

#[tokio::test]
async fn no_answer_goes_beyond_its_limit_whatever_the_provider_does_and_says() {
    for way in WAYS {
        for lie in Lie::ALL {
            for stream in [false, true] {
                check_answer(way, lie, stream).await;
            }
        }
    }
}

#[tokio::test]
async fn what_is_held_of_an_answer_without_end_is_bounded() {
    if !is_alone("lying::what_is_held_of_an_answer_without_end_is_bounded") {
        return;
    }
    for way in [
        WAYS[0],
        WAYS[2],
        Way::Raw,
        Way::LlamaCpp,
        Way::Anthropic(EnforcementClass::Turn),
        Way::Gemini,
        Way::Responses,
    ] {
        for lie in [Lie::NeverEnds, Lie::HugeEvents] {
            let scene = Scene::new(way, lie, false).await;
            scene.ask(false, false).await;
            let before = resident();
            for stream in [false, true, false, true] {
                scene.ask(false, stream).await;
            }
            let grown = resident().saturating_sub(before);
            assert!(grown < 64 << 20, "{way:?} {lie:?}: {grown} bytes more are held");
            scene.world.stop().await;
        }
    }
}

#[tokio::test]
async fn no_thought_goes_beyond_its_budget_whatever_the_provider_does_and_says() {
    for way in WAYS {
        for lie in Lie::ALL {
            let scene = Scene::new(way, lie, true).await;
            let answer = scene.ask(true, false).await;
            let what =
                format!("{way:?} {lie:?}: {} {}", answer.status, &answer.text[..answer.text.len().min(900)]);
            let spent = scene.spent().await;
            assert!(spent <= booked_max(scene.thinking), "{what}: {spent} booked");
            // All that it ever writes is thought; servers of open models take it for the answer where the answer was
            // continued.
            if answer.status == 200 {
                let (text, _, _) = read(&answer, false);
                let may = lie.is_short()
                    || lie == Lie::AfterEnd
                    || matches!(way, Way::Chat(_, EnforcementClass::Continue) | Way::Raw | Way::LlamaCpp);
                assert!(text.len() as u64 <= 8 * LIMIT && may, "{what}");
            } else {
                assert_eq!(answer.status, 502, "{what}");
            }
        }
    }
}
