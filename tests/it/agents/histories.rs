//! Calls without results and results without calls: each API refuses them in its own words before a model is asked.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::World;
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_sessions::agent;
use stint_types::chat::Role;

use super::{searching, tools, world};

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";
const RESPONSES: &str = "/v1/responses";

fn chat(turns: &Value) -> Value {
    let call = json!({ "id": "c1", "type": "function", "function": { "name": "search", "arguments": "{}" } });
    let mut messages = vec![json!({ "role": "user", "content": "?" })];
    let turn = |turn: &Value| match turn.as_str().unwrap() {
        "call" => json!({ "role": "assistant", "content": null, "tool_calls": [call] }),
        "result" => json!({ "role": "tool", "tool_call_id": "c1", "content": "a cat" }),
        "nameless" => json!({ "role": "tool", "content": "a cat" }),
        said => json!({ "role": "user", "content": said }),
    };
    messages.extend(turns.as_array().unwrap().iter().map(turn));
    json!({ "model": "m", "messages": messages, "tools": tools() })
}

fn message(turns: &Value) -> Value {
    let result = json!({ "type": "tool_result", "tool_use_id": "c1", "content": "a cat" });
    let text = json!({ "type": "text", "text": "so" });
    let mut messages = vec![json!({ "role": "user", "content": "?" })];
    let turn = |turn: &Value| match turn.as_str().unwrap() {
        "call" => json!({ "role": "assistant", "content": [
            { "type": "tool_use", "id": "c1", "name": "search", "input": {} }] }),
        "result" => json!({ "role": "user", "content": [result, text] }),
        "late" => json!({ "role": "user", "content": [text, result] }),
        said => json!({ "role": "user", "content": said }),
    };
    messages.extend(turns.as_array().unwrap().iter().map(turn));
    json!({ "model": "m", "max_tokens": 60, "messages": messages,
        "tools": [{ "name": "search", "input_schema": { "type": "object" } }] })
}

fn response(items: &Value) -> Value {
    let item = |item: &Value| match item.as_str().unwrap() {
        "call" => json!({ "type": "function_call", "call_id": "c1", "name": "search", "arguments": "{}" }),
        "result" => json!({ "type": "function_call_output", "call_id": "c1", "output": "a cat" }),
        said => json!({ "role": "developer", "content": said }),
    };
    let items: Vec<Value> = items.as_array().unwrap().iter().map(item).collect();
    json!({ "model": "m", "input": items, "tools": [{ "type": "function", "name": "search", "parameters": {} }] })
}

/// Refused with 400, about this member, in words with these in it; nobody was asked.
async fn refused(
    world: &World,
    script: &ScriptedBackend,
    (path, body): (&str, Value),
    param: &str,
    says: &str,
) {
    let before = script.records().len();
    let answer = world.post(path, "sk-acme", &body).await;
    let error = answer.json()["error"].take();
    assert_eq!((answer.status, &error["param"]), (400, &json!(param)), "{error}");
    assert_eq!(error["type"], "invalid_request_error", "{error}");
    assert!(error["message"].as_str().unwrap().contains(says), "{says}: {error}");
    assert_eq!(script.records().len(), before, "no model was asked: {body}");
}

async fn taken(world: &World, path: &str, body: Value) {
    world.post(path, "sk-acme", &body).await.good();
}

#[tokio::test]
async fn a_chat_completion_has_each_result_right_after_its_call() {
    let script = searching(1);
    let world = world(&script, agent::Settings::default()).await;
    taken(&world, CHAT, chat(&json!(["call", "result"]))).await;
    for (turns, param, says) in [
        (json!(["call"]), "messages[1]", "calls search (c1), and no result follows"),
        (json!(["call", "and?", "result"]), "messages[1]", "c1"),
        (json!(["result"]), "messages[1]", "is the result of c1, which"),
        (json!(["call", "result", "result"]), "messages[3]", "has its result"),
        (json!(["call", "nameless"]), "messages[2].tool_call_id", "is missing"),
    ] {
        refused(&world, &script, (CHAT, chat(&turns)), param, says).await;
    }
    refused(&world, &script, ("/v1/plan", chat(&json!(["call"]))), "messages[1]", "c1").await;
}

#[tokio::test]
async fn a_message_begins_with_the_results_of_the_calls_before_it() {
    let script = searching(1);
    let world = world(&script, agent::Settings::default()).await;
    taken(&world, MESSAGES, message(&json!(["call", "result"]))).await;
    for (turns, says) in [
        (json!(["call"]), "have a tool_use of search (c1) without its result"),
        (json!(["call", "and?", "result"]), "without its result"),
        (json!(["call", "late"]), "without its result"),
        (json!(["result"]), "have a tool_result of c1, which"),
        (json!(["call", "result", "result"]), "has its result"),
    ] {
        refused(&world, &script, (MESSAGES, message(&turns)), "messages", says).await;
        let mut counted = message(&turns);
        counted.as_object_mut().unwrap().shift_remove("max_tokens");
        refused(&world, &script, ("/v1/messages/count_tokens", counted), "messages", says).await;
    }
}

#[tokio::test]
async fn a_response_has_an_output_for_each_call_and_a_call_for_each_output() {
    let script = searching(1);
    let world = world(&script, agent::Settings::default()).await;
    taken(&world, RESPONSES, response(&json!(["call", "result"]))).await;
    for (items, says) in [
        (json!(["call"]), "lacks the output of search (c1)"),
        (json!(["result"]), "has an output of c1 that no call is left for"),
        (json!(["call", "result", "result"]), "has an output of c1"),
    ] {
        refused(&world, &script, (RESPONSES, response(&items)), "input", says).await;
    }
}

/// OpenAI finds an output by its call wherever it stands; other providers want it right behind.
#[tokio::test]
async fn an_output_of_a_response_is_put_right_behind_its_call() {
    let script = searching(1);
    let world = world(&script, agent::Settings::default()).await;
    taken(&world, RESPONSES, response(&json!(["call", "Mind the time.", "result"]))).await;
    let sent = script.records().pop().unwrap().call.request;
    let roles: Vec<Role> = sent.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles[..2], [Role::Assistant, Role::Tool], "{roles:?}");
    assert!(roles[2..].contains(&Role::System), "{roles:?}");
}

#[tokio::test]
async fn what_is_kept_of_a_response_counts_with_what_is_sent() {
    let script =
        Arc::new(ScriptedBackend::each(|call, _| match call.request.messages.last().unwrap().role {
            Role::Tool => ScriptedReply::new().answers("a cat"),
            _ => super::play(&call.request, 1),
        }));
    let world = world(&script, agent::Settings::default()).await;
    let mut asked = response(&json!([]));
    asked["input"] = json!("find it");
    let first = world.post(RESPONSES, "sk-acme", &asked).await.good();
    let call =
        first["output"].as_array().unwrap().iter().find(|item| item["type"] == "function_call").unwrap();
    let (id, call) = (call["call_id"].as_str().unwrap(), &first["id"]);
    let more = |input: Value| {
        let mut more = response(&json!([]));
        (more["input"], more["previous_response_id"]) = (input, call.clone());
        more
    };
    let says = format!("lacks the output of search ({id})");
    refused(&world, &script, (RESPONSES, more(json!("and?"))), "input", &says).await;
    let output = |id: &str| json!({ "type": "function_call_output", "call_id": id, "output": "a cat" });
    let both = more(json!([output(id), output("c9")]));
    refused(&world, &script, (RESPONSES, both), "input", "has an output of c9").await;
    taken(&world, RESPONSES, more(json!([output(id)]))).await;
}
