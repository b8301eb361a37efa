//! llama.cpp's native endpoints: they render, tokenize, and go on with texts and tokens.

use std::sync::atomic::Ordering;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::chat::{Record, Script};
use super::raw;

/// Whether it is one of them.
pub(super) fn is_path(path: &str) -> bool {
    ["/apply-template", "/tokenize", "/detokenize", "/completion", "/props"].contains(&path)
}

/// Answers one of them; only `/completion` is a call of the model, and goes into the record, with the length of its prompt.
pub(super) fn serve(
    script: Script,
    path: &str,
    body: &Value,
    record: impl FnOnce(u64) -> Record,
) -> Response {
    let told = match path {
        "/props" => json!({
            "chat_template": "{% if thinks %}<think>{% endif %}</think>",
            "default_generation_settings": { "n_ctx": script.context },
        }),
        "/apply-template" => {
            let thinks = body["chat_template_kwargs"]["enable_thinking"] != false;
            let begins = if thinks { "<think>\n" } else { "<think>\n\n</think>\n\n" };
            json!({ "prompt": format!("{}\n{begins}", body["messages"]) })
        }
        "/tokenize" => json!({ "tokens": raw::tokens(body["content"].as_str().unwrap()) }),
        "/detokenize" => {
            let ids: Vec<u32> = serde_json::from_value(body["tokens"].clone()).unwrap();
            json!({ "content": ids.into_iter().map(raw::text).collect::<String>() })
        }
        _ => {
            let prompt = prompt(&body["prompt"]);
            let record = record(prompt.len() as u64);
            return complete(script, body, &prompt, record);
        }
    };
    ([(header::CONTENT_TYPE, "application/json")], told.to_string()).into_response()
}

/// The tokens of a prompt of texts and tokens.
fn prompt(value: &Value) -> Vec<u32> {
    match value {
        Value::String(text) => raw::tokens(text),
        Value::Array(parts) => parts.iter().flat_map(prompt).collect(),
        id => vec![u32::try_from(id.as_u64().unwrap()).unwrap()],
    }
}

fn complete(script: Script, body: &Value, prompt: &[u32], record: Record) -> Response {
    let stops = body["stop"] == json!(["</think>"]);
    // A negative limit is none.
    let work = raw::work(script, prompt, body["n_predict"].as_u64(), stops);
    let stream = futures_util::stream::unfold(0, move |at| {
        let (work, record) = (work.clone(), record.clone());
        async move {
            if at > work.len() {
                return None;
            }
            tokio::time::sleep(script.pace()).await;
            if at == work.len() {
                return Some((last(&work, &record), at + 1));
            }
            let tokens = raw::run(&work, at, script.bulk);
            let ids = &work[at..at + tokens];
            record.generated.fetch_add(tokens as u64, Ordering::SeqCst);
            let thought = if work[at] == raw::THOUGHT { tokens as u64 } else { 0 };
            record.thought.fetch_add(thought, Ordering::SeqCst);
            let content = raw::text(work[at]).repeat(tokens);
            let event = json!({ "content": content, "tokens": ids, "stop": false,
                "tokens_predicted": record.generated(), "tokens_evaluated": record.prompt });
            Some((sent(&event), at + tokens))
        }
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream)).into_response()
}

fn last(work: &[u32], record: &Record) -> Result<Bytes, std::convert::Infallible> {
    let stop_type = match work.last() {
        Some(&raw::END) => "word",
        Some(&raw::END_OF_TEXT) => "eos",
        _ => "limit",
    };
    sent(&json!({ "content": "", "tokens": [], "stop": true, "stop_type": stop_type,
        "tokens_predicted": record.generated(), "tokens_evaluated": record.prompt }))
}

fn sent(event: &Value) -> Result<Bytes, std::convert::Infallible> {
    Ok(format!("data: {event}\n\n").into())
}
