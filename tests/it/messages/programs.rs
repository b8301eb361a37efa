//! What agent programs send that the SDK does not by itself. The shapes are those of Claude Code 2.1.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::emulators::anthropic::Anthropic as Provider;
use crate::harness::emulators::{Emulator, Turn};
use crate::harness::{Answer, World, model, tenant};
use stint_backend::BackendCall;
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_types::catalog::{Capability, EnforcementClass, Model};
use stint_types::chat::{Role, ToolCallDelta};

use super::{events, signing};

const RICH: u64 = 1_000_000_000;

/// The blocks of a streamed answer, put together.
fn blocks(answer: &Answer) -> Value {
    let mut blocks: Vec<Value> = Vec::new();
    for event in events(&answer.text) {
        let last = blocks.len().saturating_sub(1);
        match event["type"].as_str().unwrap() {
            "content_block_start" => blocks.push(event["content_block"].clone()),
            "content_block_delta" => {
                let (kind, said) = event["delta"].as_object().unwrap().iter().next_back().unwrap();
                let so_far = blocks[last][kind].as_str().unwrap_or_default().to_owned();
                blocks[last][kind] = (so_far + said.as_str().unwrap()).into();
            }
            "content_block_stop" if blocks[last]["partial_json"].is_string() => {
                let json = blocks[last].as_object_mut().unwrap().shift_remove("partial_json").unwrap();
                blocks[last]["input"] = serde_json::from_str(json.as_str().unwrap()).unwrap();
            }
            _ => {}
        }
    }
    blocks.into()
}

#[tokio::test]
async fn thoughts_that_are_not_shown_go_back_to_their_provider_all_the_same() {
    let run = || [Turn::calls(20, &[("search", json!({ "q": "a pet" }))]), Turn::answers(3, "a cat")];
    for (display, streams) in [("omitted", false), ("updates", true)] {
        let emulator = Emulator::start(Provider::default(), run().into_iter().collect());
        let world = signing(&emulator).await;
        let asked = |messages: &Value| {
            json!({ "model": "m", "max_tokens": 4000, "stream": streams, "messages": messages,
                    "thinking": { "type": "enabled", "budget_tokens": 1100, "display": display },
                    "tools": [{ "name": "search", "input_schema": { "type": "object" } }] })
        };
        let said = async |messages: &Value| {
            let answer = world.post("/v1/messages", "sk-acme", &asked(messages)).await;
            if streams { blocks(&answer) } else { answer.good()["content"].take() }
        };
        let mut messages = json!([{ "role": "user", "content": "find" }]);
        let first = said(&messages).await;
        assert_eq!((&first[0]["type"], &first[0]["thinking"]), (&json!("thinking"), &json!("")), "{first}");
        assert!(!first[0]["signature"].as_str().unwrap().is_empty(), "{first}");
        assert_eq!(first[1]["type"], "tool_use", "{first}");
        let given = json!({ "type": "tool_result", "tool_use_id": first[1]["id"], "content": "a cat" });
        let list = messages.as_array_mut().unwrap();
        list.extend([
            json!({ "role": "assistant", "content": first }),
            json!({ "role": "user", "content": [given] }),
        ]);
        let last = said(&messages).await;
        assert_eq!(last.as_array().unwrap().last().unwrap()["text"], "a cat ", "{last}");
        assert!(emulator.refused().is_empty(), "{:?}", emulator.refused());
    }
}

/// Searches for a tool, then calls what it found, then answers.
fn plays(call: &BackendCall, _: usize) -> ScriptedReply {
    let request = &call.request;
    let results = request.messages.iter().filter(|message| message.role == Role::Tool).count();
    let calls = |id: &str, name: &str| {
        let (id, name) = (Some(id.to_owned()), Some(name.to_owned()));
        ScriptedReply::new().thinks(2).calls(ToolCallDelta { index: 0, id, name, arguments: "{}".to_owned() })
    };
    match results {
        0 => calls("call_1", "ToolSearch"),
        1 => calls("call_2", "CronList"),
        _ => ScriptedReply::new().thinks(2).answers("none"),
    }
}

#[tokio::test]
async fn a_run_of_such_a_program_is_one_run_with_what_it_loads_and_sets_on_the_way() {
    let script = Arc::new(ScriptedBackend::each(plays));
    let served = Model { capabilities: vec![Capability::Tools], ..model("m", EnforcementClass::Inline) };
    let world = World::new(vec![(served, script.clone())], vec![tenant("acme", RICH)]).await;
    let keep = json!({ "type": "ephemeral" });
    let tool = |name: &str, deferred: bool| json!({ "name": name, "description": "", "input_schema": { "type": "object" }, "defer_loading": deferred });
    let user = |text: &str| {
        json!({ "role": "user", "content": [
        { "type": "text", "text": "<system-reminder>\nBe good.\n</system-reminder>\n" }, { "type": "text", "text": text }] })
    };
    let mut messages = vec![
        user("Which jobs are there?"),
        json!({ "role": "system", "output_config": { "effort": "medium" },
                "content": [{ "type": "text", "text": "# Environment", "cache_control": keep }] }),
    ];
    let post = async |messages: &[Value], tools: &[Value]| {
        let asked = json!({
            "model": "m", "max_tokens": 32000, "messages": messages, "tools": tools,
            "system": [{ "type": "text", "text": "You are an agent.", "cache_control": keep }],
            "thinking": { "type": "adaptive", "display": "updates" }, "output_config": { "effort": "high" },
            "context_management": { "edits": [{ "type": "clear_thinking_20251015", "keep": "all" }] },
            "metadata": { "user_id": format!("{{\"device_id\":\"{}\"}}", "d".repeat(64)) },
        });
        let answer = world.post("/v1/messages?beta=true", "sk-acme", &asked).await;
        let said = answer.good();
        (answer.headers["x-episode-id"].clone(), said)
    };
    let result = |id: &str, content: Value| json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": id, "content": content, "is_error": false }] });
    let (run, first) = post(&messages, &[tool("ToolSearch", false)]).await;
    let found = result("call_1", json!([{ "type": "tool_reference", "tool_name": "CronList" }]));
    messages.extend([json!({ "role": "assistant", "content": first["content"] }), found]);
    let both = [tool("ToolSearch", false), tool("CronList", true)];
    let (again, second) = post(&messages, &both).await;
    let lower = json!({ "role": "system", "content": [], "output_config": { "effort": "low" } });
    messages.extend([
        json!({ "role": "assistant", "content": second["content"] }),
        result("call_2", "No jobs.".into()),
        lower,
    ]);
    let (at_last, third) = post(&messages, &both).await;
    assert_eq!((&again, &at_last), (&run, &run), "found by its history");
    assert_eq!(third["content"].as_array().unwrap().last().unwrap()["text"], "none");
    assert!(third["usage"]["output_tokens_details"]["thinking_tokens"].as_u64().unwrap() > 0, "{third}");
    let records = script.records();
    let words: Vec<_> = records
        .iter()
        .map(|record| record.call.request.budget.reasoning_effort.as_ref().unwrap().word.clone().unwrap())
        .collect();
    assert_eq!(words, ["medium", "medium", "low"], "what the conversation says last holds");
    assert_eq!(records[1].call.request.messages[4].plain_text(), "tool: CronList\n");
    assert_eq!(records[1].call.request.tools[1].name, "CronList");
}
