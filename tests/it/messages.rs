//! Anthropic's Messages as an API of ours: its own SDK, changed only in the base URL.

use std::sync::Arc;

use serde_json::{Value, json};
use stint::backend::remote::anthropic::{Anthropic, Settings};
use stint::backend::remote::{self, Secret};
use stint::backend::scripted::{Play, Scripted};
use stint::catalog::{Capability, Class, Model};
use stint::units::Tokens;

use crate::harness::emulators::anthropic::Anthropic as Provider;
use crate::harness::emulators::{Emulator, KEY, Turn};
use crate::harness::tools::{printed, tool};
use crate::harness::{Folder, Served, World, model, tenant};
use crate::sdk::keys;

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
    assert_eq!(
        cut["usage"]["input_tokens"], facts["counted"],
        "its tokenizer is known, so the count is exact"
    );
    assert_eq!(facts["streamed"]["blocks"], cut["blocks"], "greedy, so the same twice");
    let seen = facts["streamed"]["seen"].as_array().unwrap();
    assert_eq!((&seen[0], seen.last().unwrap()), (&json!("message_start"), &json!("message_stop")));
    let error = |name: &str| (facts["errors"][name]["class"].clone(), facts["errors"][name]["type"].clone());
    assert_eq!(error("model"), (json!("NotFoundError"), json!("not_found_error")));
    assert_eq!(error("key"), (json!("AuthenticationError"), json!("authentication_error")));
    assert_eq!(error("spent"), (json!("RateLimitError"), json!("rate_limit_error")));
    assert_eq!(error("budget"), (json!("BadRequestError"), json!("invalid_request_error")));
    assert_eq!(error("tool"), (json!("BadRequestError"), json!("invalid_request_error")));
    assert!(facts["errors"]["key"]["id"].as_str().unwrap().starts_with("req_"));
    let metrics = process.get("", "/metrics").await.text;
    assert!(
        metrics.contains("stint_refusals_total{limit=\"key money total\"} 1\n"),
        "one attempt alone: {metrics}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_with_a_tool_keeps_its_signed_thoughts_from_anthropic_to_anthropics_sdk() {
    let run = || {
        let call = Turn::calls(20, &[("search", json!({ "q": "a pet" }))]);
        [Turn::answers(1500, "it is 51"), call, Turn::answers(3, "a cat")]
    };
    let emulator = Emulator::start(Provider::default(), run().into_iter().chain(run()).collect());
    let client = remote::Settings {
        base_url: emulator.base.clone(),
        api_key: Some(Secret::new(KEY)),
        ..remote::Settings::default()
    };
    let settings =
        Settings { client, model: "claude-budget".into(), name: "m".into(), ..Settings::default() };
    let served = Model {
        thinking_min: Tokens(1024),
        thinking_max: Tokens(8_000),
        context: Tokens(100_000),
        capabilities: vec![Capability::Tools],
        ..model("m", Class::Native)
    };
    let target = Arc::new(Anthropic::new(settings).unwrap());
    let world =
        World::fleets(vec![Served::by(served, vec![target])], vec![tenant("acme", 1_000_000_000)]).await;
    let facts = facts("tests/python/messages_run.py", &[&world.base, "sk-acme", "m"]);
    assert_eq!(facts["whole"], facts["streamed"]);
    let whole = &facts["whole"];
    let kinds = json!([["thinking", "text"], ["thinking", "tool_use"], ["thinking", "text"]]);
    assert_eq!(whole["kinds"], kinds, "{whole}");
    assert!(whole["thought"].as_str().unwrap().ends_with("w1099 "), "{whole}");
    assert_eq!((&whole["answer"], &whole["last"]), (&json!("it is 51 "), &json!("a cat ")));
    assert_eq!(whole["tool"], json!(["search", { "q": "a pet" }]));
    assert_eq!(whole["stops"], json!(["end_turn", "tool_use", "end_turn"]));
    assert!(emulator.refused().is_empty(), "{:?}", emulator.refused());
    for (bill, told) in emulator.bills().iter().zip(whole["usage"].as_array().unwrap()) {
        assert_eq!(*told, json!([bill.prompt, bill.written]));
    }
}

#[tokio::test]
async fn every_error_of_these_paths_is_worded_as_anthropic_words_it() {
    let script = Arc::new(Scripted::always(Play::new().answers("80")));
    let served = Served::by(model("m", Class::Inline), vec![script]);
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
