//! A provider of chat completions. It thinks and answers by a script, a token at a time, under its own limits, and
//! keeps a log of its own: the truth about what was asked, generated and billed.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use stint::http::{self, Server};
use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;

use super::rules::{self, Work};
use super::{Arrived, native, raw};

/// How long a token takes: long enough for it to be noticed that a caller has left.
const PACE: Duration = Duration::from_millis(5);

/// Which provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    DeepSeek,
    DashScope,
    OpenRouter,
    Vllm,
    Sglang,
    LlamaCpp,
    Mistral,
    Xai,
    Ollama,
    Moonshot,
    OpenAi,
}

/// What it does when it is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Script {
    /// How long it would think, in tokens.
    pub(crate) thinks: u64,
    /// How long it would answer.
    pub(crate) answers: u64,
    /// Fails after so many tokens.
    pub(crate) fails_after: Option<u64>,
    /// False if its server was started without what holds a budget.
    pub(crate) holds: bool,
    /// True if it takes a budget and does not hold it.
    pub(crate) forgets: bool,
    /// True if it has no room for those who state a budget.
    pub(crate) busy: bool,
    /// The effort words that it takes, and how much it thinks at each; where there are none, it takes all and minds none.
    pub(crate) efforts: &'static [(&'static str, u64)],
    /// How many tokens one event carries. More than one come as fast as they are taken.
    pub(crate) bulk: u64,
    /// True if its template knows of no thoughts, and its tokenizer of no tags.
    pub(crate) plain: bool,
    /// The context that its server was given, as far as it tells.
    pub(crate) context: u64,
}

impl Script {
    pub(crate) fn new(thinks: u64, answers: u64) -> Script {
        Script {
            thinks,
            answers,
            fails_after: None,
            holds: true,
            forgets: false,
            busy: false,
            efforts: &[],
            bulk: 1,
            plain: false,
            context: 131_072,
        }
    }

    /// How long it takes for the next event.
    pub(super) fn pace(&self) -> Duration {
        if self.bulk > 1 { Duration::ZERO } else { PACE }
    }
}

/// One call: what was asked and what is billed for it.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) path: String,
    pub(crate) body: Value,
    pub(crate) prompt: u64,
    pub(super) generated: Arc<AtomicU64>,
    pub(super) thought: Arc<AtomicU64>,
}

impl Record {
    /// Everything that was generated, also what nobody took.
    pub(crate) fn generated(&self) -> u64 {
        self.generated.load(Ordering::SeqCst)
    }

    /// How much of it was thought.
    pub(crate) fn thought(&self) -> u64 {
        self.thought.load(Ordering::SeqCst)
    }
}

/// A provider in this process. It serves until the test ends.
#[derive(Debug)]
pub(crate) struct Emulator {
    /// Where it is, without a path.
    pub(crate) address: String,
    log: Arc<Mutex<Vec<Record>>>,
    refusals: Arc<Mutex<Vec<Value>>>,
    arrived: Arc<Mutex<Vec<Arrived>>>,
    _tasks: Tasks,
}

impl Emulator {
    /// One that does the same whatever it is asked.
    pub(crate) fn start(kind: Kind, script: Script) -> Emulator {
        Emulator::start_by(kind, move |_| script)
    }

    /// One whose script follows from what is asked.
    pub(crate) fn start_by(
        kind: Kind,
        scripts: impl Fn(&Value) -> Script + Send + Sync + 'static,
    ) -> Emulator {
        let (tasks, log) = (Tasks::default(), Arc::<Mutex<Vec<Record>>>::default());
        let refusals = Arc::<Mutex<Vec<Value>>>::default();
        let bound = http::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let address = format!("http://{}", bound.address());
        let arrived = Arc::<Mutex<Vec<Arrived>>>::default();
        let (seen, refused, came) = (log.clone(), refusals.clone(), arrived.clone());
        let scripts = Arc::new(scripts);
        let answer = move |uri: Uri, body: String| async move {
            let body: Value = serde_json::from_str(&body).unwrap_or_default();
            let script = scripts(&body);
            match uri.path() {
                path if kind == Kind::LlamaCpp && native::is_path(path) => {
                    return native::serve(script, path, &body, |prompt| {
                        let record = Record { prompt, ..record(path, &body) };
                        seen.lock().unwrap().push(record.clone());
                        record
                    });
                }
                "/tokenize" if kind == Kind::Vllm => {
                    let json = [(header::CONTENT_TYPE, "application/json")];
                    return (json, raw::tokenize(script, &body).to_string()).into_response();
                }
                "/v1/completions" if kind == Kind::Vllm => {
                    let prompt = body["prompt"].as_array().unwrap().len() as u64;
                    let record = Record { prompt, ..record(uri.path(), &body) };
                    seen.lock().unwrap().push(record.clone());
                    return raw::answer(script, raw::asked(script, &body), record);
                }
                _ => {}
            }
            let work = rules::work(kind, script, uri.path(), &body);
            let refusal = work.as_ref().err().map(|(_, error)| error.clone());
            came.lock().unwrap().push(arrived_at(uri.path(), &body, refusal));
            match work {
                Ok(work) => {
                    let record = record(uri.path(), &body);
                    if body["stream"] == false {
                        let answer = whole_answer(kind, script, &work, &record).await;
                        // Nobody bills an answer of which nothing was sent.
                        if answer.status().is_success() {
                            seen.lock().unwrap().push(record);
                        }
                        return answer;
                    }
                    seen.lock().unwrap().push(record.clone());
                    answer(kind, script, work, record)
                }
                Err((status, error)) => {
                    refused.lock().unwrap().push(error.clone());
                    let status = StatusCode::from_u16(status).unwrap();
                    (status, [(header::CONTENT_TYPE, "application/json")], error.to_string()).into_response()
                }
            }
        };
        let settings = stint::config::load(None, &|name| (name == "STINT_LEDGER").then(|| ":memory:".into()));
        let server = Server::new(settings.unwrap().http, Arc::new(Metrics::new().unwrap()), tasks.clone());
        tasks.spawn(server.serve(bound, Router::new().fallback(answer)));
        Emulator { address, log, refusals, arrived, _tasks: tasks }
    }

    /// The calls that it took up, in order.
    pub(crate) fn calls(&self) -> Vec<Record> {
        self.log.lock().unwrap().clone()
    }

    /// The requests for chat completions that came, refused ones too.
    pub(crate) fn arrived(&self) -> Vec<Arrived> {
        self.arrived.lock().unwrap().clone()
    }

    /// What it said to those that it refused.
    pub(crate) fn refusals(&self) -> Vec<Value> {
        self.refusals.lock().unwrap().clone()
    }

    /// What it bills, in nano-dollars: 1 for a token read and 4 for one written.
    pub(crate) fn bill(&self) -> u64 {
        self.calls().iter().map(|call| call.prompt + 4 * call.generated()).sum()
    }
}

fn arrived_at(path: &str, body: &Value, refusal: Option<Value>) -> Arrived {
    Arrived { path: path.to_owned(), betas: Vec::new(), body: body.clone(), refusal }
}

fn record(path: &str, body: &Value) -> Record {
    let words = |value: &Value| value.to_string().split_whitespace().count() as u64;
    Record {
        path: path.to_owned(),
        body: body.clone(),
        prompt: words(&body["messages"]),
        generated: Arc::default(),
        thought: Arc::default(),
    }
}

/// One token each time, then the reason for the end and the usage; or an error in the middle.
fn answer(kind: Kind, script: Script, work: Work, record: Record) -> Response {
    let all = work.thought + work.answer;
    let stream = futures_util::stream::unfold(0, move |at| {
        let (work, record) = (work.clone(), record.clone());
        async move {
            if at > all {
                return None;
            }
            tokio::time::sleep(script.pace()).await;
            if script.fails_after == Some(at) {
                return Some((events(&[rules::failure()]), all + 1));
            }
            if at == all {
                return Some((last(kind, &work, &record), at + 1));
            }
            // No event reaches from the thought into the answer.
            let phase = if at < work.thought { work.thought } else { all };
            let tokens = script.bulk.min(phase - at);
            record.generated.fetch_add(tokens, Ordering::SeqCst);
            if at < work.thought {
                record.thought.fetch_add(tokens, Ordering::SeqCst);
            }
            Some((events(&[token(kind, &work, &record, (at, tokens))]), at + tokens))
        }
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream)).into_response()
}

/// All of it in one piece, once it is written.
async fn whole_answer(kind: Kind, script: Script, work: &Work, record: &Record) -> Response {
    let mut message = json!({ "role": "assistant", "content": "" });
    for at in 0..work.thought + work.answer {
        tokio::time::sleep(script.pace()).await;
        if script.fails_after == Some(at) {
            return (StatusCode::INTERNAL_SERVER_ERROR, rules::failure().to_string()).into_response();
        }
        record.generated.fetch_add(1, Ordering::SeqCst);
        if at < work.thought {
            record.thought.fetch_add(1, Ordering::SeqCst);
        }
        let token = token(kind, work, record, (at, 1));
        for (name, more) in token["choices"][0]["delta"].as_object().unwrap() {
            message[name] = match (message[name].take(), more) {
                (Value::String(text), Value::String(more)) => (text + more).into(),
                (Value::Array(mut parts), Value::Array(more)) => {
                    parts.extend(more.iter().cloned());
                    parts.into()
                }
                (_, more) => more.clone(),
            };
        }
    }
    let finish = if work.cut_off { "length" } else { "stop" };
    let mut whole = json!({ "id": "c", "object": "chat.completion", "created": 0, "model": "m",
        "choices": [{ "index": 0, "message": message, "finish_reason": finish }] });
    whole["usage"] = usage(kind, record);
    ([(header::CONTENT_TYPE, "application/json")], whole.to_string()).into_response()
}

type Sent = Result<Bytes, Infallible>;

fn events(events: &[Value]) -> Sent {
    Ok(events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>().into())
}

/// A token is three characters long.
fn token(kind: Kind, work: &Work, record: &Record, (at, tokens): (u64, u64)) -> Value {
    let times = |word: &str| word.repeat(usize::try_from(tokens).unwrap());
    let (hm, so) = (times("hm "), times("so "));
    let delta = match kind {
        _ if at >= work.thought => json!({ "content": so }),
        // Hidden thoughts take their time all the same.
        Kind::OpenAi | Kind::Xai => json!({}),
        Kind::OpenRouter => json!({ "content": "", "reasoning": hm,
            "reasoning_details": [{ "type": "reasoning.text", "text": hm, "index": 0 }] }),
        Kind::Vllm | Kind::Ollama => json!({ "reasoning": hm }),
        Kind::Mistral => {
            json!({ "content": [{ "type": "thinking", "thinking": [{ "type": "text", "text": hm }] }] })
        }
        Kind::DeepSeek | Kind::DashScope | Kind::Sglang | Kind::LlamaCpp | Kind::Moonshot => {
            json!({ "reasoning_content": hm })
        }
    };
    let delta = if work.mistaken && at >= work.thought { json!({ "reasoning": so }) } else { delta };
    let mut chunk = chunk(&delta, None);
    let (written, asked) = (record.generated(), &record.body);
    if asked["stream_options"]["continuous_usage_stats"] == true {
        chunk["usage"] = usage(kind, record);
    }
    if asked["return_token_ids"] == true && kind == Kind::Vllm {
        chunk["choices"][0]["token_ids"] = (0..tokens).map(|back| json!(written - back)).collect();
    }
    if asked["timings_per_token"] == true && kind == Kind::LlamaCpp {
        chunk["timings"] = json!({ "prompt_n": record.prompt, "cache_n": 0, "predicted_n": written });
    }
    chunk
}

fn last(kind: Kind, work: &Work, record: &Record) -> Sent {
    let end = chunk(&json!({}), Some(if work.cut_off { "length" } else { "stop" }));
    let mut usage = chunk(&json!({}), None);
    usage["choices"] = json!([]);
    usage["usage"] = self::usage(kind, record);
    let asked = record.body["stream_options"]["include_usage"] == true || kind == Kind::Mistral;
    let all = if asked { vec![end, usage] } else { vec![end] };
    events(&all).map(|bytes| [&bytes[..], b"data: [DONE]\n\n"].concat().into())
}

fn usage(kind: Kind, record: &Record) -> Value {
    let (prompt, written) = (record.prompt, record.generated());
    let mut usage =
        json!({ "prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written });
    if matches!(kind, Kind::DeepSeek | Kind::DashScope | Kind::OpenRouter | Kind::Xai | Kind::OpenAi) {
        usage["completion_tokens_details"] = json!({ "reasoning_tokens": record.thought() });
    }
    usage
}

fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    json!({ "id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
}
