//! Embeddings and older completions: the same keys, limits and ledger as everything else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};

use crate::harness::patience::{QuietInstant, until};
use crate::harness::tools::{printed, tool};
use crate::harness::{Answer, Folder, World, model, tenant};
use crate::money::with_peak;
use stint::http::{self, Server};
use stint_backend::remote::Connections;
use stint_backend::remote::openai::{self, OpenAiBackend};
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_backend::{Backend, remote};
use stint_types::catalog::{EnforcementClass, Model, Prices, Service, Tariff};
use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;
use stint_types::units::{Money, Price, Tokens};

/// An upstream that makes vectors of two numbers, a token a letter, and goes on with ` a time`.
pub(crate) struct Upstream {
    pub(crate) base: String,
    waiting: Arc<AtomicUsize>,
    _tasks: Tasks,
}

/// Counts itself out when the connection it answers is gone.
struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Upstream {
    pub(crate) fn start() -> Upstream {
        let (tasks, waiting) = (Tasks::default(), Arc::<AtomicUsize>::default());
        let bound = http::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let base = format!("http://{}/v1", bound.address());
        let seen = waiting.clone();
        let vectors = move |body: String| vectors(body, seen.clone());
        let text = |body: String| async move { goes_on(&body) };
        let router =
            Router::new().route("/v1/embeddings", post(vectors)).route("/v1/completions", post(text));
        let settings = stint::config::load(None, &|name| (name == "STINT_LEDGER").then(|| ":memory:".into()));
        let server = Server::new(settings.unwrap().http, Arc::new(Metrics::new().unwrap()), tasks.clone());
        tasks.spawn(server.serve(bound, router));
        Upstream { base, waiting, _tasks: tasks }
    }

    pub(crate) fn backend(&self, name: &str) -> Arc<dyn Backend> {
        let client = remote::Settings { base_url: self.base.clone(), ..remote::Settings::default() };
        let settings = openai::Settings {
            client,
            model: format!("upstream-{name}"),
            dialect: openai::Dialect::openai(),
            ..openai::Settings::default()
        };
        Arc::new(OpenAiBackend::new(&Connections::default(), settings).unwrap())
    }
}

async fn vectors(body: String, waiting: Arc<AtomicUsize>) -> Response {
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["model"], "upstream-vectors");
    let inputs = body["input"].as_array().unwrap();
    match inputs[0].as_str().unwrap_or_default() {
        "wait" => {
            waiting.fetch_add(1, Ordering::SeqCst);
            let _waiting = Waiting(waiting);
            std::future::pending::<()>().await;
        }
        "break" => return axum::http::StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        _ => {}
    }
    let length = |input: &Value| input.as_str().map_or(input.to_string().len(), str::len);
    let data = inputs.iter().enumerate().map(|(index, input)| {
        let dimensions = body["dimensions"].as_u64().unwrap_or_default();
        let mut made =
            json!({ "object": "embedding", "index": index, "embedding": [length(input), dimensions] });
        // A vector is made for a task, where one is named.
        if let Some(task) = body["task"].as_str() {
            made["embedding"] = json!([length(input), task.len()]);
        }
        made
    });
    let tokens: usize = inputs.iter().map(length).sum();
    let usage = json!({ "prompt_tokens": tokens, "total_tokens": tokens });
    json!({ "object": "list", "data": data.collect::<Vec<_>>(), "model": "x", "usage": usage })
        .to_string()
        .into_response()
}

fn goes_on(body: &str) -> Response {
    let body: Value = serde_json::from_str(body).unwrap();
    assert!([json!("Once upon"), json!([7, 8])].contains(&body["prompt"]), "{body}");
    assert_eq!(body["max_tokens"], 8);
    assert!(body.get("messages").is_none() && body.get("reasoning_effort").is_none());
    let chunk = |text: &str, finish: Value| json!({ "object": "text_completion", "choices": [{ "index": 0, "text": text, "finish_reason": finish }] });
    let usage =
        json!({ "choices": [], "usage": { "prompt_tokens": 2, "completion_tokens": 2, "total_tokens": 4 } });
    let events = [chunk(" a", Value::Null), chunk(" time", json!("stop")), usage];
    let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let headers = [("content-type", "text/event-stream")];
    (headers, events + "data: [DONE]\n\n").into_response()
}

/// One nano-dollar a token read, two a token written.
pub(crate) fn priced(name: &str, service: Service) -> Model {
    let price = |nanos: u64| Price { per_million_tokens: Money(nanos * 1_000_000) };
    Model {
        tariff: Some(Tariff::plain(Prices { input: price(1), output: price(2) })),
        services: vec![service],
        thinking_max: Tokens(100),
        ..model(name, EnforcementClass::Effort)
    }
}

/// `vectors` and `text` at the upstream, `chat` that is scripted; `rich` has plenty, `poor` 40 nano-dollars.
async fn world(upstream: &Upstream) -> World {
    let chat = Arc::new(ScriptedBackend::always(ScriptedReply::new().answers("hello")));
    let models: Vec<(Model, Arc<dyn Backend>)> = vec![
        (priced("chat", Service::Chat), chat),
        (priced("text", Service::Completions), upstream.backend("text")),
        (priced("vectors", Service::Embeddings), upstream.backend("vectors")),
    ];
    World::with(models, vec![tenant("rich", 1_000_000), tenant("poor", 40)], |_| ()).await
}

#[tokio::test]
async fn vectors_are_made_charged_and_told_as_the_upstream_says() {
    let upstream = Upstream::start();
    let world = world(&upstream).await;
    let ask = |input: Value| json!({ "model": "vectors", "input": input, "dimensions": 2 });
    let answer = world.post("/v1/embeddings", "sk-rich", &ask(json!(["one", "three"]))).await.good();
    assert_eq!(answer["data"][1], json!({ "object": "embedding", "index": 1, "embedding": [5, 2] }));
    assert_eq!((&answer["model"], &answer["usage"]["prompt_tokens"]), (&json!("vectors"), &json!(8)));
    assert_eq!(answer["budget"]["cost_usd"], "0.000000008");
    world.settled().await;
    assert_eq!(world.account("rich").spent.money, Money(8));

    // One text, token ids, lists of token ids.
    for (input, count) in [(json!("one"), 1), (json!([1, 2]), 1), (json!([[1], [2], [3]]), 3)] {
        let answer = world.post("/v1/embeddings", "sk-rich", &ask(input)).await.good();
        assert_eq!(answer["data"].as_array().unwrap().len(), count);
    }
    for input in [json!(null), json!(""), json!([]), json!(["a", ""]), json!([["a"]]), json!(7), json!([-1])]
    {
        let answer = world.post("/v1/embeddings", "sk-rich", &ask(input)).await;
        assert_eq!(
            (answer.status, answer.error()["param"].as_str()),
            (400, Some("input")),
            "{}",
            answer.text
        );
    }
}

#[tokio::test]
async fn vectors_are_under_the_same_limits() {
    let upstream = Upstream::start();
    let world = world(&upstream).await;
    let ask = |model: &str, input: &str| json!({ "model": model, "input": input });
    let poor = world.post("/v1/embeddings", "sk-poor", &ask("vectors", &"x".repeat(30))).await;
    assert_eq!((poor.status, poor.error()["code"].as_str()), (429, Some("insufficient_quota")));
    assert_eq!(world.post("/v1/embeddings", "sk-poor", &ask("vectors", "x")).await.status, 200);
    assert_eq!(world.post("/v1/embeddings", "sk-bad", &ask("vectors", "x")).await.status, 401);
    let chat = world.post("/v1/embeddings", "sk-rich", &ask("chat", "x")).await;
    assert_eq!((chat.status, chat.error()["code"].as_str()), (400, Some("model_not_capable")));
    assert!(chat.text.contains("chat cannot do embeddings"), "{}", chat.text);
    assert_eq!(world.post("/v1/embeddings", "sk-rich", &ask("nobody", "x")).await.status, 404);
    assert_eq!(world.post("/v1/embeddings", "sk-rich", &ask("vectors", "break")).await.status, 502);
    let talk = json!({ "model": "vectors", "messages": [{ "role": "user", "content": "hi" }] });
    let talk = world.ask("sk-rich", &talk).await;
    assert_eq!((talk.status, talk.error()["code"].as_str()), (400, Some("model_not_capable")));
    assert!(talk.text.contains("vectors cannot do chat"), "{}", talk.text);
    // `auto` never takes a conversation to a model that makes vectors.
    let auto = json!({ "model": "auto", "messages": [{ "role": "user", "content": "hi" }] });
    assert_eq!(world.ask("sk-rich", &auto).await.good()["model"], "chat");
    world.settled().await;
}

#[tokio::test]
async fn a_caller_that_hangs_up_on_vectors_stops_the_upstream_and_is_charged_what_it_may_have_read() {
    let upstream = Upstream::start();
    let world = world(&upstream).await;
    let ask = json!({ "model": "vectors", "input": "wait" });
    let call = world.post("/v1/embeddings", "sk-rich", &ask);
    let waiting = || upstream.waiting.load(Ordering::SeqCst);
    tokio::select! {
        answer = call => panic!("it answered: {}", answer.text),
        () = until("the upstream is asked", async || waiting() > 0) => {}
    }
    let left = QuietInstant::now();
    until("the upstream is let go", async || waiting() == 0).await;
    assert!(left.elapsed() < Duration::from_secs(1), "within a second: {:?}", left.elapsed());
    world.settled().await;
    assert_eq!(world.account("rich").spent.money, Money(16 + 4), "its bound: nobody knows what was read");
}

#[tokio::test]
async fn a_text_goes_on_without_template_or_thought() {
    let upstream = Upstream::start();
    let world = world(&upstream).await;
    let ask = |more: Value| {
        let mut body = json!({ "model": "text", "prompt": "Once upon", "max_tokens": 8 });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let answer = world.post("/v1/completions", "sk-rich", &ask(json!({}))).await.good();
    assert_eq!(answer["object"], "text_completion");
    assert_eq!(
        (&answer["choices"][0]["text"], &answer["choices"][0]["finish_reason"]),
        (&json!(" a time"), &json!("stop"))
    );
    assert_eq!(
        (&answer["usage"]["completion_tokens"], &answer["budget"]["cost_usd"]),
        (&json!(2), &json!("0.000000006"))
    );
    assert!(answer["id"].as_str().unwrap().starts_with("cmpl-"));
    let why = answer["budget"]["why"].as_str().unwrap();
    assert!(why.contains("answers without thinking") && why.contains("as texts go on"), "{why}");
    let twice =
        world.post("/v1/completions", "sk-rich", &ask(json!({ "n": 2, "stop": " time" }))).await.good();
    assert_eq!(twice["choices"][1]["text"], " a");
    let ids = world.post("/v1/completions", "sk-rich", &ask(json!({ "prompt": [7, 8] }))).await.good();
    assert_eq!(ids["choices"][0]["text"], " a time", "{ids}");
    let chat = world.post("/v1/completions", "sk-rich", &json!({ "model": "chat", "prompt": "x" })).await;
    assert_eq!((chat.status, chat.error()["code"].as_str()), (400, Some("model_not_capable")));
    let poor = world.post("/v1/completions", "sk-poor", &ask(json!({}))).await;
    assert_eq!((poor.status, poor.error()["code"].as_str()), (429, Some("insufficient_quota")));
    world.settled().await;
    assert_eq!(world.account("poor").spent.money, Money::ZERO);
}

/// xAI's API is not known to take them.
#[tokio::test]
async fn token_ids_are_refused_by_their_member_where_the_backend_takes_none() {
    let upstream = Upstream::start();
    let client = remote::Settings { base_url: upstream.base.clone(), ..remote::Settings::default() };
    let settings =
        openai::Settings { client, dialect: openai::Dialect::xai(), ..openai::Settings::default() };
    let backend = OpenAiBackend::new(&Connections::default(), settings).unwrap();
    let models: Vec<(Model, Arc<dyn Backend>)> =
        vec![(priced("text", Service::Completions), Arc::new(backend))];
    let world = World::with(models, vec![tenant("rich", 1_000_000)], |_| ()).await;
    let body = json!({ "model": "text", "prompt": [7, 8], "max_tokens": 8 });
    let answer = world.post("/v1/completions", "sk-rich", &body).await;
    assert_eq!((answer.status, &answer.error()["param"]), (400, &json!("prompt")), "{}", answer.text);
    world.settled().await;
    assert_eq!(world.account("rich").spent.money, Money::ZERO);
}

#[tokio::test]
async fn the_official_sdk_gets_vectors_and_texts() {
    let upstream = Upstream::start();
    let world = world(&upstream).await;
    let base = world.base.clone();
    let script = move || printed(tool("python").args(["tests/python/endpoints.py", &base]), "");
    let facts: Value = serde_json::from_str(&tokio::task::spawn_blocking(script).await.unwrap()).unwrap();
    let expected = json!({
        "vectors": [[3.0, 2.0], [3.0, 2.0]], "embedding_tokens": 6, "text": " a time", "finish": "stop",
        "completion_tokens": 2, "streamed": " a time", "streamed_tokens": 2,
    });
    assert_eq!(facts, expected);
}

#[tokio::test]
async fn vectors_cost_less_outside_their_providers_peak() {
    for (hours_from_now, cost) in [(12, 8), (0, 16)] {
        let upstream = Upstream::start();
        let model = Model {
            name: "vectors".into(),
            services: vec![Service::Embeddings],
            ..with_peak(hours_from_now)
        };
        let models = vec![(model, upstream.backend("vectors"))];
        let world = World::with(models, vec![tenant("rich", 1_000_000)], |_| ()).await;
        let ask = json!({ "model": "vectors", "input": ["one", "three"], "dimensions": 2 });
        world.post("/v1/embeddings", "sk-rich", &ask).await.good();
        world.settled().await;
        assert_eq!(world.account("rich").spent.money, Money(cost));
    }
}

#[tokio::test]
async fn the_embedded_model_goes_on_with_a_text_of_its_own_kind() {
    let process = Folder::new("").serve();
    let body = json!({ "model": "reasoner", "prompt": "<think>\n", "max_tokens": 12, "temperature": 0 });
    let request = process.client.post(format!("{}/v1/completions", process.base));
    let request = request.header("content-type", "application/json").body(body.to_string());
    let answer = Answer::of(request).await.good();
    assert_eq!(answer["usage"]["completion_tokens"], 12);
    assert!(!answer["choices"][0]["text"].as_str().unwrap().is_empty());
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    let by_ids = |ids: Value| {
        let body = json!({ "model": "reasoner", "prompt": ids, "max_tokens": 12, "temperature": 0 });
        let request = process.client.post(format!("{}/v1/completions", process.base));
        Answer::of(request.header("content-type", "application/json").body(body.to_string()))
    };
    let answer = by_ids(json!([1, 2, 3])).await.good();
    assert_eq!(answer["usage"]["prompt_tokens"], 3, "{answer}");
    let unknown = by_ids(json!([4_000_000_000_u32])).await;
    assert_eq!(unknown.status, 400, "{}", unknown.text);
}

#[tokio::test]
async fn choices_that_were_all_refused_before_a_model_saw_them_cost_nothing() {
    let client =
        remote::Settings { base_url: "http://127.0.0.1:9/v1".to_owned(), ..remote::Settings::default() };
    let nobody = OpenAiBackend::new(
        &Connections::default(),
        openai::Settings { client, ..openai::Settings::default() },
    )
    .unwrap();
    let models: Vec<(Model, Arc<dyn Backend>)> = vec![(priced("m", Service::Chat), Arc::new(nobody))];
    let world = World::with(models, vec![tenant("rich", 1_000_000)], |_| ()).await;
    let ask = json!({ "model": "m", "n": 4, "messages": [{ "role": "user", "content": "hi" }] });
    assert_eq!(world.ask("sk-rich", &ask).await.status, 502);
    world.settled().await;
    assert_eq!(world.account("rich").spent.money, Money::ZERO);
}
