//! vLLM's raw endpoints: it renders and tokenizes, and takes and names tokens.

use std::sync::atomic::Ordering;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::chat::{Record, Script};

pub(super) const END_OF_TEXT: u32 = 0;
const START: u32 = 1;
pub(super) const END: u32 = 2;
pub(super) const THOUGHT: u32 = 10;
const ANSWER: u32 = 11;

/// The tokens that are longer than a character.
const WORDS: [(&str, u32); 5] =
    [("<think>", START), ("</think>", END), ("hm ", THOUGHT), ("so ", ANSWER), ("\n\n", 12)];

/// `/tokenize`, of a text or of a conversation, whose template begins a thought or closes an empty one.
pub(super) fn tokenize(script: Script, body: &Value) -> Value {
    let text = match body["prompt"].as_str() {
        Some(text) => text.to_owned(),
        None => {
            let thinks = body["chat_template_kwargs"]["enable_thinking"] != false;
            let begins = if thinks { "<think>\n" } else { "<think>\n\n</think>\n\n" };
            format!("{}\n{}", body["messages"], if script.plain { "" } else { begins })
        }
    };
    let spelled = || text.chars().map(|character| 100 + character as u32).collect();
    let ids = if script.plain { spelled() } else { tokens(&text) };
    json!({ "tokens": ids, "count": ids.len(), "max_model_len": script.context })
}

pub(super) fn tokens(mut text: &str) -> Vec<u32> {
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

/// What a prompt of tokens makes it write, as it is asked for.
pub(super) fn asked(script: Script, body: &Value) -> Vec<u32> {
    let prompt: Vec<u32> = serde_json::from_value(body["prompt"].clone()).unwrap();
    // A special token without text is no text to stop at.
    let stops = body["stop"] == json!(["</think>"]) && body["skip_special_tokens"] == false;
    work(script, &prompt, body["max_tokens"].as_u64(), stops)
}

/// What a prompt of tokens makes it write: tokens, the last of which may end it.
pub(super) fn work(script: Script, prompt: &[u32], limit: Option<u64>, stops: bool) -> Vec<u32> {
    let last = |id| prompt.iter().rposition(|token| *token == id);
    let (mut all, mut stopped) = (Vec::new(), false);
    if last(START) > last(END) {
        let before = prompt[last(START).unwrap()..].iter().filter(|id| **id == THOUGHT).count() as u64;
        all.extend((before..script.thinks).map(|_| THOUGHT));
        all.push(END);
        stopped = stops;
    }
    if !stopped {
        all.extend((0..script.answers).map(|_| ANSWER));
        all.push(END_OF_TEXT);
    }
    all.truncate(limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap()));
    all
}

/// How many tokens from `at` on are of one kind and fit into one event.
pub(super) fn run(work: &[u32], at: usize, bulk: u64) -> usize {
    let alike = work[at..].iter().take_while(|id| **id == work[at] && **id >= THOUGHT).count();
    alike.clamp(1, usize::try_from(bulk).unwrap())
}

/// What a token says; special ones say nothing.
pub(super) fn text(id: u32) -> &'static str {
    WORDS.iter().find(|(_, word)| *word == id && id > END).map_or("", |(text, _)| *text)
}

/// One token each time; the last chunk says why it is the last.
pub(super) fn answer(script: Script, work: Vec<u32>, record: Record) -> Response {
    let stream = futures_util::stream::unfold(0, move |at| {
        let (work, record) = (work.clone(), record.clone());
        async move {
            let id = *work.get(at)?;
            tokio::time::sleep(script.pace()).await;
            if script.fails_after == Some(at as u64) {
                let error = super::rules::failure();
                return Some((
                    Ok::<_, std::convert::Infallible>(Bytes::from(format!("data: {error}\n\n"))),
                    work.len(),
                ));
            }
            let tokens = run(&work, at, script.bulk);
            record.generated.fetch_add(tokens as u64, Ordering::SeqCst);
            record.thought.fetch_add(if id == THOUGHT { tokens as u64 } else { 0 }, Ordering::SeqCst);
            let last = at + tokens == work.len();
            let (finish, reason) = match id {
                END => (Some("stop"), Some("</think>")),
                END_OF_TEXT => (Some("stop"), None),
                _ => (last.then_some("length"), None),
            };
            let (text, ids) = (text(id).repeat(tokens), &work[at..at + tokens]);
            let choice = json!({ "index": 0, "text": text, "token_ids": ids, "finish_reason": finish, "stop_reason": reason });
            let mut events = format!(
                "data: {}\n\n",
                json!({ "id": "c", "object": "text_completion", "choices": [choice] })
            );
            if last {
                let usage =
                    json!({ "prompt_tokens": record.prompt, "completion_tokens": record.generated() });
                events += &format!("data: {}\n\ndata: [DONE]\n\n", json!({ "choices": [], "usage": usage }));
            }
            Some((Ok(events.into()), at + tokens))
        }
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream)).into_response()
}
