//! Libraries that agents are built with, changed only in the base URL; and what they send by themselves, in shapes of theirs.

mod shapes;

use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::tools::{printed, tool};
use crate::harness::{World, model, tenant};
use stint_backend::BackendCall;
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_types::catalog::{Capability, EnforcementClass, Model};
use stint_types::chat::{Message, Role, ToolCallDelta};

const CITY: &str = r#"{"name":"Paris","population":7}"#;

/// A model that looks at two cities at once, then at a third, and tells of all.
fn plays(call: &BackendCall, _: usize) -> ScriptedReply {
    let messages = &call.request.messages;
    let asked = |message: &Message| message.role == Role::User && message.plain_text().contains("weather");
    let found: Vec<String> =
        messages.iter().filter(|message| message.role == Role::Tool).map(Message::plain_text).collect();
    let thinks = ScriptedReply::new().thinks(3);
    // Where a library wants a form and knows of no other way, it has a tool for it.
    let form = call.request.tools.iter().find(|tool| tool.name != "weather");
    match (found.len(), form) {
        (_, Some(form)) => calls(thinks, 0, &form.name, CITY.to_owned()),
        _ if call.request.response_format.is_some() => thinks.answers(CITY),
        (0, _) if messages.iter().any(asked) => looks(looks(thinks, 0, "Paris"), 1, "Rome"),
        (2, _) => looks(thinks, 0, "Oslo"),
        (0, _) => thinks.answers(&format!("3 after {}", messages.len())),
        _ => thinks.answers(&found.join("; ")),
    }
}

fn looks(play: ScriptedReply, at: u32, city: &str) -> ScriptedReply {
    calls(play, at, "weather", json!({ "city": city }).to_string())
}

fn calls(play: ScriptedReply, index: u32, name: &str, arguments: String) -> ScriptedReply {
    let id = arguments.chars().filter(char::is_ascii_alphabetic).collect::<String>();
    let id = Some(format!("call_{id}"));
    play.calls(ToolCallDelta { index, id, name: Some(name.to_owned()), arguments })
}

async fn world() -> World {
    let able = Model {
        capabilities: vec![Capability::Tools, Capability::Schema],
        ..model("m", EnforcementClass::Inline)
    };
    let script = Arc::new(ScriptedBackend::each(plays));
    World::new(vec![(able, script)], vec![tenant("acme", 1_000_000_000), tenant("poor", 1)]).await
}

/// Runs a script that asks by each of the APIs, and judges what came of it. Of some APIs a library shows no thoughts.
async fn check(mut script: Command, apis: &[(&str, bool)]) {
    let world = world().await;
    let facts = printed(script.args([&world.base, "sk-acme", "m"]), "");
    let facts: Value = serde_json::from_str(&facts).unwrap();
    let told = "sun in Paris; sun in Rome; sun in Oslo";
    for &(api, shows) in apis {
        let facts = &facts[api];
        let thought = if shows { json!("1 2 3 ") } else { Value::Null };
        // Three of thought, its tags and the end of text, and three of the answer.
        let plain = json!({ "text": "3 after 1", "thought": thought, "written": 8 });
        assert_eq!((&facts["plain"], &facts["streamed"]), (&plain, &plain), "{api}");
        let run = json!({ "text": told, "calls": [2, 1, 0] });
        assert_eq!((&facts["loop"], &facts["loop_streamed"]), (&run, &run), "{api}");
        assert_eq!(facts["object"], json!({ "name": "Paris", "population": 7 }), "{api}");
        assert_eq!(facts["refused"], 400, "{api}");
        assert_eq!(facts["spent"], 429, "{api}");
        let run = world.get("sk-acme", &format!("/v1/episodes/run-{api}")).await.good();
        assert_eq!((&run["turns"]["used"], &run["thinking_tokens"]["used"]), (&json!(1), &json!(2)), "{run}");
        if let Some(told) = facts.get("budget") {
            assert_eq!(told["thinking"], json!({ "budget": 2, "used": 2, "ended": "cut" }), "{api}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ai_sdk_runs_agents_by_each_of_the_apis() {
    let mut node = tool("node");
    node.arg("tests/node/ai_sdk.mjs");
    check(node, &[("responses", true), ("chat", false), ("compatible", true), ("messages", true)]).await;
}

/// A command of the environment that `make libraries` makes.
fn libraries(script: &str) -> Command {
    let mut python = tool("../libraries/bin/python");
    python.arg(script);
    python
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by `make libraries`"]
async fn langchain_runs_agents_by_each_of_the_apis() {
    let apis = [("responses", true), ("chat", false), ("messages", true)];
    check(libraries("tests/python/langchain_run.py"), &apis).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by `make libraries`"]
async fn pydantic_ai_runs_agents_by_each_of_the_apis() {
    let apis = [("responses", true), ("chat", true), ("messages", true)];
    check(libraries("tests/python/pydantic_ai_run.py"), &apis).await;
}
