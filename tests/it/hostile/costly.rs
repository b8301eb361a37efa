//! Requests that are cheap to send and would be dear to read: long lists that name one another, texts that are much larger once they
//! are read, and texts that are looked for again and again.

use std::time::Duration;

use serde_json::{Value, json};

use super::world;
use crate::harness::patience::QuietInstant;
use crate::harness::{Answer, World};

/// How long an answer may take where the machine is busy and the build is not optimized. Read pair by pair each would take minutes.
const ANSWER_MAX: Duration = Duration::from_secs(20);

async fn ask(world: &World, path: &str, body: &Value) -> Answer {
    let began = QuietInstant::now();
    let answer = world.post(path, "sk-key", body).await;
    assert!(began.elapsed() < ANSWER_MAX, "{path}: {:?} for {}", began.elapsed(), answer.text.len());
    answer
}

fn user() -> Value {
    json!({ "role": "user", "content": "x" })
}

fn chat(messages: Vec<Value>, more: Value) -> Value {
    let mut body = json!({ "model": "m" });
    body["messages"] = Value::Array(messages);
    let Value::Object(more) = more else { panic!("{more} are no members") };
    body.as_object_mut().unwrap().extend(more);
    body
}

fn named(kind: &str, at: usize) -> Value {
    json!({ "type": "function", "function": { "name": format!("{kind}_{at:06}") } })
}

/// A turn that calls a tool once for each of these arguments.
fn calls(arguments: &[String]) -> Value {
    let call = |(at, arguments): (usize, &String)| json!({ "id": format!("call_{at:06}"), "type": "function", "function": { "name": "f", "arguments": arguments } });
    let calls: Vec<Value> = arguments.iter().enumerate().map(call).collect();
    json!({ "role": "assistant", "content": null, "tool_calls": calls })
}

fn result(at: usize, content: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": format!("call_{at:06}"), "content": content })
}

/// IN-11: the longest lists that a body may have, each item of which is looked for in another list.
#[tokio::test]
async fn long_lists_that_name_one_another_are_read_once() {
    let (world, _) = world().await;
    let tools: Vec<Value> = (0..50_000).map(|at| named("tool", at)).collect();
    ask(&world, "/v1/plan", &chat(vec![user()], json!({ "tools": tools }))).await;
    let listed: Vec<Value> = (0..25_000).rev().map(|at| named("tool", at)).collect();
    let choice = json!({ "type": "allowed_tools", "allowed_tools": { "mode": "auto", "tools": listed } });
    let some = &tools[..25_000];
    ask(&world, "/v1/plan", &chat(vec![user()], json!({ "tools": some, "tool_choice": choice }))).await;
    let count = 25_000;
    let results = (0..count).rev().map(|at| result(at, "y"));
    let messages = [user(), calls(&vec!["{}".to_owned(); count])].into_iter().chain(results).collect();
    ask(&world, "/v1/plan", &chat(messages, json!({}))).await;
    let input: Vec<Value> = (0..50_000)
        .map(|_| json!({ "role": "assistant", "content": "y".repeat(400), "phase": "commentary" }))
        .collect();
    let counted = ask(&world, "/v1/responses/input_tokens", &json!({ "model": "m", "input": input })).await;
    assert!(counted.good()["input_tokens"].as_u64().unwrap() > 1_000_000);
    let many: serde_json::Map<String, Value> =
        (0..100_000).map(|at| (format!("{at:0>128}"), json!(0))).collect();
    assert_eq!(ask(&world, "/v1/plan", &chat(vec![user()], Value::Object(many))).await.status, 400);
    world.ask("sk-key", &chat(vec![user()], json!({}))).await.good();
}

/// IN-11: what an agent did last is compared with what it did before, each call once.
#[tokio::test]
async fn large_calls_are_compared_once() {
    let (world, _) = world().await;
    let arguments: Vec<String> =
        (0..99).map(|at| format!("{{\"n\":{at},\"x\":[{}1]}}", "1,".repeat(2_000))).collect();
    let results = (0..arguments.len()).map(|at| result(at, &"y".repeat(50_000)));
    let messages = [user(), calls(&arguments)].into_iter().chain(results).collect();
    ask(&world, "/v1/plan", &chat(messages, json!({ "tools": [named("f", 0)] }))).await;
}

/// IN-11: a body has so many values, those in its texts of JSON among them: each takes many times the memory of its text.
#[tokio::test]
async fn values_in_texts_count_as_those_of_the_body() {
    let (world, script) = world().await;
    let bomb = format!("[{}1]", "1,".repeat(10_000_000));
    let asked = |arguments: &str| {
        chat(
            vec![user(), calls(&[arguments.to_owned()]), result(0, "y")],
            json!({ "tools": [named("f", 0)] }),
        )
    };
    for path in ["/v1/chat/completions", "/v1/plan"] {
        let answer = ask(&world, path, &asked(&bomb)).await;
        assert_eq!((answer.status, &answer.error()["code"]), (400, &json!("too_many_values")), "{path}");
    }
    let call = json!({ "type": "function_call", "call_id": "a", "name": "f", "arguments": bomb });
    let output = json!({ "type": "function_call_output", "call_id": "a", "output": "y" });
    for path in ["/v1/responses", "/v1/responses/input_tokens"] {
        let answer = ask(&world, path, &json!({ "model": "m", "input": [user(), call, output] })).await;
        assert_eq!((answer.status, &answer.error()["code"]), (400, &json!("too_many_values")), "{path}");
    }
    assert!(script.records().is_empty(), "nothing of it reached a model");
    ask(&world, "/v1/chat/completions", &asked("[1,2,3]")).await.good();
    // What a tool returned is text, whatever it looks like.
    let returned = format!("{{\"x\":{bomb}}}");
    let messages = vec![user(), calls(&["{}".to_owned()]), result(0, &returned)];
    ask(&world, "/v1/plan", &chat(messages, json!({ "tools": [named("f", 0)] }))).await;
}

/// IN-11: each byte of an answer is compared with the stop texts.
#[tokio::test]
async fn stop_texts_have_a_length() {
    let (world, _) = world().await;
    let stop = |bytes: usize| chat(vec![user()], json!({ "stop": ["y".repeat(bytes)] }));
    ask(&world, "/v1/chat/completions", &stop(1024)).await.good();
    let refused = ask(&world, "/v1/chat/completions", &stop(1025)).await;
    assert_eq!((refused.status, &refused.error()["param"]), (400, &json!("stop")));
    let body =
        json!({ "model": "m", "max_tokens": 9, "messages": [user()], "stop_sequences": ["y".repeat(1025)] });
    assert_eq!(ask(&world, "/v1/messages", &body).await.status, 400);
}
