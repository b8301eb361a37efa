//! What is stored of an idempotency key: its request, and how that ended.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use stint_types::tenant::KeyId;
use stint_types::units::{AccountId, RequestId, Timestamp};

/// An idempotency key of an account. Two accounts may use the same text and never meet; nor do a revoked API key and a later one of
/// the same name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey {
    /// Whose.
    pub account: AccountId,
    /// The API key that it came with.
    pub owner: KeyId,
    /// The text that the caller chose.
    pub key: Arc<str>,
}

/// The SHA-256 of all that says what a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 32]);

/// What became of the request that used a key first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyRecord {
    /// What it asked for.
    pub fingerprint: Fingerprint,
    /// Its id, under which the ledger has what it cost.
    pub request: RequestId,
    /// When it began.
    pub begun: Timestamp,
    /// When it is over at the latest, whether anybody says so or not.
    pub deadline: Timestamp,
    /// How it ended; nothing, while it runs.
    pub end: Option<IdempotencyOutcome>,
}

/// How a request ended whose key is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdempotencyOutcome {
    /// The caller was answered.
    Answered(StoredAnswer),
    /// The caller left, or the process died, before the answer was complete.
    Interrupted,
}

/// An answer as it went out.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    /// Its status.
    pub status: u16,
    /// Its headers, without those that say how things stand now.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: StoredBody,
}

/// The body of an answer, or why it is not kept.
#[derive(Clone, PartialEq, Eq)]
pub enum StoredBody {
    /// All of it.
    Whole(Bytes),
    /// It was streamed, and streams are not kept.
    Streamed,
    /// It was larger than what is kept.
    TooLarge,
}

impl StoredAnswer {
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Keys are the callers' own words, which the log need not have.
impl fmt::Debug for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyKey").field("account", &self.account).finish_non_exhaustive()
    }
}

/// Answers never enter the log.
impl fmt::Debug for StoredAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredAnswer").field("status", &self.status).finish_non_exhaustive()
    }
}
