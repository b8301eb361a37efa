//! Every dialect of chat completions, against a provider that keeps its own books.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::harness::emulators::chat::{Emulator, Kind, Record, Script};
use crate::harness::{Answer, Folder, World, auto, model, tenant};
use stint::gateway::LearnSettings;
use stint_backend::Backend;
use stint_backend::remote::openai::{Dialect, OpenAiBackend, Settings, ThinkingSwitch};
use stint_backend::remote::vllm::VllmBackend;
use stint_backend::remote::{self, Connections};
use stint_sessions::history::MemoryHistoryStore;
use stint_types::catalog::{Capability, EnforcementClass, HandOff, Model};
use stint_types::units::{Money, Tokens};

/// The thinking budget.
const T: u64 = 20;
/// The solution budget.
const S: u64 = 8;

/// What each provider has.
const PROVIDERS: [(Kind, &[EnforcementClass]); 10] = [
    (Kind::DeepSeek, &[EnforcementClass::Continue, EnforcementClass::Turn]),
    (Kind::DashScope, &[EnforcementClass::Native, EnforcementClass::Turn]),
    (Kind::OpenRouter, &[EnforcementClass::Native, EnforcementClass::Turn]),
    (Kind::Vllm, &[EnforcementClass::Native, EnforcementClass::Continue, EnforcementClass::Turn]),
    (Kind::Sglang, &[EnforcementClass::Native, EnforcementClass::Continue, EnforcementClass::Turn]),
    (Kind::LlamaCpp, &[EnforcementClass::Native, EnforcementClass::Continue, EnforcementClass::Turn]),
    (Kind::Mistral, &[EnforcementClass::Continue, EnforcementClass::Turn]),
    (Kind::Xai, &[EnforcementClass::Effort]),
    (Kind::Ollama, &[EnforcementClass::Turn]),
    (Kind::OpenAi, &[EnforcementClass::Effort]),
];

fn dialect(kind: Kind) -> Dialect {
    match kind {
        Kind::DeepSeek => Dialect::deepseek(),
        Kind::DashScope => Dialect::dashscope(),
        Kind::OpenRouter => Dialect::openrouter(),
        Kind::Vllm => Dialect::vllm(),
        Kind::Sglang => Dialect::sglang(),
        Kind::LlamaCpp => Dialect::llamacpp(),
        Kind::Mistral => Dialect::mistral(),
        Kind::Xai => Dialect::xai(),
        Kind::Ollama => Dialect::ollama(),
        Kind::Moonshot | Kind::OpenAi => Dialect::openai(),
    }
}

/// The gateway before one provider.
struct Scene {
    emulator: Emulator,
    world: World,
}

impl Scene {
    async fn new(kind: Kind, classes: &[EnforcementClass], script: Script) -> Scene {
        Scene::of(kind, dialect(kind), classes, script).await
    }

    async fn of(kind: Kind, dialect: Dialect, classes: &[EnforcementClass], script: Script) -> Scene {
        let emulator = Emulator::start(kind, script);
        let base_url = match kind {
            Kind::DeepSeek | Kind::LlamaCpp => emulator.address.clone(),
            _ => format!("{}/v1", emulator.address),
        };
        let client = remote::Settings { base_url, ..remote::Settings::default() };
        let settings =
            Settings { client, name: "m".into(), model: "m".to_owned(), dialect, ..Settings::default() };
        let raw = kind == Kind::Vllm && classes[0] == EnforcementClass::Continue;
        let backend: Arc<dyn Backend> = if raw {
            Arc::new(VllmBackend::new(&Connections::default(), settings).unwrap())
        } else {
            Arc::new(OpenAiBackend::new(&Connections::default(), settings).unwrap())
        };
        let usual = model("m", classes[0]);
        let model = Model {
            classes: classes.to_vec(),
            hand_off: HandOff {
                text: String::new(),
                overhead: Tokens(200),
                overhead_without_thought: Tokens(200),
            },
            capabilities: vec![Capability::Tools, Capability::Schema, Capability::Penalties],
            ..usual
        };
        let world = World::with(vec![(model, backend)], vec![tenant("t", 1_000_000_000)], |_| ()).await;
        Scene { emulator, world }
    }

    /// A provider's model that may write more than is always asked for in one piece, and of which it is learned how much it writes.
    async fn learning() -> Scene {
        let (kind, class) = (Kind::OpenAi, EnforcementClass::Effort);
        let emulator = Emulator::start(kind, Script::new(0, 5));
        let client =
            remote::Settings { base_url: format!("{}/v1", emulator.address), ..remote::Settings::default() };
        let (name, dialect) = ("m".into(), dialect(kind));
        let settings = Settings { client, name, model: "m".to_owned(), dialect, ..Settings::default() };
        let backend = Arc::new(OpenAiBackend::new(&Connections::default(), settings).unwrap());
        let model = Model { context: Tokens(40_000), solution_max: Some(Tokens(8_000)), ..model("m", class) };
        let callers = vec![tenant("t", 1_000_000_000)];
        let stories = Arc::new(MemoryHistoryStore::default());
        let learns = LearnSettings::default();
        let world = World::learning(auto(), vec![(model, backend)], callers, stories, learns).await;
        Scene { emulator, world }
    }

    async fn ask(&self, more: &Value) -> Answer {
        self.world.ask("sk-t", &question(more)).await
    }

    /// What the ledger was charged, in nano-dollars.
    async fn charged(&self) -> u64 {
        self.world.settled().await;
        let account = self.world.account("t");
        assert_eq!(account.overrun, Money(0), "what was reserved covers it");
        account.spent.money.0
    }
}

fn question(more: &Value) -> Value {
    let mut body = json!({
        "model": "m",
        "messages": [{ "role": "user", "content": "What is 12+34+5?" }],
        "budget": { "thinking_tokens": T, "solution_tokens": S },
    });
    for (name, value) in more.as_object().expect("members") {
        body[name] = value.clone();
    }
    body
}

/// Each provider in each way that it has.
fn all() -> impl Iterator<Item = (Kind, EnforcementClass)> {
    PROVIDERS.into_iter().flat_map(|(kind, classes)| classes.iter().map(move |class| (kind, *class)))
}

/// Those that call tools: to resume behind a thought, calls would be read out of the text.
fn calling() -> impl Iterator<Item = (Kind, EnforcementClass)> {
    all().filter(|(_, class)| *class != EnforcementClass::Continue)
}

fn said(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"].as_str().unwrap()
}

#[tokio::test]
async fn a_thought_within_its_budget_is_followed_by_its_answer_and_billed_to_the_token() {
    for (kind, class) in all() {
        let scene = Scene::new(kind, &[class], Script::new(6, 5)).await;
        let answer = scene.ask(&json!({})).await.good();
        let budget = &answer["budget"];
        assert_eq!(said(&answer).trim(), "so so so so so", "{kind:?} {class:?}");
        assert_eq!(budget["thinking"]["used"], 6, "{kind:?} {class:?}: {budget}");
        assert_eq!(budget["enforced"], class.as_str());
        // A raw thought stops at its tag.
        let calls = if (kind, class) == (Kind::Vllm, EnforcementClass::Continue) { 2 } else { 1 };
        assert_eq!(scene.emulator.calls().len(), calls, "{kind:?} {class:?}");
        assert_eq!(scene.charged().await, scene.emulator.bill(), "{kind:?} {class:?}");
        assert!(scene.emulator.refusals().is_empty());
    }
}

#[tokio::test]
async fn a_thought_is_held_as_its_class_promises_and_the_answer_comes() {
    for (kind, class) in all().filter(|(_, class)| *class != EnforcementClass::Effort) {
        let scene = Scene::new(kind, &[class], Script::new(300, 5)).await;
        let answer = scene.ask(&json!({})).await.good();
        let calls = scene.emulator.calls();
        let what = format!("{kind:?} {class:?}: {}", answer["budget"]);
        let last = calls.last().unwrap();
        let beside = kind == Kind::DeepSeek && class == EnforcementClass::Continue;
        assert_eq!(last.path.contains("beta"), beside, "{what}");
        assert_eq!(said(&answer).trim(), "so so so so so", "{what}");
        assert_eq!(answer["choices"][0]["finish_reason"], "stop", "{what}");
        // Where only the provider's own count tells, it comes behind the token that went beyond.
        let most = if class == EnforcementClass::Turn { T + 1 } else { T };
        assert!(answer["budget"]["thinking"]["used"].as_u64().unwrap() <= most, "{what}");
        let thought = calls[0].thought();
        match class {
            EnforcementClass::Turn => {
                assert!((1..=T + 3).contains(&thought), "{what}, the provider thought {thought}");
            }
            _ => assert_eq!(thought, T, "{what}"),
        }
        assert_eq!(calls[1..].iter().map(Record::thought).sum::<u64>(), 0, "{what}");
        assert!(scene.emulator.refusals().is_empty(), "{what}: {:?}", scene.emulator.refusals());
        let (charged, billed) = (scene.charged().await, scene.emulator.bill());
        if class == EnforcementClass::Turn {
            // It was left in the middle, before it said what it read: never less than it bills.
            assert!(charged + 3 * 4 >= billed, "{what}: {charged} for {billed}");
        } else {
            assert_eq!(charged, billed, "{what}");
        }
    }
}

fn tools() -> Value {
    let parameters = json!({ "type": "object", "properties": {} });
    json!([{ "type": "function", "function": { "name": "look", "parameters": parameters } }])
}

#[tokio::test]
async fn a_forced_tool_goes_without_the_thought_that_its_provider_does_not_take_with_it() {
    for (kind, class) in calling().filter(|(kind, _)| [Kind::DeepSeek, Kind::DashScope].contains(kind)) {
        let scene = Scene::new(kind, &[class], Script::new(300, 5)).await;
        for choice in [json!("required"), json!({ "type": "function", "function": { "name": "look" } })] {
            let answer = scene.ask(&json!({ "tools": tools(), "tool_choice": choice })).await.good();
            assert_eq!(answer["budget"]["thinking"]["used"], 0, "{kind:?} {class:?}");
        }
        assert!(scene.emulator.refusals().is_empty(), "{kind:?}: {:?}", scene.emulator.refusals());
        assert_eq!(scene.charged().await, scene.emulator.bill(), "{kind:?} {class:?}");
    }
}

#[tokio::test]
async fn a_run_goes_on_as_its_provider_wants_it_though_its_thoughts_were_lost_and_the_user_interrupts() {
    let call =
        json!({ "id": "D681PevKs", "type": "function", "function": { "name": "look", "arguments": "{}" } });
    let result = json!({ "role": "tool", "tool_call_id": "D681PevKs", "content": "a dog" });
    let user = |text: &str| json!({ "role": "user", "content": text });
    let calls = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
    let answered = json!({ "role": "assistant", "content": "A dog." });
    let runs = [
        json!([user("look"), calls, result, user("Stop. A cat?")]),
        json!([user("look"), calls, result, answered, user("Sure?")]),
    ];
    for (kind, class) in calling() {
        for run in &runs {
            let scene = Scene::new(kind, &[class], Script::new(6, 5)).await;
            let answer = scene.ask(&json!({ "tools": tools(), "messages": run })).await.good();
            assert_eq!(said(&answer).trim(), "so so so so so", "{kind:?} {class:?}");
            assert!(scene.emulator.refusals().is_empty(), "{kind:?}: {:?}", scene.emulator.refusals());
        }
    }
}

#[tokio::test]
async fn of_a_thought_that_nobody_counted_no_more_is_sent_again_than_is_paid_for() {
    let scene = Scene::new(Kind::Ollama, &[EnforcementClass::Turn], Script::new(300, 5)).await;
    let answer = scene.ask(&json!({})).await.good();
    let thought = answer["choices"][0]["message"]["reasoning_content"].as_str().unwrap();
    assert!(thought.len() as u64 > 2 * T, "{thought}");
    let sent = scene.emulator.calls()[1].body["messages"][0]["content"].to_string();
    let sent = sent.matches("hm").count() as u64 * 3;
    assert!((T - 3..=T + 1).contains(&sent), "a token may be no more than a byte: {sent}");
    scene.charged().await;
}

#[tokio::test]
async fn no_thinking_is_no_thinking() {
    for (kind, class) in all().filter(|(_, class)| *class != EnforcementClass::Effort) {
        let scene = Scene::new(kind, &[class], Script::new(300, 5)).await;
        let answer =
            scene.ask(&json!({ "budget": { "thinking_tokens": 0, "solution_tokens": S } })).await.good();
        assert_eq!(said(&answer).trim(), "so so so so so", "{kind:?} {class:?}");
        assert_eq!(scene.emulator.calls()[0].thought(), 0, "{kind:?} {class:?}");
        assert_eq!(scene.charged().await, scene.emulator.bill(), "{kind:?} {class:?}");
    }
}

#[tokio::test]
async fn an_answer_that_has_no_end_is_ended_by_its_budget() {
    for (kind, class) in all() {
        let scene = Scene::new(kind, &[class], Script::new(6, 1000)).await;
        let answer = scene.ask(&json!({})).await.good();
        assert_eq!(answer["choices"][0]["finish_reason"], "length", "{kind:?} {class:?}");
        let words = said(&answer).split_whitespace().count() as u64;
        // Where one limit holds both and no token is counted, what is left of the thought's is the answer's.
        let most = if kind == Kind::Vllm { S } else { T + S + 200 };
        assert!((1..=most).contains(&words), "{kind:?} {class:?}: {words}");
        let (charged, billed) = (scene.charged().await, scene.emulator.bill());
        assert!(
            charged <= billed + 4 && charged + 4 * 4 >= billed,
            "{kind:?} {class:?}: {charged} for {billed}"
        );
    }
}

#[tokio::test]
async fn a_stop_text_that_a_provider_is_not_told_ends_the_answer_and_the_bill_is_right() {
    let scene = Scene::new(Kind::Xai, &[EnforcementClass::Effort], Script::new(6, 40)).await;
    let budget = json!({ "thinking_tokens": 200, "solution_tokens": 100 });
    let answer = scene.ask(&json!({ "stop": ["o so so so"], "budget": budget })).await.good();
    assert_eq!((said(&answer), &answer["choices"][0]["finish_reason"]), ("s", &json!("stop")), "{answer}");
    assert_eq!(answer["budget"]["thinking"]["used"], 6, "{answer}");
    assert_eq!(scene.emulator.calls()[0].generated(), 46, "it was heard out");
    assert_eq!(scene.charged().await, scene.emulator.bill());
}

#[tokio::test]
async fn more_stop_texts_than_a_provider_takes_end_the_answer_all_the_same() {
    let stops = json!(["1", "2", "3", "4", "5", "o so so so"]);
    for (kind, sent) in [(Kind::OpenAi, 4), (Kind::DeepSeek, 6), (Kind::Ollama, 6)] {
        let scene = Scene::new(kind, &[EnforcementClass::Effort], Script::new(0, 40)).await;
        let budget = json!({ "solution_tokens": 100 });
        let answer = scene.ask(&json!({ "stop": stops, "budget": budget })).await.good();
        assert_eq!(
            (said(&answer), &answer["choices"][0]["finish_reason"]),
            ("s", &json!("stop")),
            "{kind:?}"
        );
        assert_eq!(scene.emulator.calls()[0].body["stop"].as_array().unwrap().len(), sent, "{kind:?}");
        assert_eq!(scene.emulator.refusals(), Vec::<Value>::new(), "{kind:?}");
    }
}

#[tokio::test]
async fn a_caller_who_leaves_is_charged_no_less_than_is_billed() {
    for (kind, class) in all() {
        let scene = Scene::new(kind, &[class], Script::new(15, 8)).await;
        let body = question(&json!({ "stream": true })).to_string();
        let request = scene.world.client.post(format!("{}/v1/chat/completions", scene.world.base));
        let request = request.bearer_auth("sk-t").header("content-type", "application/json").body(body);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200, "{kind:?} {class:?}");
        while scene.emulator.calls()[0].generated() < 5 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(answer);
        let (charged, billed) = (scene.charged().await, scene.emulator.bill());
        assert!(charged + 2 * 4 >= billed, "{kind:?} {class:?}: {charged} for {billed}");
    }
}

#[tokio::test]
async fn an_answer_that_nothing_could_cut_is_asked_for_in_one_piece_and_any_other_as_a_stream() {
    let scene = Scene::new(Kind::OpenAi, &[EnforcementClass::Effort], Script::new(0, 5)).await;
    let asked = [
        (json!({}), false),
        (json!({ "stop": ["never"] }), true),
        (json!({ "budget": { "deadline_ms": 60_000 } }), true),
    ];
    for (number, (more, streams)) in asked.iter().enumerate() {
        let answer = scene.ask(more).await.good();
        assert_eq!(said(&answer).trim(), "so so so so so", "{more}");
        assert_eq!(scene.emulator.calls()[number].body["stream"], *streams, "{more}");
        assert_eq!(scene.charged().await, scene.emulator.bill(), "{more}");
    }
}

#[tokio::test]
async fn an_answer_without_a_limit_comes_in_one_piece_while_enough_streams_show_how_its_target_does() {
    const ENOUGH: usize = 16;
    const ROUNDS: usize = 40;
    let scene = Scene::learning().await;
    let unlimited = json!({ "budget": { "thinking_tokens": 0 } });
    let streamed =
        || scene.emulator.calls().iter().map(|call| call.body["stream"] == true).collect::<Vec<_>>();
    // So many within a second: at once, since a machine that has other work takes long for them one by one.
    for _ in 0..ROUNDS {
        for answer in join_all((0..2 * ENOUGH).map(|_| scene.ask(&unlimited))).await {
            assert_eq!(said(&answer.good()).trim(), "so so so so so");
        }
        if streamed().contains(&false) {
            break;
        }
    }
    let streamed = streamed();
    let first = streamed.iter().position(|is_stream| !is_stream);
    assert!(first.is_some_and(|first| first >= ENOUGH), "{streamed:?}");
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    scene.ask(&unlimited).await.good();
    assert_eq!(
        scene.emulator.calls()[streamed.len()].body["stream"],
        true,
        "nothing was seen of it for a second"
    );
    assert_eq!(scene.charged().await, scene.emulator.bill());
}

#[tokio::test]
async fn a_provider_that_fails_in_the_middle_is_still_paid_for_what_it_wrote() {
    for (kind, class) in all() {
        let script = Script { fails_after: Some(4), ..Script::new(6, 5) };
        let scene = Scene::new(kind, &[class], script).await;
        let answer = scene.ask(&json!({})).await;
        assert!(answer.status >= 500, "{kind:?} {class:?}: {}", answer.text);
        let (charged, billed) = (scene.charged().await, scene.emulator.bill());
        // Where the thought is hidden nothing was written by then, and providers bill no error.
        let expected = if class == EnforcementClass::Effort { 0..=0 } else { billed..=u64::MAX };
        assert!(expected.contains(&charged), "{kind:?} {class:?}: {charged} for {billed}");
    }
}

#[tokio::test]
async fn a_budget_that_is_taken_and_not_held_is_cut_from_outside_and_not_trusted_again() {
    for kind in [Kind::Vllm, Kind::Sglang, Kind::LlamaCpp, Kind::OpenRouter] {
        let script = Script { forgets: true, ..Script::new(400, 5) };
        let classes = PROVIDERS.iter().find(|(other, _)| *other == kind).unwrap().1;
        let scene = Scene::new(kind, classes, script).await;
        // The limit of everything stands far enough behind that of the thought.
        let budget = json!({ "budget": { "thinking_tokens": T, "solution_tokens": 10 * S } });
        for enforced in [classes[0], classes[1]] {
            let answer = scene.ask(&budget).await.good();
            let what = format!("{kind:?}: {}", answer["budget"]);
            assert_eq!(said(&answer).trim(), "so so so so so", "{what}");
            assert_eq!(answer["budget"]["enforced"], enforced.as_str(), "{what}");
            let thinking = answer["budget"]["thinking"]["used"].as_u64().unwrap();
            assert!(thinking < 2 * EnforcementClass::native_max(Tokens(T)).0, "{what}");
        }
        let thought: Vec<u64> = scene.emulator.calls().iter().map(Record::thought).collect();
        assert!(thought[0] < 2 * EnforcementClass::native_max(Tokens(T)).0, "{kind:?}: {thought:?}");
        assert!(thought[2] <= T + 3, "{kind:?}: {thought:?}");
    }
}

#[tokio::test]
async fn a_server_without_what_holds_a_budget_refuses_it_and_bills_nothing() {
    for kind in [Kind::Vllm, Kind::Sglang] {
        let script = Script { holds: false, ..Script::new(6, 5) };
        let scene = Scene::new(kind, &[EnforcementClass::Native], script).await;
        let answer = scene.ask(&json!({})).await;
        assert!(answer.status >= 400, "{}", answer.text);
        assert_eq!((scene.charged().await, scene.emulator.calls().len()), (0, 0), "{kind:?}");
    }
}

#[tokio::test]
async fn a_resumed_answer_that_a_server_takes_for_a_thought_is_an_answer() {
    let dialect = Dialect { switch: ThinkingSwitch::Never, ..Dialect::sglang() };
    let scene = Scene::of(Kind::Sglang, dialect, &[EnforcementClass::Continue], Script::new(300, 5)).await;
    let answer = scene.ask(&json!({})).await.good();
    assert_eq!(said(&answer).trim(), "so so so so so");
    assert_eq!(answer["budget"]["thinking"]["used"], T);
}

#[tokio::test]
async fn a_tool_loop_whose_caller_lost_the_thought_goes_on() {
    let call = json!({ "id": "c", "type": "function", "function": { "name": "look", "arguments": "{}" } });
    let more = json!({
        "messages": [
            { "role": "user", "content": "What is 12+34+5?" },
            { "role": "assistant", "content": null, "tool_calls": [call] },
            { "role": "tool", "tool_call_id": "c", "content": "51" },
        ],
        "tools": [{ "type": "function", "function": { "name": "look", "parameters": { "type": "object" } } }],
    });
    let scene = Scene::new(Kind::DeepSeek, &[EnforcementClass::Turn], Script::new(6, 5)).await;
    let answer = scene.ask(&more).await.good();
    assert_eq!(said(&answer).trim(), "so so so so so");
    assert!(scene.emulator.refusals().is_empty(), "{:?}", scene.emulator.refusals());
}

#[tokio::test]
async fn a_thought_is_resumed_by_the_very_tokens_that_it_was() {
    let scene =
        Scene::new(Kind::Vllm, &[EnforcementClass::Continue, EnforcementClass::Native], Script::new(300, 5))
            .await;
    let answer = scene.ask(&json!({})).await.good();
    let calls = scene.emulator.calls();
    let paths: Vec<&str> = calls.iter().map(|call| &*call.path).collect();
    assert_eq!(paths, ["/v1/completions"; 2]);
    let prompts: Vec<&Vec<Value>> =
        calls.iter().map(|call| call.body["prompt"].as_array().unwrap()).collect();
    let (thought, close) = prompts[1][prompts[0].len()..].split_at(usize::try_from(T).unwrap());
    assert_eq!(prompts[1][..prompts[0].len()], prompts[0][..]);
    assert!(thought.iter().all(|id| *id == 10), "{thought:?}");
    assert_eq!(close, [json!(110), json!(2), json!(12)], "the hand-off, by its tokens");
    assert_eq!(calls[1].body["logit_bias"], json!({ "1": -100, "2": -100 }), "no thought begins again");
    assert_eq!(answer["budget"]["thinking"]["used"], T);
    assert_eq!(
        (answer["budget"]["overhead_tokens"].clone(), answer["budget"]["estimated"].clone()),
        (json!(4), json!(false))
    );
    assert_eq!(scene.charged().await, scene.emulator.bill());
}

#[tokio::test]
async fn with_tools_a_vllm_server_holds_the_budget_itself() {
    let tools = json!({
        "tools": [{ "type": "function", "function": { "name": "look", "parameters": { "type": "object" } } }],
    });
    let scene =
        Scene::new(Kind::Vllm, &[EnforcementClass::Continue, EnforcementClass::Native], Script::new(300, 5))
            .await;
    let answer = scene.ask(&tools).await.good();
    assert_eq!(answer["budget"]["enforced"], "native");
    // One more stands in the prompt, behind the tag that begins the thought: the server counts it.
    assert_eq!(scene.emulator.calls()[0].body["thinking_token_budget"], T + 1);
    assert_eq!(scene.emulator.calls()[0].path, "/v1/chat/completions");
}

#[tokio::test]
async fn a_backend_of_each_kind_is_served_as_the_configuration_names_it() {
    let kinds =
        [("vllm", Kind::Vllm, "/v1"), ("deepseek", Kind::DeepSeek, ""), ("ollama", Kind::Ollama, "/v1")];
    let emulators = kinds.map(|(word, kind, path)| (word, path, Emulator::start(kind, Script::new(300, 5))));
    let backends = emulators.iter().map(|(word, path, emulator)| {
        let address = &emulator.address;
        format!(
            "[[backend]]\nkind = \"{word}\"\nbase_url = \"{address}{path}\"\nmodels = [\"{word}-model\"]\n"
        )
    });
    let process = Folder::new(&backends.collect::<String>()).serve();
    for ((word, _, emulator), enforced) in emulators.iter().zip(["continue", "continue", "turn"]) {
        let answer = process.ask("", &question(&json!({ "model": format!("{word}-model") }))).await.good();
        assert_eq!(said(&answer).trim(), "so so so so so", "{word}");
        assert_eq!(answer["budget"]["enforced"], enforced, "{word}");
        assert!(emulator.calls()[0].thought() <= T + 3, "{word}");
        assert!(emulator.refusals().is_empty(), "{word}: {:?}", emulator.refusals());
    }
}

/// The emulations are worth as much as what they refuse.
#[tokio::test]
async fn the_emulations_refuse_what_the_providers_refuse() {
    let user = json!([{ "role": "user", "content": "?" }]);
    let begun = |more: Value| {
        let mut message = json!({ "role": "assistant", "content": "so" });
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!([{ "role": "user", "content": "?" }, message])
    };
    let called = json!([{ "role": "assistant", "content": null, "tool_calls": [] }, { "role": "tool", "content": "" }]);
    for (kind, path, body) in [
        (Kind::DeepSeek, "/chat/completions", json!({ "messages": begun(json!({ "prefix": true })) })),
        (Kind::DeepSeek, "/beta/chat/completions", json!({ "messages": begun(json!({})) })),
        (Kind::DeepSeek, "/chat/completions", json!({ "messages": called })),
        (
            Kind::DashScope,
            "/v1/chat/completions",
            json!({ "messages": begun(json!({ "partial": true })), "enable_thinking": true }),
        ),
        (
            Kind::OpenRouter,
            "/v1/chat/completions",
            json!({ "messages": user, "max_tokens": 9, "reasoning": { "max_tokens": 9 } }),
        ),
        (
            Kind::Vllm,
            "/v1/chat/completions",
            json!({ "messages": begun(json!({})), "continue_final_message": true }),
        ),
        (Kind::Mistral, "/v1/chat/completions", json!({ "messages": user, "stream_options": {} })),
        (Kind::Xai, "/v1/chat/completions", json!({ "messages": user, "stop": ["x"] })),
    ] {
        let emulator = Emulator::start(kind, Script::new(1, 1));
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client.post(format!("{}{path}", emulator.address)).body(body.to_string());
        let status = request.send().await.unwrap().status().as_u16();
        assert!([400, 422].contains(&status), "{kind:?}: {body}");
        assert_eq!((emulator.refusals().len(), emulator.bill()), (1, 0), "{kind:?}");
    }
}
