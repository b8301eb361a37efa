//! What the upstream received and sent.

use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::harness::patience::QuietInstant;

/// One request and what became of it.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    /// The connection that it came by; the first is 0.
    pub(crate) connection: usize,
    /// Request line and headers as they were, in lower case.
    pub(crate) head: String,
    /// JSON; null where it was not read.
    pub(crate) body: Value,
    /// How many bytes were sent to it.
    pub(crate) sent: usize,
    /// When the client left, if it left before the script was at its end.
    pub(crate) left: Option<QuietInstant>,
    /// The script is at its end.
    pub(crate) over: bool,
}

/// All requests, in the order in which they came.
#[derive(Debug, Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<Exchange>>>);

impl Log {
    /// A request came; where it stands in the log.
    pub(super) fn asked(&self, connection: usize, head: String, body: Value) -> usize {
        let mut all = self.0.lock().unwrap();
        all.push(Exchange { connection, head, body, sent: 0, left: None, over: false });
        all.len() - 1
    }

    pub(super) fn note(&self, place: usize, note: impl FnOnce(&mut Exchange)) {
        note(&mut self.0.lock().unwrap()[place]);
    }

    pub(super) fn all(&self) -> Vec<Exchange> {
        self.0.lock().unwrap().clone()
    }
}

/// Whether some bytes stand in others.
pub(crate) fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}
