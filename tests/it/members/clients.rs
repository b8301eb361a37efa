//! Clients that send what only some servers know, changed only in the base URL.

use serde_json::{Value, json};

use crate::harness::tools::{printed, tool};

use super::picky::Picky;
use super::{backend, body, serve};

/// What `Open WebUI` puts beside model and messages of an endpoint that is compatible with OpenAI, with every setting touched.
fn open_webui() -> Value {
    json!({
        "stream": true, "temperature": 0.7, "top_p": 0.9, "top_k": 40, "min_p": 0.05, "max_tokens": 64,
        "frequency_penalty": 0.1, "presence_penalty": 0.1, "repeat_penalty": 1.1, "repeat_last_n": 64, "tfs_z": 1.0,
        "mirostat": 0, "mirostat_eta": 0.1, "mirostat_tau": 5.0, "num_ctx": 8192, "num_batch": 512, "num_keep": 24,
        "num_thread": 4, "num_gpu": 1, "use_mmap": true, "use_mlock": false, "keep_alive": "5m", "think": false,
        "seed": 7, "stop": ["END"], "logit_bias": {}, "stream_options": { "include_usage": true },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn open_webuis_settings_are_taken_whatever_its_user_touches() {
    let upstream = Picky::start(|_| false);
    let process = serve(&[backend("m", "openai", &upstream.base, "")]);
    for (name, value) in open_webui().as_object().unwrap() {
        // Options of a stream come with one.
        let streams = matches!(name.as_str(), "stream" | "stream_options");
        let mut more = json!({ name: value });
        if streams {
            more["stream"] = json!(true);
        }
        let answer = process.ask("", &body("m", &more)).await;
        assert_eq!(answer.status, 200, "{name}: {}", answer.text);
    }
    let answer = process.ask("", &body("m", &open_webui())).await;
    assert_eq!(answer.chunks().joined(0, "content"), "It is so");
    let sent = upstream.asked().pop().unwrap();
    for (name, value) in
        [("min_p", json!(0.05)), ("repeat_penalty", json!(1.1)), ("mirostat_tau", json!(5.0))]
    {
        assert_eq!(sent[name], value, "{sent}");
    }
    for name in ["num_ctx", "num_gpu", "keep_alive", "think", "use_mmap"] {
        assert!(sent.get(name).is_none(), "{name}: {sent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_official_python_sdk_reaches_what_an_own_server_takes() {
    let upstream = Picky::start(|_| false);
    let process = serve(&[backend("m", "openai", &upstream.base, "")]);
    let facts = printed(tool("python").args(["tests/python/passing_sdk.py", &process.base, "m"]), "");
    let facts: Value = serde_json::from_str(&facts).unwrap();
    assert_eq!(
        facts,
        json!({ "content": "It is so", "tokens": ["It", " is", " so"], "streamed": ["It", " is", " so"] })
    );
    let sent = &upstream.asked()[0];
    assert_eq!(sent["min_p"], 0.05);
    assert_eq!(sent["repetition_penalty"], 1.1);
    assert_eq!(sent["guided_json"], json!({ "type": "object" }));
    assert_eq!(sent["chat_template_kwargs"], json!({ "language": "de" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn langchain_in_node_reaches_what_an_own_server_takes() {
    let upstream = Picky::start(|_| false);
    let process = serve(&[backend("m", "openai", &upstream.base, "")]);
    let facts =
        printed(tool("node").args(["tests/node/langchain_run.mjs", &process.base, "sk-test", "m"]), "");
    let facts: Value = serde_json::from_str(&facts).unwrap();
    let tokens = json!(["It", " is", " so"]);
    assert_eq!(facts, json!({ "content": "It is so", "tokens": tokens, "streamed": "It is so" }));
    let sent = &upstream.asked()[0];
    assert_eq!((&sent["min_p"], &sent["repetition_penalty"]), (&json!(0.05), &json!(1.1)));
    assert_eq!(sent["chat_template_kwargs"], json!({ "language": "de" }));
}
