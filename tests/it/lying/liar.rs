//! A provider that does not hold its limits, or says other than what it writes, in every dialect.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use stint::http::{self, Server};
use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;

/// How it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speech {
    Chat,
    /// vLLM's raw completions.
    Raw,
    /// llama.cpp's native completions.
    LlamaCpp,
    Anthropic,
    Gemini,
    Responses,
}

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lie {
    /// Writes 5,000 tokens whatever its limit, and says so.
    IgnoresLimit,
    /// The same, and says nothing of usage.
    NoUsage,
    /// The same, and says that it was one token.
    TooLittle,
    /// Writes three tokens, and says that it was a million.
    TooMuch,
    /// The same, and says that it was all the tokens that a number can say.
    TooMuchForever,
    /// The same, and says with each text that it was a million more.
    Growing,
    /// The same, and says that it was less than nothing.
    Negative,
    /// The same, and says so in a word.
    Words,
    /// Says the same 5,000 times.
    Repeats,
    /// Ends after three tokens, and writes on without end.
    AfterEnd,
    /// Writes without end, as fast as it is read.
    NeverEnds,
    /// The same in events of 200 KB.
    HugeEvents,
    /// One event of 8 MB.
    GiantEvent,
}

impl Lie {
    pub(super) const ALL: [Lie; 13] = [
        Lie::IgnoresLimit,
        Lie::NoUsage,
        Lie::TooLittle,
        Lie::TooMuch,
        Lie::TooMuchForever,
        Lie::Growing,
        Lie::Negative,
        Lie::Words,
        Lie::Repeats,
        Lie::AfterEnd,
        Lie::NeverEnds,
        Lie::HugeEvents,
        Lie::GiantEvent,
    ];

    /// True if it writes little, and lies only about how much that was.
    pub(super) fn is_short(self) -> bool {
        use Lie::{Growing, Negative, TooMuch, TooMuchForever, Words};
        matches!(self, TooMuch | TooMuchForever | Growing | Negative | Words)
    }

    fn texts(self) -> u64 {
        match self {
            _ if self.is_short() => 3,
            Lie::AfterEnd | Lie::NeverEnds | Lie::HugeEvents => u64::MAX,
            Lie::GiantEvent => 1,
            _ => 5_000,
        }
    }

    fn text(self, at: u64) -> String {
        match self {
            Lie::Repeats => "again ".to_owned(),
            Lie::HugeEvents => "so it goes on ".repeat(15_000),
            Lie::GiantEvent => "so it goes on ".repeat(600_000),
            _ => format!("word{at} "),
        }
    }

    fn usage(self) -> Option<Value> {
        match self {
            Lie::NoUsage => None,
            Lie::TooLittle => Some(json!(1)),
            Lie::TooMuch => Some(json!(1_000_000)),
            Lie::TooMuchForever => Some(json!(u64::MAX)),
            Lie::Growing => Some(json!(4_000_000)),
            Lie::Negative => Some(json!(-5)),
            Lie::Words => Some(json!("many")),
            Lie::AfterEnd => Some(json!(3)),
            _ => Some(json!(self.texts())),
        }
    }

    /// What it says after a text, where it says something then.
    fn usage_so_far(self, at: u64) -> Option<Value> {
        match self {
            Lie::TooLittle => Some(json!(1)),
            Lie::Growing => Some(json!((at + 1) * 1_000_000)),
            _ => None,
        }
    }
}

/// The provider. It serves until the test ends.
pub(super) struct Liar {
    pub(super) address: String,
    /// Texts that it wrote.
    pub(super) written: Arc<AtomicU64>,
    _tasks: Tasks,
}

impl Liar {
    /// `thinks` where all that it writes is thought.
    pub(super) fn start(speech: Speech, lie: Lie, thinks: bool) -> Liar {
        let (tasks, written) = (Tasks::default(), Arc::new(AtomicU64::new(0)));
        let bound = http::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = format!("http://{}", bound.address());
        let count = written.clone();
        let answer = move |uri: Uri| async move {
            match beside(uri.path()) {
                Some(json) => {
                    ([(header::CONTENT_TYPE, "application/json")], json.to_string()).into_response()
                }
                None => stream(speech, lie, thinks, count),
            }
        };
        let settings = stint::config::load(None, &|name| (name == "STINT_LEDGER").then(|| ":memory:".into()));
        let server = Server::new(settings.unwrap().http, Arc::new(Metrics::new().unwrap()), tasks.clone());
        tasks.spawn(server.serve(bound, Router::new().fallback(answer)));
        Liar { address, written, _tasks: tasks }
    }
}

/// What own servers tell of themselves.
fn beside(path: &str) -> Option<Value> {
    match path {
        "/tokenize" => Some(json!({ "tokens": [1, 2, 3] })),
        "/props" => Some(json!({ "chat_template": "<think></think>" })),
        "/apply-template" => Some(json!({ "prompt": "What is it?\n<think>\n" })),
        "/detokenize" => Some(json!({ "content": "" })),
        _ => None,
    }
}

fn stream(speech: Speech, lie: Lie, thinks: bool, written: Arc<AtomicU64>) -> Response {
    let stream = futures_util::stream::unfold(0, move |at| {
        let written = written.clone();
        async move {
            if at > lie.texts() {
                return None;
            }
            // A client that hangs up is noticed between two events.
            tokio::task::yield_now().await;
            let begin = if at == 0 { begins(speech, thinks) } else { String::new() };
            let more = if at == lie.texts() || (lie, at) == (Lie::AfterEnd, 3) {
                ends(speech, lie.usage().as_ref())
            } else {
                written.fetch_add(1, Ordering::SeqCst);
                says(speech, thinks, &lie.text(at), (at, lie))
            };
            Some((Ok::<_, Infallible>(Bytes::from(begin + &more)), at.saturating_add(1)))
        }
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream)).into_response()
}

fn events(all: &[Value]) -> String {
    all.iter().map(|event| format!("data: {event}\n\n")).collect()
}

pub(super) fn begins(speech: Speech, thinks: bool) -> String {
    if speech != Speech::Anthropic {
        return String::new();
    }
    let usage = json!({ "input_tokens": 5, "output_tokens": 1 });
    let block = if thinks {
        json!({ "type": "thinking", "thinking": "", "signature": "" })
    } else {
        json!({ "type": "text", "text": "" })
    };
    events(&[
        json!({ "type": "message_start", "message": { "usage": usage } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
    ])
}

pub(super) fn says(speech: Speech, thinks: bool, text: &str, (at, lie): (u64, Lie)) -> String {
    let event = match (speech, thinks) {
        (Speech::Chat, _) => {
            let member = if thinks { "reasoning_content" } else { "content" };
            let usage = lie.usage_so_far(at);
            let usage = usage.map(|wrote| json!({ "prompt_tokens": 5, "completion_tokens": wrote }));
            json!({ "choices": [{ "index": 0, "delta": { member: text } }], "usage": usage })
        }
        (Speech::Raw, _) => {
            json!({ "choices": [{ "index": 0, "text": text, "token_ids": [at % 1000 + 10] }] })
        }
        (Speech::LlamaCpp, _) => {
            json!({ "content": text, "tokens": [at % 1000 + 10], "stop": false, "tokens_evaluated": 5 })
        }
        (Speech::Anthropic, true) => json!({ "type": "content_block_delta", "index": 0,
                                             "delta": { "type": "thinking_delta", "thinking": text } }),
        (Speech::Anthropic, false) => json!({ "type": "content_block_delta", "index": 0,
                                              "delta": { "type": "text_delta", "text": text } }),
        (Speech::Gemini, _) => {
            let usage = lie.usage_so_far(at);
            let usage = usage.map(|wrote| json!({ "promptTokenCount": 5, "candidatesTokenCount": wrote }));
            json!({ "candidates": [{ "index": 0, "content": { "parts": [{ "text": text, "thought": thinks }] } }],
                    "usageMetadata": usage })
        }
        (Speech::Responses, true) => {
            json!({ "type": "response.reasoning_summary_text.delta", "delta": text })
        }
        (Speech::Responses, false) => json!({ "type": "response.output_text.delta", "delta": text }),
    };
    events(&[event])
}

pub(super) fn ends(speech: Speech, usage: Option<&Value>) -> String {
    let (read, wrote) = (5, usage.cloned().unwrap_or(json!(0)));
    let told = |value: Value| if usage.is_some() { value } else { Value::Null };
    match speech {
        Speech::Chat | Speech::Raw => {
            let usage = told(json!({ "prompt_tokens": read, "completion_tokens": wrote }));
            let end =
                json!({ "choices": [{ "index": 0, "delta": {}, "text": "", "finish_reason": "stop" }] });
            events(&[end, json!({ "choices": [], "usage": usage })]) + "data: [DONE]\n\n"
        }
        Speech::LlamaCpp => events(&[json!({ "content": "", "tokens": [], "stop": true, "stop_type": "eos",
                                             "tokens_predicted": wrote, "tokens_evaluated": read })]),
        Speech::Anthropic => events(&[
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" },
                    "usage": told(json!({ "output_tokens": wrote })) }),
            json!({ "type": "message_stop" }),
        ]),
        Speech::Gemini => {
            let usage = told(json!({ "promptTokenCount": read, "candidatesTokenCount": wrote }));
            events(&[
                json!({ "candidates": [{ "index": 0, "finishReason": "STOP" }], "usageMetadata": usage }),
            ])
        }
        Speech::Responses => {
            let usage = told(json!({ "input_tokens": read, "output_tokens": wrote }));
            events(&[json!({ "type": "response.completed", "response": { "usage": usage } })])
        }
    }
}
