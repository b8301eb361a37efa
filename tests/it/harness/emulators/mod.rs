//! Providers in this process, on real sockets: they check what the real ones check, refuse in their words, and keep a
//! log of what they billed. What the model says is a script; a word is a token.

pub(crate) mod anthropic;
mod bound;
pub(crate) mod chat;
mod claude;
pub(crate) mod efforts;
pub(crate) mod gemini;
mod native;
pub(crate) mod openai;
mod raw;
pub(crate) mod responses;
mod rules;
mod schemas;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use stint::http::{self, Server};
use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;

/// The key that they all take.
pub(crate) const KEY: &str = "the-key-of-an-emulator";

/// How many words one event carries at least.
const WORDS: usize = 8;

/// How long one takes: 800 tokens a second, which is quick for a provider.
const PACE: Duration = Duration::from_millis(10);

/// No answer comes in many more events than this.
const EVENTS: usize = 400;

/// What the model does with one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turn {
    /// How many words it would think, if it were let.
    pub(crate) thinks: u64,
    /// What it answers.
    pub(crate) answer: String,
    /// The tools that it calls, each with its arguments.
    pub(crate) calls: Vec<(&'static str, Value)>,
    /// After how many events it is over, if not at the end.
    pub(crate) fails_after: Option<usize>,
}

impl Turn {
    pub(crate) fn answers(thinks: u64, answer: &str) -> Turn {
        Turn { thinks, answer: answer.to_owned(), ..Turn::default() }
    }

    pub(crate) fn calls(thinks: u64, calls: &[(&'static str, Value)]) -> Turn {
        Turn { thinks, calls: calls.to_vec(), ..Turn::default() }
    }
}

/// What a request was billed, so far as it went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bill {
    pub(crate) prompt: u64,
    pub(crate) cache_read: u64,
    pub(crate) cache_write: u64,
    /// How much of that for an hour.
    pub(crate) cache_hour: u64,
    pub(crate) written: u64,
}

/// What a request lets the model do.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grant {
    pub(crate) model: String,
    pub(crate) bill: Bill,
    /// The most that may be thought; nothing where it does not think.
    pub(crate) thinking: Option<u64>,
    /// The most that may be written.
    pub(crate) most: u64,
    /// Whether thoughts are shown.
    pub(crate) shows: bool,
    /// What thoughts are bound to, where they are.
    pub(crate) prefix: Option<bound::Prefix>,
    /// How many messages the conversation has, where ids of calls go by that.
    pub(crate) messages: usize,
}

/// What the model wrote.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) thought: Vec<String>,
    pub(crate) answer: Vec<String>,
    pub(crate) calls: Vec<(&'static str, Value)>,
    pub(crate) limited: bool,
}

impl Written {
    /// What a model writes that is let do so much.
    fn new(grant: &Grant, turn: &Turn) -> Written {
        let thinks = turn.thinks.min(grant.thinking.unwrap_or(0));
        // About as many characters as a token has.
        let thought: Vec<String> = words((0..thinks.min(grant.most)).map(|at| format!("w{at}")));
        let mut left = grant.most - thought.len() as u64;
        let all: Vec<String> = words(turn.answer.split_whitespace().map(str::to_owned));
        let answer: Vec<String> = all.iter().take(usize::try_from(left).unwrap()).cloned().collect();
        left -= answer.len() as u64;
        let calls: u64 = turn.calls.iter().map(call_words).sum();
        let limited = thinks > grant.most || answer.len() < all.len() || calls > left;
        let calls = if limited { Vec::new() } else { turn.calls.clone() };
        Written { thought, answer, calls, limited }
    }

    pub(crate) fn thought_text(&self) -> String {
        self.thought.concat()
    }

    pub(crate) fn answer_text(&self) -> String {
        self.answer.concat()
    }

    /// All that was written, in words.
    pub(crate) fn count(&self) -> u64 {
        let calls: u64 = self.calls.iter().map(call_words).sum();
        self.thought.len() as u64 + self.answer.len() as u64 + calls
    }
}

/// A call is its name and its arguments.
pub(crate) fn call_words((_, arguments): &(&'static str, Value)) -> u64 {
    1 + count(arguments)
}

/// Words with the blanks that follow them.
fn words(words: impl Iterator<Item = String>) -> Vec<String> {
    words.map(|word| word + " ").collect()
}

/// So many words at once.
pub(crate) fn chunks(words: &[String]) -> impl Iterator<Item = (String, u64)> + '_ {
    words.chunks(WORDS.max(words.len() / EVENTS)).map(|chunk| (chunk.concat(), chunk.len() as u64))
}

/// The words of all texts in a value.
pub(crate) fn count(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.split_whitespace().count() as u64,
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// One event, and the words that are billed with it.
#[derive(Debug, Clone)]
pub(crate) struct Emitted {
    pub(crate) text: String,
    pub(crate) words: u64,
}

/// An event with its name, as most send them.
pub(crate) fn named(data: &Value, words: u64) -> Emitted {
    let name = data["type"].as_str().unwrap();
    Emitted { text: format!("event: {name}\ndata: {data}\n\n"), words }
}

/// A refusal: a status, and a body.
pub(crate) type Refusal = (u16, Value);

/// What tells one provider from another.
pub(crate) trait Api: Send + Sync + 'static {
    /// Below the address, where the API begins.
    const BASE: &'static str;

    /// Checks a request, and says what it lets the model do.
    fn check(&self, uri: &Uri, headers: &HeaderMap, body: &Value) -> Result<Grant, Refusal>;

    /// The events of an answer.
    fn events(&self, grant: &Grant, written: &Written) -> Vec<Emitted>;

    /// The event that comes in place of all others where it fails.
    fn failure(&self) -> Emitted;
}

/// A provider that serves until the test ends.
pub(crate) struct Emulator {
    /// Where its API begins.
    pub(crate) base: String,
    log: Arc<Log>,
    _tasks: Tasks,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Arrived {
    pub(crate) path: String,
    /// The features before their release that it asks for.
    pub(crate) betas: Vec<String>,
    pub(crate) body: Value,
    /// What was said to it, if it was refused.
    pub(crate) refusal: Option<Value>,
}

/// Which turn answers a request.
type Turns = Box<dyn Fn(&Value) -> Turn + Send + Sync>;

struct Log {
    turns: Turns,
    asked: Mutex<Vec<Arrived>>,
    refused: Mutex<Vec<Refusal>>,
    bills: Mutex<Vec<Bill>>,
}

impl Emulator {
    /// One that takes the turns of a script in their order.
    pub(crate) fn start(api: impl Api, script: Vec<Turn>) -> Emulator {
        let script = Mutex::new(VecDeque::from(script));
        let next = move |_: &Value| script.lock().unwrap().pop_front().expect("a turn for each request");
        Emulator::start_by(api, next)
    }

    /// One whose turns follow from what is asked.
    pub(crate) fn start_by<A: Api>(
        api: A,
        turns: impl Fn(&Value) -> Turn + Send + Sync + 'static,
    ) -> Emulator {
        let (tasks, api) = (Tasks::default(), Arc::new(api));
        let log = Arc::new(Log {
            turns: Box::new(turns),
            asked: Mutex::default(),
            refused: Mutex::default(),
            bills: Mutex::default(),
        });
        let bound = http::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let base = format!("http://{}{}", bound.address(), A::BASE);
        let seen = log.clone();
        let answer = move |uri: Uri, headers: HeaderMap, body: Bytes| async move {
            seen.answer(&*api, &uri, &headers, &body)
        };
        let settings = stint::config::load(None, &|name| (name == "STINT_LEDGER").then(|| ":memory:".into()));
        let server = Server::new(settings.unwrap().http, Arc::new(Metrics::new().unwrap()), tasks.clone());
        tasks.spawn(server.serve(bound, Router::new().fallback(answer)));
        Emulator { base, log, _tasks: tasks }
    }

    /// The bodies of the requests that came, refused ones too.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.arrived().into_iter().map(|arrived| arrived.body).collect()
    }

    /// The requests that came, refused ones too.
    pub(crate) fn arrived(&self) -> Vec<Arrived> {
        self.log.asked.lock().unwrap().clone()
    }

    /// What was refused, and how.
    pub(crate) fn refused(&self) -> Vec<Refusal> {
        self.log.refused.lock().unwrap().clone()
    }

    pub(crate) fn bills(&self) -> Vec<Bill> {
        self.log.bills.lock().unwrap().clone()
    }
}

impl Log {
    fn answer(self: Arc<Log>, api: &impl Api, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Response {
        let body: Value = serde_json::from_slice(body).unwrap();
        let grant = api.check(uri, headers, &body);
        self.asked.lock().unwrap().push(Arrived {
            path: uri.path().to_owned(),
            betas: betas(headers),
            body: body.clone(),
            refusal: grant.as_ref().err().map(|(_, told)| told.clone()),
        });
        let grant = match grant {
            Ok(grant) => grant,
            Err((status, told)) => {
                self.refused.lock().unwrap().push((status, told.clone()));
                let kind = [(header::CONTENT_TYPE, "application/json")];
                return (StatusCode::from_u16(status).unwrap(), kind, told.to_string()).into_response();
            }
        };
        let turn = (self.turns)(&body);
        let written = Written::new(&grant, &turn);
        let mut events = api.events(&grant, &written);
        if let Some(after) = turn.fails_after {
            events.truncate(after);
            events.push(api.failure());
        }
        let bill = {
            let mut bills = self.bills.lock().unwrap();
            bills.push(grant.bill);
            bills.len() - 1
        };
        // A long answer comes as fast as it is taken.
        let steady = events.len() < EVENTS / 4;
        let paced =
            futures_util::stream::unfold((events.into_iter(), self), move |(mut events, log)| async move {
                let event = events.next()?;
                tokio::time::sleep(pace(event.words, steady)).await;
                log.bills.lock().unwrap()[bill].written += event.words;
                Some((Ok::<_, Infallible>(Bytes::from(event.text)), (events, log)))
            });
        ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(paced)).into_response()
    }
}

/// The features before their release that are asked for, in order.
fn betas(headers: &HeaderMap) -> Vec<String> {
    let listed = said(headers, "anthropic-beta").unwrap_or_default().split(',').map(str::trim);
    listed.filter(|beta| !beta.is_empty()).map(str::to_owned).collect()
}

/// How long an event takes to write.
fn pace(words: u64, steady: bool) -> Duration {
    let times = if steady { words.div_ceil(WORDS as u64).max(1) } else { 0 };
    PACE * u32::try_from(times.min(100)).unwrap()
}

/// The first member that is not among the known ones.
pub(crate) fn unknown<'v>(value: &'v Value, known: &[&str]) -> Option<&'v str> {
    let mut names = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    names.find(|name| !known.contains(name))
}

/// A signature that only this model gives for this text.
pub(crate) fn sign(model: &str, text: &str) -> String {
    let sum = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{model}+/{sum:x}==")
}

/// The text of a header.
pub(crate) fn said<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}
