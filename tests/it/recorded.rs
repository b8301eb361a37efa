//! A stream of an upstream, heard directly and through the gateway, as the official SDKs understand it.

use serde_json::{Map, Value, json};

use crate::harness::faultup::rig::Rig;
use crate::harness::faultup::script::{DONE, Step, event, stream};
use crate::harness::tools::{printed, tool};
use crate::sdk::{NODE, PYTHON};
use stint_types::catalog::Capability;
use stint_types::units::Tokens;

/// A chunk as OpenAI sends it.
fn chunk(choices: &Value, usage: &Value) -> String {
    event(&json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "m",
        "system_fingerprint": "fp_1", "choices": choices, "usage": usage,
    }))
}

fn delta(delta: &Value, finish: Option<&str>) -> String {
    chunk(&json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }]), &Value::Null)
}

fn used(completion: u64) -> String {
    let usage =
        json!({ "prompt_tokens": 9, "completion_tokens": completion, "total_tokens": 9 + completion });
    chunk(&json!([]), &usage)
}

/// Text in pieces, some of them odd.
fn text() -> String {
    let begin = delta(&json!({ "role": "assistant", "content": "", "refusal": null }), None);
    let words = ["Zw", "ei und ", "vierzig \u{1f980}", ", \"so\"\n", "- it\u{2028}is."];
    let words: String = words.iter().map(|word| delta(&json!({ "content": word }), None)).collect();
    begin + &words + &delta(&json!({}), Some("stop")) + &used(12) + DONE
}

/// Two calls at once, their arguments in pieces.
fn calls() -> String {
    let begin = delta(&json!({ "role": "assistant", "content": null }), None);
    let call = |index: u64, id: &str| {
        let function = json!({ "name": "look", "arguments": "" });
        delta(
            &json!({ "tool_calls": [{ "index": index, "id": id, "type": "function", "function": function }] }),
            None,
        )
    };
    let more = |index: u64, arguments: &str| {
        delta(&json!({ "tool_calls": [{ "index": index, "function": { "arguments": arguments } }] }), None)
    };
    let one = call(0, "call_a") + &more(0, "{\"q\":") + &more(0, " \"a \u{1f431}\"}");
    let other = call(1, "call_b") + &more(1, "{\"q\": \"b\"}");
    begin + &one + &other + &delta(&json!({}), Some("tool_calls")) + &used(21) + DONE
}

fn question() -> Value {
    let parameters = json!({
        "type": "object", "properties": { "q": { "type": "string" } }, "required": ["q"],
        "additionalProperties": false,
    });
    let function = json!({ "name": "look", "strict": true, "parameters": parameters });
    json!({
        "model": "m",
        "messages": [{ "role": "user", "content": "What is there?" }],
        "tools": [{ "type": "function", "function": function }],
        "stream_options": { "include_usage": true },
    })
}

/// Without members that say nothing.
fn said(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let present = members.iter().filter(|(_, value)| !value.is_null());
            Value::Object(present.map(|(name, value)| (name.clone(), said(value))).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(said).collect(),
        other => other.clone(),
    }
}

/// What both SDKs make of a stream, directly and through the gateway.
async fn check(recorded: String) -> Value {
    let mut last = Value::Null;
    for [runtime, _] in [PYTHON, NODE] {
        let script = stream().send(&recorded).then(Step::Close);
        let rig = Rig::with(vec![script], |knobs| {
            knobs.model.thinking_max = Tokens::ZERO;
            knobs.model.efforts = Vec::new();
            knobs.model.capabilities = vec![Capability::Tools];
        })
        .await;
        let program = if runtime == "python" {
            "tests/python/recorded_stream.py"
        } else {
            "tests/node/recorded_stream.mjs"
        };
        let (direct, through) = (rig.upstream.address.clone(), rig.world.base.clone());
        let run = move || printed(tool(runtime).args([program, &direct, &through]), &question().to_string());
        let answers: Value = serde_json::from_str(&tokio::task::spawn_blocking(run).await.unwrap()).unwrap();
        let (direct, through) = (said(&answers[0]["choices"]), said(&answers[1]["choices"]));
        assert_eq!(through, direct, "{runtime}");
        for count in ["prompt_tokens", "completion_tokens", "total_tokens"] {
            assert_eq!(answers[1]["usage"][count], answers[0]["usage"][count], "{runtime}: {count}");
        }
        assert_eq!(answers[1]["system_fingerprint"], "fp_1", "{runtime}: {}", answers[0]);
        assert_eq!(rig.upstream.log().len(), 2, "asked directly, and once through the gateway");
        last = direct;
    }
    last[0].clone()
}

/// ST-26
#[tokio::test]
async fn the_sdks_make_the_same_of_a_stream_through_the_gateway() {
    let choice = check(text()).await;
    assert_eq!(choice["message"]["content"], "Zwei und vierzig \u{1f980}, \"so\"\n- it\u{2028}is.");
    let choice = check(calls()).await;
    assert_eq!(choice["message"]["tool_calls"][0]["function"]["arguments"], "{\"q\": \"a \u{1f431}\"}");
    assert_eq!(
        (choice["message"]["tool_calls"][1]["id"].as_str(), choice["finish_reason"].as_str()),
        (Some("call_b"), Some("tool_calls"))
    );
}
