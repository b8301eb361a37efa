//! vLLM's raw endpoints: it renders and tokenizes, and takes and names tokens.

use std::sync::atomic::Ordering;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::chat::{PACE, Record, Script};

const END_OF_TEXT: u32 = 0;
const START: u32 = 1;
const END: u32 = 2;
const THOUGHT: u32 = 10;
const ANSWER: u32 = 11;

/// The tokens that are longer than a character.
const WORDS: [(&str, u32); 5] =
    [("<think>", START), ("</think>", END), ("hm ", THOUGHT), ("so ", ANSWER), ("\n\n", 12)];

/// `/tokenize`, of a text or of a conversation, whose template begins a thought or closes an empty one.
pub(super) fn tokenize(body: &Value) -> Value {
    let text = match body["prompt"].as_str() {
        Some(text) => text.to_owned(),
        None => {
            let thinks = body["chat_template_kwargs"]["enable_thinking"] != false;
            let begins = if thinks { "<think>\n" } else { "<think>\n\n</think>\n\n" };
            format!("{}\n{begins}", body["messages"])
        }
    };
    json!({ "tokens": tokens(&text), "max_model_len": 4096 })
}

fn tokens(mut text: &str) -> Vec<u32> {
    let mut ids = Vec::new();
    while let Some(character) = text.chars().next() {
        let word = WORDS.iter().find(|(word, _)| text.starts_with(word));
        let (length, id) =
            word.map_or((character.len_utf8(), 100 + character as u32), |(word, id)| (word.len(), *id));
        ids.push(id);
        text = &text[length..];
    }
    ids
}

/// What a prompt of tokens makes it write: tokens, the last of which may end it.
pub(super) fn work(script: Script, body: &Value) -> Vec<u32> {
    let prompt: Vec<u32> = serde_json::from_value(body["prompt"].clone()).unwrap();
    let last = |id| prompt.iter().rposition(|token| *token == id);
    let mut all = Vec::new();
    if last(START) > last(END) {
        let before = prompt[last(START).unwrap()..].iter().filter(|id| **id == THOUGHT).count() as u64;
        all.extend((before..script.thinks).map(|_| THOUGHT));
        all.push(END);
        // A special token without text is no text to stop at.
        if body["stop"] == json!(["</think>"]) && body["skip_special_tokens"] == false {
            return limited(all, body);
        }
    }
    all.extend((0..script.answers).map(|_| ANSWER));
    all.push(END_OF_TEXT);
    limited(all, body)
}

fn limited(mut all: Vec<u32>, body: &Value) -> Vec<u32> {
    all.truncate(usize::try_from(body["max_tokens"].as_u64().unwrap()).unwrap());
    all
}

/// One token each time; the last chunk says why it is the last.
pub(super) fn answer(script: Script, work: Vec<u32>, record: Record) -> Response {
    let stream = futures_util::stream::unfold(0, move |at| {
        let (work, record) = (work.clone(), record.clone());
        async move {
            let id = *work.get(at)?;
            tokio::time::sleep(PACE).await;
            if script.fails_after == Some(at as u64) {
                let error = super::rules::failure();
                return Some((
                    Ok::<_, std::convert::Infallible>(Bytes::from(format!("data: {error}\n\n"))),
                    work.len(),
                ));
            }
            record.generated.fetch_add(1, Ordering::SeqCst);
            record.thought.fetch_add(u64::from(id == THOUGHT), Ordering::SeqCst);
            let last = at + 1 == work.len();
            let (finish, reason) = match id {
                END => (Some("stop"), Some("</think>")),
                END_OF_TEXT => (Some("stop"), None),
                _ => (last.then_some("length"), None),
            };
            let text = WORDS.iter().find(|(_, word)| *word == id && id > END).map_or("", |(text, _)| *text);
            let choice = json!({ "index": 0, "text": text, "token_ids": [id], "finish_reason": finish, "stop_reason": reason });
            let mut events = format!(
                "data: {}\n\n",
                json!({ "id": "c", "object": "text_completion", "choices": [choice] })
            );
            if last {
                let usage =
                    json!({ "prompt_tokens": record.prompt, "completion_tokens": record.generated() });
                events += &format!("data: {}\n\ndata: [DONE]\n\n", json!({ "choices": [], "usage": usage }));
            }
            Some((Ok(events.into()), at + 1))
        }
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream)).into_response()
}
