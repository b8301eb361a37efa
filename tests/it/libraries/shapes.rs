//! What libraries send by themselves, without being asked for it by who uses them.

use serde_json::{Value, json};

use super::world;

/// A chat completion with more members.
fn completion(more: Value) -> Value {
    let mut body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
    let Value::Object(more) = more else { panic!("members are an object") };
    body.as_object_mut().unwrap().extend(more);
    body
}

#[tokio::test]
async fn what_changes_nothing_in_an_answer_is_taken() {
    let world = world().await;
    for more in [
        json!({ "prompt_cache_retention": "in_memory", "prompt_cache_key": "k", "safety_identifier": "s" }),
        json!({ "prompt_cache_options": { "mode": "implicit" } }),
        json!({ "prediction": { "type": "content", "content": "hi there" } }),
        json!({ "usage": { "include": true } }),
        json!({ "modalities": ["text"], "store": false, "n": 1, "logprobs": false, "top_logprobs": null }),
        json!({ "functions": null, "function_call": null, "web_search_options": null, "audio": null }),
    ] {
        let answer = world.ask("sk-acme", &completion(more)).await.good();
        assert_eq!(answer["choices"][0]["message"]["content"], "3 after 1");
    }
}

#[tokio::test]
async fn what_would_change_an_answer_is_refused_with_what_to_do_instead() {
    let world = world().await;
    for (param, value, says) in [
        ("modalities", json!(["text", "audio"]), "may only be [\"text\"] here"),
        ("functions", json!([{ "name": "f" }]), "tools"),
        ("function_call", json!("auto"), "tool_choice"),
        ("web_search_options", json!({}), "a tool of yours"),
        ("audio", json!({ "voice": "alloy", "format": "wav" }), "answers are text"),
        ("logprobs", json!(true), "m cannot do logprobs"),
    ] {
        let refused = world.ask("sk-acme", &completion(json!({ param: value }))).await;
        let error = refused.json()["error"].take();
        assert_eq!((refused.status, &error["param"]), (400, &json!(param)), "{error}");
        assert!(error["message"].as_str().unwrap().contains(says), "{error}");
    }
}

/// A run as a library sends it back: its own words for what we answered.
async fn check_sent_back(mut said: Value) {
    let call = |city: &str| json!({ "id": city, "type": "function", "function": { "name": "weather", "arguments": "{}" } });
    said["role"] = "assistant".into();
    said["tool_calls"] = json!(["Paris", "Rome"].map(call));
    let result = |city: &str| json!({ "role": "tool", "tool_call_id": city, "name": "weather", "content": [{ "type": "text", "text": "sun" }] });
    let mut messages =
        vec![json!({ "role": "user", "content": [{ "type": "text", "text": "the weather?" }] })];
    messages.push(said.clone());
    messages.extend(["Paris", "Rome"].map(result));
    let tools = json!([{ "type": "function", "function": {
        "name": "weather", "description": "", "strict": null,
        "parameters": { "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {} },
    }}]);
    let body = json!({ "model": "m", "messages": messages, "tools": tools, "tool_choice": "auto" });
    let answer = world().await.ask("sk-acme", &body).await.good();
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls", "{said}");
}

#[tokio::test]
async fn a_message_that_was_answered_comes_back_in_each_librarys_own_shape() {
    // OpenAI's SDK, its message as an object whole.
    check_sent_back(json!({
        "content": null, "refusal": null, "annotations": null, "audio": null, "function_call": null,
        "reasoning_content": "two cities",
    }))
    .await;
    // LiteLLM, which keeps beside what it has read.
    check_sent_back(json!({
        "content": null, "reasoning_content": "two cities", "provider_specific_fields": { "refusal": null },
        "thinking_blocks": [{ "type": "thinking", "thinking": "two cities", "signature": "" }],
    }))
    .await;
    // LangChain, whose content is a list; the AI SDK, whose thought stands first.
    check_sent_back(json!({ "content": [{ "type": "text", "text": "I look." }], "name": "agent" })).await;
    check_sent_back(json!({ "content": "", "reasoning_content": "two cities" })).await;
    // One that declined before it called.
    check_sent_back(json!({ "content": [{ "type": "refusal", "refusal": "Not London." }] })).await;
}
