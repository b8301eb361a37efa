//! Trimming on every surface, streamed and whole, and by every class of enforcement.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::{Served, Stored, World, auto, model, tenant};
use stint_backend::scripted::ScriptedBackend;
use stint_backend::{Failure, Fault};
use stint_ledger::MemoryJournal;
use stint_sessions::agent;
use stint_types::catalog::{Capability, EnforcementClass, Model};
use stint_types::units::Tokens;

use super::{Agent, caller, calls, play, searching, world};

fn budget() -> Value {
    json!({ "tool_calls": { "search": 2, "browse": 0 } })
}

#[tokio::test]
async fn parallel_calls_are_trimmed_in_a_stream_too() {
    let script = searching(5);
    let world = world(&script, agent::Settings::default()).await;
    let mut body = Agent::new("sk-acme", &budget()).body();
    body["stream"] = json!(true);
    let chunks = world.ask("sk-acme", &body).await.chunks();
    assert!(chunks.done);
    let deltas = chunks.all.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"].as_array());
    let seen: BTreeSet<u64> = deltas.flatten().map(|call| call["index"].as_u64().unwrap()).collect();
    assert_eq!(seen, BTreeSet::from([0, 1]));
    let finished = chunks.all.iter().find_map(|chunk| chunk["choices"][0]["finish_reason"].as_str());
    assert_eq!(finished, Some("tool_calls"));
    let told = chunks.budget();
    let calls = json!({ "used": 2, "trimmed": 3, "withheld": ["browse"] });
    assert_eq!(told["tool_calls"], calls, "{told}");
    assert_eq!(told["episode"]["tool_calls"]["tools"]["search"], json!({ "used": 2, "left": 0 }));
}

fn message() -> Value {
    let tool = |name: &str| json!({ "name": name, "input_schema": { "type": "object" } });
    json!({
        "model": "m", "max_tokens": 60, "tools": [tool("search"), tool("browse")], "budget": budget(),
        "messages": [{ "role": "user", "content": "Who was it?" }],
    })
}

#[tokio::test]
async fn parallel_calls_are_trimmed_on_messages_whole_and_streamed() {
    let script = searching(5);
    let world = world(&script, agent::Settings::default()).await;
    let whole = world.post("/v1/messages", "sk-acme", &message()).await.good();
    let used =
        whole["content"].as_array().unwrap().iter().filter(|block| block["type"] == "tool_use").count();
    assert_eq!((used, &whole["stop_reason"]), (2, &json!("tool_use")), "{whole}");
    assert_eq!(whole["budget"]["tool_calls"]["trimmed"], 3);
    let mut asked = message();
    asked["stream"] = json!(true);
    let streamed = world.post("/v1/messages", "sk-acme", &asked).await;
    assert_eq!(streamed.status, 200);
    let data = streamed.text.lines().filter_map(|line| line.strip_prefix("data: "));
    let events: Vec<Value> = data.map(|text| serde_json::from_str(text).unwrap()).collect();
    let begun = events.iter().filter(|event| event["content_block"]["type"] == "tool_use").count();
    assert_eq!(begun, 2, "{}", streamed.text);
    let stop = events.iter().find_map(|event| event["delta"]["stop_reason"].as_str());
    assert_eq!(stop, Some("tool_use"));
}

#[tokio::test]
async fn trimming_holds_for_every_class() {
    for class in [
        EnforcementClass::Inline,
        EnforcementClass::Continue,
        EnforcementClass::Native,
        EnforcementClass::Turn,
        EnforcementClass::Effort,
    ] {
        let served = Model {
            capabilities: vec![Capability::Tools],
            context: Tokens(1_000_000),
            resumes_tools: true,
            ..model("m", class)
        };
        let script = Arc::new(ScriptedBackend::each(|call, _| play(&call.request, 5).thinks(6)));
        let stored = Stored::alone(Arc::new(MemoryJournal::default()));
        let served = vec![Served::by(served, vec![script])];
        let world = World::agents(served, vec![tenant("acme", 1_000_000_000)], vec![auto()], stored).await;
        let mut agent =
            Agent::new("sk-acme", &json!({ "tool_calls": { "search": 2 }, "thinking_tokens": 3 }));
        let answer = agent.step(&world).await;
        assert_eq!(calls(&answer), 2, "{class:?}: {answer}");
        assert_eq!(calls(&agent.step(&world).await), 0, "{class:?}");
    }
}

#[tokio::test]
async fn one_call_at_a_time_is_one_call() {
    let script = searching(5);
    let world = world(&script, agent::Settings::default()).await;
    let mut body = Agent::new("sk-acme", &budget()).body();
    body["parallel_tool_calls"] = json!(false);
    assert_eq!(calls(&world.ask("sk-acme", &body).await.good()), 1);
    let mut body = Agent::new("sk-acme", &json!({})).body();
    body["max_tool_calls"] = json!(3);
    assert_eq!(calls(&world.ask("sk-acme", &body).await.good()), 3);
}

#[tokio::test]
async fn an_attempt_that_failed_counts_nothing_and_the_next_one_is_held_too() {
    let failing = Arc::new(ScriptedBackend::each(|call, _| {
        let failure = Failure::new(Fault::Backend, "it broke").retry_elsewhere();
        play(&call.request, 5).breaks_after(0, failure)
    }));
    let script = searching(5);
    let served =
        vec![Served::by(caller("a"), vec![failing.clone()]), Served::by(caller("b"), vec![script.clone()])];
    let stored = Stored::alone(Arc::new(MemoryJournal::default()));
    let world = World::agents(served, vec![tenant("acme", 1_000_000_000)], vec![auto()], stored).await;
    let mut agent = Agent { model: "auto", ..Agent::new("sk-acme", &budget()) };
    let answer = agent.step(&world).await;
    assert_eq!((calls(&answer), &answer["model"]), (2, &json!("b")), "{answer}");
    assert!(!failing.records().is_empty());
    let sent = &script.records()[0].call.request;
    assert!(sent.messages.last().unwrap().plain_text().contains("<budget>"), "the other model is told too");
    assert_eq!(answer["budget"]["episode"]["tool_calls"]["used"], 2);
}
