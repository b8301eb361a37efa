//! The answers, written once at the start.

use std::sync::Arc;

use hyper::body::Bytes;
use serde_json::{Value, json};

use crate::scenario::UpstreamScript;

use super::words::Wanted;

/// What is answered where there is no place, or no body.
pub(super) const REFUSAL: &str =
    r#"{"error":{"message":"no place","type":"rate_limit_error","code":"rate_limit_exceeded"}}"#;

/// The list of models, by which some gateways find out whether an upstream is alive.
pub(super) const MODELS: &str =
    r#"{"object":"list","data":[{"id":"m","object":"model","created":1700000000,"owned_by":"loader"}]}"#;

const ALPHABET: &[u8; 26] = b"abcdefghijklmnopqrstuvwxyz";
const PROMPT_TOKENS: usize = 12;

/// A word that somebody who receives it can count.
fn word(at: usize, end: char) -> String {
    format!("{}{end}", char::from(ALPHABET[at % ALPHABET.len()]))
}

fn text(words: usize) -> String {
    (0..words).map(|at| word(at, '#')).collect()
}

/// The events of one kind of answer, from the first to the last.
pub(super) type Events = Arc<[Bytes]>;

/// Every answer that there is.
pub(super) struct Answers {
    chat: Bytes,
    messages: Bytes,
    /// With a thought first where the script has one, and usage told in an event of its own.
    events: Events,
    /// The same without the event for usage.
    events_without_usage: Events,
    /// Without a thought.
    continued: Events,
    messages_events: Events,
}

impl Answers {
    pub(super) fn new(script: &UpstreamScript) -> Answers {
        let words = script.words();
        let chat = ChatEvents { words, thoughts: script.thoughts, calls_tool: script.calls_tool };
        Answers {
            chat: whole_chat(&chat).into(),
            messages: whole_messages(words).into(),
            events: chat.write(true),
            events_without_usage: chat.write(false),
            continued: ChatEvents { thoughts: 0, ..chat }.write(true),
            messages_events: messages_events(words),
        }
    }

    pub(super) fn whole(&self, wanted: &Wanted) -> Bytes {
        if wanted.messages { self.messages.clone() } else { self.chat.clone() }
    }

    pub(super) fn events(&self, wanted: &Wanted) -> Events {
        let events = match wanted {
            Wanted { messages: true, .. } => &self.messages_events,
            Wanted { continues: true, .. } => &self.continued,
            Wanted { usage: true, .. } => &self.events,
            Wanted { .. } => &self.events_without_usage,
        };
        events.clone()
    }
}

/// A streamed chat completion.
#[derive(Clone, Copy)]
struct ChatEvents {
    words: usize,
    thoughts: usize,
    calls_tool: bool,
}

impl ChatEvents {
    fn write(self, with_usage: bool) -> Events {
        let mut events = vec![self.delta(&json!({"role": "assistant", "content": ""}), None)];
        // As long as words are: until it knows better, a gateway takes a token for some bytes.
        let thought =
            (0..self.thoughts).map(|at| json!({"reasoning_content": format!(" thus{}", word(at, '~'))}));
        events.extend(thought.map(|delta| self.delta(&delta, None)));
        events.extend((0..self.words).map(|at| self.delta(&self.piece(at), None)));
        events.push(self.delta(&json!({}), Some(self.finish())));
        if with_usage {
            events.push(event(&chunk(&json!([]), &self.usage())));
        }
        events.push(Bytes::from_static(b"data: [DONE]\n\n"));
        events.into()
    }

    fn finish(self) -> &'static str {
        if self.calls_tool { "tool_calls" } else { "stop" }
    }

    /// What the event of this word says. A call's argument begins with its first word and ends with its last.
    fn piece(self, at: usize) -> Value {
        if !self.calls_tool {
            return json!({"content": word(at, '#')});
        }
        let begin = if at == 0 { "{\"query\": \"" } else { "" };
        let end = if at + 1 == self.words { "\"}" } else { "" };
        let arguments = format!("{begin}{}{end}", word(at, '#'));
        let call = if at == 0 {
            json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": "search", "arguments": arguments}})
        } else {
            json!({"index": 0, "function": {"arguments": arguments}})
        };
        json!({"tool_calls": [call]})
    }

    fn delta(self, delta: &Value, finish: Option<&str>) -> Bytes {
        event(&chunk(
            &json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}]),
            &Value::Null,
        ))
    }

    fn usage(self) -> Value {
        let written = self.words + self.thoughts;
        json!({
            "prompt_tokens": PROMPT_TOKENS,
            "completion_tokens": written,
            "total_tokens": PROMPT_TOKENS + written,
            "completion_tokens_details": {"reasoning_tokens": self.thoughts},
        })
    }

    fn message(self) -> Value {
        if !self.calls_tool {
            return json!({"role": "assistant", "content": text(self.words)});
        }
        let arguments = format!("{{\"query\": \"{}\"}}", text(self.words));
        let call = json!({"id": "call_1", "type": "function", "function": {"name": "search", "arguments": arguments}});
        json!({"role": "assistant", "content": null, "tool_calls": [call]})
    }
}

fn chunk(choices: &Value, usage: &Value) -> Value {
    let mut chunk = json!({
        "id": "chatcmpl-load", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "m",
        "choices": choices,
    });
    if !usage.is_null() {
        chunk["usage"] = usage.clone();
    }
    chunk
}

fn whole_chat(answer: &ChatEvents) -> String {
    json!({
        "id": "chatcmpl-load", "object": "chat.completion", "created": 1_700_000_000, "model": "m",
        "choices": [{"index": 0, "message": answer.message(), "finish_reason": answer.finish()}],
        "usage": answer.usage(),
    })
    .to_string()
}

fn event(data: &Value) -> Bytes {
    format!("data: {data}\n\n").into()
}

fn whole_messages(words: usize) -> String {
    json!({
        "id": "msg_load", "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "text", "text": text(words)}],
        "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": PROMPT_TOKENS, "output_tokens": words},
    })
    .to_string()
}

fn messages_events(words: usize) -> Events {
    let begin = json!({
        "id": "msg_load", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": PROMPT_TOKENS, "output_tokens": 1},
    });
    let mut events = vec![
        named("message_start", json!({"message": begin})),
        named("content_block_start", json!({"index": 0, "content_block": {"type": "text", "text": ""}})),
    ];
    let pieces =
        (0..words).map(|at| json!({"index": 0, "delta": {"type": "text_delta", "text": word(at, '#')}}));
    events.extend(pieces.map(|piece| named("content_block_delta", piece)));
    let end = json!({"delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": words}});
    events.push(named("content_block_stop", json!({"index": 0})));
    events.push(named("message_delta", end));
    events.push(named("message_stop", json!({})));
    events.into()
}

fn named(name: &str, mut data: Value) -> Bytes {
    data["type"] = name.into();
    format!("event: {name}\ndata: {data}\n\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: Wanted = Wanted { stream: true, usage: true, continues: false, messages: false };

    fn count(events: &Events, end: u8) -> usize {
        events.iter().map(|event| memchr::memchr_iter(end, event).count()).sum()
    }

    #[test]
    fn a_stream_has_as_many_events_as_the_script_says_and_a_word_in_each_but_four() {
        let answers = Answers::new(&UpstreamScript::default());
        let events = answers.events(&WANTED);
        assert_eq!((events.len(), count(&events, b'#'), count(&events, b'~')), (53, 49, 0));
        let without = answers.events(&Wanted { usage: false, ..WANTED });
        assert_eq!((without.len(), count(&without, b'#')), (52, 49));
    }

    #[test]
    fn a_plain_answer_has_the_words_of_a_stream() {
        let answers = Answers::new(&UpstreamScript::default());
        let whole = answers.whole(&Wanted { stream: false, ..WANTED });
        assert_eq!(memchr::memchr_iter(b'#', &whole).count(), 49);
        assert!((300..400).contains(&whole.len()), "{}", whole.len());
    }

    #[test]
    fn a_thought_comes_first_and_is_not_told_again_to_who_continues_it() {
        let answers = Answers::new(&UpstreamScript { thoughts: 20, ..UpstreamScript::default() });
        assert_eq!(count(&answers.events(&WANTED), b'~'), 20);
        assert_eq!(count(&answers.events(&Wanted { continues: true, ..WANTED }), b'~'), 0);
    }

    #[test]
    fn the_argument_of_a_tool_call_is_json_when_its_pieces_are_put_together() {
        let answers = Answers::new(&UpstreamScript { calls_tool: true, ..UpstreamScript::default() });
        let mut arguments = String::new();
        for event in answers.events(&WANTED).iter().filter(|event| !event.ends_with(b"[DONE]\n\n")) {
            let event: Value = serde_json::from_slice(&event[b"data: ".len()..]).unwrap();
            let piece = &event["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"];
            arguments.push_str(piece.as_str().unwrap_or(""));
        }
        let arguments: Value = serde_json::from_str(&arguments).unwrap();
        assert_eq!(arguments["query"], text(49));
    }
}
