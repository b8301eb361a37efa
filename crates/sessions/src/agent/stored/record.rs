//! The stored form of one response, and of a chain of them.

use stint_types::tenant::KeyId;
use stint_types::units::{AccountId, EpisodeId, RequestId, Timestamp};

/// One response as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResponse {
    /// The request that made it.
    pub id: RequestId,
    /// Whose it is.
    pub account: AccountId,
    /// The key whose it is; none where an earlier version stored it.
    pub key: Option<KeyId>,
    /// When it ended.
    pub at: Timestamp,
    /// The one that it continued.
    pub previous: Option<RequestId>,
    /// The episode that it belongs to, where it has one.
    pub episode: Option<EpisodeId>,
    /// What this request put in, a JSON list of items; what came before is in those that it continued.
    pub input: Box<str>,
    /// What came out, a JSON list of items, the hidden ones among them.
    pub output: Box<str>,
    /// The response as it was sent, a JSON object, without its output if that is the same.
    pub body: Box<str>,
}

impl StoredResponse {
    /// The bytes that it takes.
    pub fn size(&self) -> usize {
        self.input.len() + self.output.len() + self.body.len()
    }
}

/// A response and those that it continued, the last first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseChain {
    /// At least one, the last first.
    pub responses: Vec<StoredResponse>,
}

impl ResponseChain {
    /// The first response of the chain, if all of it is there.
    pub fn first(&self) -> Option<&StoredResponse> {
        self.responses.last().filter(|first| first.previous.is_none())
    }

    /// The last response of the chain.
    pub fn last(&self) -> Option<&StoredResponse> {
        self.responses.first()
    }

    /// The bytes that all of it takes.
    pub fn size(&self) -> usize {
        self.responses.iter().map(StoredResponse::size).sum()
    }
}
