//! Anthropic's Messages as an API of ours: its own SDK, changed only in the base URL.

mod programs;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::emulators::anthropic::Anthropic as Provider;
use crate::harness::emulators::{Emulator, KEY, Turn};
use crate::harness::tools::{printed, tool};
use crate::harness::{Folder, Served, World, model, tenant};
use crate::sdk::keys;
use stint_backend::remote::anthropic::{AnthropicBackend, Settings};
use stint_backend::remote::{self, CachePolicy, Caching, Connections, Secret};
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_types::catalog::{Capability, EnforcementClass, Model};
use stint_types::units::Tokens;

fn facts(script: &str, arguments: &[&str]) -> Value {
    let facts = printed(tool("python").arg(script).args(arguments), "");
    serde_json::from_str(&facts).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn anthropics_own_sdk_works_unchanged_on_the_embedded_model() {
    let process = Folder::new(&keys()).serve();
    let base = process.base.clone();
    let facts = facts("tests/python/messages_sdk.py", &[&base, "reasoner"]);
    let (plain, cut) = (&facts["plain"], &facts["cut"]);
    assert_eq!(plain["blocks"], json!([{ "type": "text", "text": "42" }]), "nobody asked for thoughts");
    assert_eq!(plain["stop"], "end_turn");
    assert_eq!(cut["blocks"][0]["type"], "thinking");
    assert_eq!(cut["budget"]["thinking"], json!({ "budget": 8, "used": 8, "ended": "cut" }));
    assert_eq!(facts["short"]["budget"]["thinking"]["used"], 0);
    let used = |part: &str| cut["budget"][part]["used"].as_u64().unwrap();
    let written = used("thinking") + used("solution") + cut["budget"]["overhead_tokens"].as_u64().unwrap();
    assert_eq!(cut["usage"]["output_tokens"], written, "{cut}");
    assert_eq!(cut["usage"]["output_tokens_details"], json!({ "thinking_tokens": 8 }), "{cut}");
    // As Anthropic has it, what was found in a cache is told apart.
    let read = |member: &str| cut["usage"][member].as_u64().unwrap_or_default();
    assert_eq!(
        read("input_tokens") + read("cache_read_input_tokens"),
        facts["counted"],
        "its tokenizer is known, so the count is exact"
    );
    assert_eq!(facts["streamed"]["blocks"], cut["blocks"], "greedy, so the same twice");
    let seen = facts["streamed"]["seen"].as_array().unwrap();
    assert_eq!((&seen[0], seen.last().unwrap()), (&json!("message_start"), &json!("message_stop")));
    let models: Vec<(&Value, &Value)> =
        facts["models"].as_array().unwrap().iter().map(|model| (&model["id"], &model["type"])).collect();
    assert!(
        models.contains(&(&json!("reasoner"), &json!("model"))) && models.len() > 1,
        "all pages: {models:?}"
    );
    assert_eq!(facts["one"], "model");
    let error = |name: &str| (facts["errors"][name]["class"].clone(), facts["errors"][name]["type"].clone());
    assert_eq!(error("model"), (json!("NotFoundError"), json!("not_found_error")));
    assert_eq!(error("thought"), (json!("BadRequestError"), json!("invalid_request_error")));
    assert_eq!(error("key"), (json!("AuthenticationError"), json!("authentication_error")));
    assert_eq!(error("spent"), (json!("RateLimitError"), json!("rate_limit_error")));
    assert_eq!(error("budget"), (json!("BadRequestError"), json!("invalid_request_error")));
    assert_eq!(error("tool"), (json!("BadRequestError"), json!("invalid_request_error")));
    assert!(facts["errors"]["key"]["id"].as_str().unwrap().starts_with("req_"));
    let metrics = process.get("sk-test", "/metrics").await.text;
    assert!(
        metrics.contains("stint_refusals_total{limit=\"key money total\"} 1\n"),
        "one attempt alone: {metrics}"
    );
}

/// A world with one model, `m`, whose thoughts a provider signs.
pub(crate) async fn signing(emulator: &Emulator) -> World {
    let client = remote::Settings {
        base_url: emulator.base.clone(),
        api_key: Some(Secret::new(KEY)),
        ..remote::Settings::default()
    };
    let settings = Settings {
        client,
        model: "claude-budget".into(),
        name: "m".into(),
        cache: CachePolicy { caching: Caching::Never, ..CachePolicy::default() },
        ..Settings::default()
    };
    let served = Model {
        thinking_min: Tokens(1024),
        thinking_max: Tokens(8_000),
        context: Tokens(100_000),
        capabilities: vec![Capability::Tools],
        ..model("m", EnforcementClass::Native)
    };
    let target = Arc::new(AnthropicBackend::new(&Connections::default(), settings).unwrap());
    World::fleets(vec![Served::by(served, vec![target])], vec![tenant("acme", 1_000_000_000)]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_with_a_tool_keeps_its_signed_thoughts_from_anthropic_to_anthropics_sdk() {
    let run = || {
        let call = Turn::calls(20, &[("search", json!({ "q": "a pet" }))]);
        [Turn::answers(1500, "it is 51"), call, Turn::answers(3, "a cat")]
    };
    let turns = run().into_iter().chain(run()).chain(run().into_iter().skip(1)).collect();
    let emulator = Emulator::start(Provider::default(), turns);
    let world = signing(&emulator).await;
    let facts = facts("tests/python/messages_run.py", &[&world.base, "sk-acme", "m"]);
    assert_eq!(facts["whole"], facts["streamed"]);
    let whole = &facts["whole"];
    let kinds = json!([["thinking", "text"], ["thinking", "tool_use"], ["thinking", "text"]]);
    assert_eq!(whole["kinds"], kinds, "{whole}");
    assert!(whole["thought"].as_str().unwrap().ends_with("w1099 "), "{whole}");
    assert_eq!((&whole["answer"], &whole["last"]), (&json!("it is 51 "), &json!("a cat ")));
    assert_eq!(whole["tool"], json!(["search", { "q": "a pet" }]));
    assert_eq!(whole["stops"], json!(["end_turn", "tool_use", "end_turn"]));
    assert_eq!(
        facts["runner"],
        json!({ "last": "a cat ", "called": ["a pet"] }),
        "it goes on without a thread"
    );
    assert!(emulator.refused().is_empty(), "{:?}", emulator.refused());
    for (bill, told) in emulator.bills().iter().zip(whole["usage"].as_array().unwrap()) {
        assert_eq!(*told, json!([bill.prompt, bill.written]));
    }
}

#[tokio::test]
async fn every_error_of_these_paths_is_worded_as_anthropic_words_it() {
    let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().answers("80")));
    let served = Served::by(model("m", EnforcementClass::Inline), vec![script]);
    let world = World::fleets(vec![served], vec![tenant("acme", 1_000_000_000)]).await;
    let check = |answer: &crate::harness::Answer, status: u16, kind: &str| {
        assert_eq!(
            (answer.status, answer.json()["error"]["type"].as_str().map(str::to_owned).as_deref()),
            (status, Some(kind)),
            "{}",
            answer.text
        );
        assert_eq!(answer.json()["type"], "error", "{}", answer.text);
        assert!(
            answer
                .headers
                .get("request-id")
                .is_some_and(|id| answer.json()["request_id"] == id.to_str().unwrap()),
            "{}",
            answer.text
        );
    };
    let asked = json!({ "model": "m", "max_tokens": 9, "messages": [{ "role": "user", "content": "6+7" }] });
    let with = |name: &str, value: Value| {
        let mut asked = asked.clone();
        asked[name] = value;
        asked
    };
    let refused = [
        (with("max_tokens", Value::Null), "max_tokens"),
        (with("thinking", json!({ "type": "on" })), "thinking.type"),
        (
            with("messages", json!([{ "role": "user", "content": [{ "type": "video" }] }])),
            "messages[0].content[0].type",
        ),
        (with("mcp_servers", json!([{}])), "mcp_servers"),
        (with("surprise", json!(1)), "surprise"),
    ];
    for (body, param) in refused {
        let answer = world.post("/v1/messages", "sk-acme", &body).await;
        check(&answer, 400, "invalid_request_error");
        assert_eq!(answer.json()["error"]["param"], param, "{}", answer.text);
    }
    check(&world.post("/v1/messages", "sk-nobody", &asked).await, 401, "authentication_error");
    check(&world.post("/v1/messages/nothing", "sk-acme", &asked).await, 404, "not_found_error");
    check(&world.get("sk-acme", "/v1/messages").await, 405, "invalid_request_error");
    assert_eq!(world.post("/v1/messages", "sk-acme", &asked).await.good()["content"][0]["text"], "80");
}

/// The events of a stream, without their names.
fn events(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// Why an answer to this ended, and by which stop text, whole; streamed it is the same.
async fn ended(world: &World, asked: &Value) -> (Value, Value) {
    let whole = world.post("/v1/messages", "sk-acme", asked).await.good();
    let mut asked = asked.clone();
    asked["stream"] = true.into();
    let events = events(&world.post("/v1/messages", "sk-acme", &asked).await.text);
    let told = events.iter().find(|event| event["type"] == "message_delta").unwrap();
    let (reason, by) = (whole["stop_reason"].clone(), whole["stop_sequence"].clone());
    let delta = json!({ "stop_reason": reason, "stop_sequence": by, "stop_details": null });
    assert_eq!(told["delta"], delta);
    (reason, by)
}

#[tokio::test]
async fn the_stop_text_that_ended_an_answer_is_named() {
    for class in [
        EnforcementClass::Inline,
        EnforcementClass::Continue,
        EnforcementClass::Native,
        EnforcementClass::Turn,
        EnforcementClass::Effort,
    ] {
        let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().answers("one two STOP three")));
        let served = Served::by(model("m", class), vec![script]);
        let world = World::fleets(vec![served], vec![tenant("acme", 1_000_000_000)]).await;
        let asked = |stops: Value| {
            json!({ "model": "m", "max_tokens": 60, "thinking": { "type": "disabled" }, "stop_sequences": stops,
                "messages": [{ "role": "user", "content": "Count." }] })
        };
        let by = ended(&world, &asked(json!(["never", "STOP"]))).await;
        assert_eq!(by, (json!("stop_sequence"), json!("STOP")), "{class:?}");
        let none = ended(&world, &asked(json!(["never"]))).await;
        assert_eq!(none, (json!("end_turn"), Value::Null), "{class:?}");
        // Where thought and answer have one limit between them, this one has room for all of it.
        if class != EnforcementClass::Effort {
            let mut short = asked(json!(["STOP"]));
            short["budget"] = json!({ "solution_tokens": 1 });
            assert_eq!(ended(&world, &short).await, (json!("max_tokens"), Value::Null), "{class:?}");
        }
    }
}

/// What `message_start` and `message_delta` say was read, and what was counted for the same before.
async fn told_as_read(script: ScriptedBackend) -> [u64; 3] {
    let served = Served::by(model("m", EnforcementClass::Inline), vec![Arc::new(script)]);
    let world = World::fleets(vec![served], vec![tenant("acme", 1_000_000_000)]).await;
    let mut asked = json!({ "model": "m", "messages": [{ "role": "user", "content": "What is 6+7?" }] });
    let counted = world.post("/v1/messages/count_tokens", "sk-acme", &asked).await.good();
    (asked["max_tokens"], asked["stream"]) = (json!(60), json!(true));
    let events = events(&world.post("/v1/messages", "sk-acme", &asked).await.text);
    let start = &events[0]["message"]["usage"];
    assert_eq!(start["output_tokens"], 0, "{start}");
    let end = events.iter().find(|event| event["type"] == "message_delta").unwrap();
    [start, &end["usage"], &counted].map(|told| told["input_tokens"].as_u64().unwrap())
}

#[tokio::test]
async fn a_stream_begins_with_what_is_to_be_read_where_that_is_known_and_ends_with_what_was() {
    let script = || ScriptedBackend::always(ScriptedReply::new().answers("80"));
    assert_eq!(told_as_read(script().reading(Tokens(7))).await, [7; 3]);
    // Without the tokenizer it is known at the end alone: before, it is estimated as it is where it is only counted.
    let [start, end, counted] = told_as_read(script().of_bytes(4)).await;
    assert!(start == counted && end > 0 && counted > 0, "{start} {end} {counted}");
}

#[tokio::test]
async fn what_newer_sdks_know_and_is_not_offered_is_refused_by_its_name() {
    let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().answers("80")));
    let world = World::fleets(
        vec![Served::by(model("m", EnforcementClass::Inline), vec![script])],
        vec![tenant("acme", 1_000_000_000)],
    )
    .await;
    let with = |member: &str, value: Value| {
        let mut asked =
            json!({ "model": "m", "max_tokens": 9, "messages": [{ "role": "user", "content": "6+7" }] });
        asked[member] = value;
        asked
    };
    for (member, value) in [
        ("container", json!("c_1")),
        ("mcp_servers", json!([{ "type": "url", "url": "https://x", "name": "x" }])),
        ("compaction", json!({ "type": "auto" })),
        ("thread", json!({ "type": "create" })),
        ("fallbacks", json!("default")),
        ("billing_policy", json!({ "type": "billing_policy", "bill_to": "user_profile" })),
        ("inference_geo", json!("us")),
        ("diagnostics", json!({ "previous_message_id": "msg_1" })),
    ] {
        let refused = world.post("/v1/messages", "sk-acme", &with(member, value)).await;
        let error = refused.json()["error"].take();
        assert_eq!((refused.status, &error["param"]), (400, &json!(member)), "{error}");
        assert!(error["message"].as_str().unwrap().contains("is not offered"), "{error}");
    }
    // The SDK reads the code here, and its tool runner goes on without a thread by it.
    let refused = world.post("/v1/messages", "sk-acme", &with("thread", json!({ "type": "create" }))).await;
    let details = json!({ "error_code": "thread_unsupported_request", "unsupported": ["thread"] });
    assert_eq!(refused.json()["error"]["details"], details, "{}", refused.text);
    let unknown = world.post("/v1/messages", "sk-acme", &with("surprise", json!(1))).await;
    assert_eq!(unknown.json()["error"]["details"], json!({ "error_code": "unknown_parameter" }));
    let edits = |edit: Value| with("context_management", json!({ "edits": [edit] }));
    let clears = edits(json!({ "type": "clear_tool_uses_20250919" }));
    let refused = world.post("/v1/messages", "sk-acme", &clears).await;
    assert_eq!(refused.json()["error"]["param"], "context_management.edits[0]", "{}", refused.text);
    let keeps = edits(json!({ "type": "clear_thinking_20251015", "keep": "all" }));
    world.post("/v1/messages", "sk-acme", &keeps).await.good();
}

/// What the first events of a stream say, in order.
#[tokio::test]
async fn a_stream_begins_with_an_estimate_of_the_prompt_and_a_ping_and_thoughts_end_with_a_signature() {
    let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(3).answers("it is 3")));
    let world = World::open(model("m", EnforcementClass::Turn), &script).await;
    let body = json!({
        "model": "m", "max_tokens": 2000, "stream": true, "thinking": { "type": "adaptive" },
        "messages": [{ "role": "user", "content": "word ".repeat(300) }],
    });
    let text = world.post("/v1/messages", "", &body).await.text;
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let told: Vec<Value> = data.map(|data| serde_json::from_str(data).unwrap()).collect();
    assert_eq!((&told[0]["type"], &told[1]["type"]), (&json!("message_start"), &json!("ping")), "{text}");
    let usage = &told[0]["message"]["usage"];
    assert_eq!(usage["cache_creation"], Value::Null, "SDKs would keep zeros: {usage}");
    let estimate = usage["input_tokens"].as_u64().unwrap();
    assert!((200..2000).contains(&estimate), "{estimate}");
    let signature = told.iter().position(|event| event["delta"]["type"] == "signature_delta").unwrap();
    assert_eq!(told[signature + 1]["type"], "content_block_stop", "{text}");
    assert_eq!(told[signature]["index"], 0, "{text}");
}

#[tokio::test]
async fn models_are_listed_in_the_shape_of_the_api_that_is_spoken() {
    let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().answers("3")));
    let world = World::open(model("m", EnforcementClass::Inline), &script).await;
    let get = |path: &str| {
        let request = world.client.get(format!("{}{path}", world.base));
        crate::harness::Answer::of(request.header("anthropic-version", "2023-06-01"))
    };
    let list = get("/v1/models").await.good();
    let shown = json!({
        "type": "model", "id": "m", "display_name": "m", "created_at": "1970-01-01T00:00:00Z",
        "max_input_tokens": 4096, "max_tokens": null,
    });
    assert!(list["data"].as_array().unwrap().contains(&shown), "{list}");
    assert_eq!((&list["has_more"], list["first_id"].is_string()), (&json!(false), true), "{list}");
    assert_eq!(get("/v1/models/m").await.good(), shown);
    let missing = get("/v1/models/nobody").await;
    let error = missing.json();
    assert_eq!((missing.status, &error["error"]["type"]), (404, &json!("not_found_error")), "{error}");
    assert_eq!(world.get("", "/v1/models").await.good()["object"], "list", "and OpenAI's else");
}
