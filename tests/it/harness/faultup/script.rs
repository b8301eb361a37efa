//! What the upstream is told to say, and the words for it.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

/// One step of an answer.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Sends these bytes in one write.
    Send(Vec<u8>),
    /// Sends these bytes one by one, with so long between them.
    Drip(Vec<u8>, Duration),
    /// Waits, or notes that the client left.
    Pause(Duration),
    /// Waits until it is opened, or notes that the client left.
    Wait(Gate),
    /// Says nothing more until the client leaves.
    Hold,
    /// Waits until more comes and closes the connection without reading it.
    Ignore,
    /// Closes the connection with a reset.
    Reset,
    /// Closes it; over TLS without saying so first.
    Close,
    /// Closes this side only, and waits for the client to leave.
    HalfClose,
}

/// What an answer waits at until a test opens it. Clones are one gate.
#[derive(Debug, Clone)]
pub(crate) struct Gate(watch::Sender<bool>);

impl Gate {
    pub(crate) fn shut() -> Gate {
        Gate(watch::Sender::new(false))
    }

    pub(crate) fn open(&self) {
        self.0.send_replace(true);
    }

    pub(super) async fn pass(&self) {
        let _ = self.0.subscribe().wait_for(|is_open| *is_open).await;
    }
}

/// How one request is answered.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(super) steps: Vec<Step>,
    /// False if the answer is given as soon as the head is there, and the body is left where it is.
    pub(super) reads_body: bool,
}

impl Script {
    /// These steps, once the request is there.
    pub(crate) fn new(steps: Vec<Step>) -> Script {
        Script { steps, reads_body: true }
    }

    /// The same before the body is there.
    pub(crate) fn early(self) -> Script {
        Script { reads_body: false, ..self }
    }

    /// The same with one more step.
    pub(crate) fn then(mut self, step: Step) -> Script {
        self.steps.push(step);
        self
    }

    /// The same with more bytes.
    pub(crate) fn send(self, bytes: impl AsRef<[u8]>) -> Script {
        self.then(Step::Send(bytes.as_ref().to_vec()))
    }

    /// The same with something before it.
    pub(crate) fn after(mut self, text: &str) -> Script {
        self.steps.insert(0, Step::Send(text.as_bytes().to_vec()));
        self
    }

    /// What it is made of.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// One more chunk of a chunked body.
    pub(crate) fn chunk(self, text: &str) -> Script {
        self.send(format!("{:x}\r\n{text}\r\n", text.len()))
    }

    /// The same once the gate is open.
    pub(crate) fn wait(self, gate: &Gate) -> Script {
        self.then(Step::Wait(gate.clone()))
    }

    /// The same after a wait.
    pub(crate) fn pause(self, millis: u64) -> Script {
        self.then(Step::Pause(Duration::from_millis(millis)))
    }
}

/// Nothing at all.
pub(crate) fn nothing() -> Script {
    Script::new(Vec::new())
}

/// The head of a stream whose end is the connection's.
pub(crate) fn stream() -> Script {
    nothing().send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
}

/// The head of a chunked stream.
pub(crate) fn chunked() -> Script {
    nothing().send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
}

/// A whole answer with its length.
pub(crate) fn whole(status: &str, headers: &str, body: &str) -> Script {
    nothing().send(format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()))
}

/// A good stream: these words, why they end, the usage, the end mark.
pub(crate) fn good(words: &[&str], prompt: u64, completion: u64) -> String {
    let texts: String = words.iter().map(|word| event(&says(word))).collect();
    texts + &event(&ends("stop")) + &event(&used(prompt, completion)) + DONE
}

/// A good chunked answer of 7 tokens read and 2 written: 15 nano-dollars.
pub(crate) fn answers() -> Script {
    chunked().chunk(&good(&["4", "2"], 7, 2)).send("0\r\n\r\n")
}

/// What ends a stream.
pub(crate) const DONE: &str = "data: [DONE]\n\n";

/// An event.
pub(crate) fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// A chunk with some text.
pub(crate) fn says(text: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": null }] })
}

/// The chunk that says why it ends.
pub(crate) fn ends(word: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": word }] })
}

/// The chunk that says what it took.
pub(crate) fn used(prompt: u64, completion: u64) -> Value {
    json!({ "choices": [], "usage": {
        "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion } })
}
