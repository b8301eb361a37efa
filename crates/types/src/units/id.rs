//! Identifiers.

use std::fmt;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// The id of one request, `req_` and a time-ordered UUID (RFC 9562, version 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(Uuid);

impl RequestId {
    /// A new id, later than all before it.
    #[expect(clippy::new_without_default, reason = "two new ids differ, a default would not")]
    pub fn new() -> RequestId {
        RequestId(Uuid::now_v7())
    }

    /// The id as 16 bytes, as the journal stores it.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// The id from its 16 bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> RequestId {
        RequestId(Uuid::from_bytes(bytes))
    }

    /// A seed that differs for every request, for a caller who gave none.
    pub fn seed(&self) -> u64 {
        self.0.as_u64_pair().1
    }
}

impl FromStr for RequestId {
    type Err = uuid::Error;
    fn from_str(text: &str) -> Result<RequestId, uuid::Error> {
        Uuid::parse_str(text.strip_prefix("req_").unwrap_or(text)).map(RequestId)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Several times for each request: not through the machinery that formats parts.
        let mut text = *b"req_0123456789abcdef0123456789abcdef";
        self.0.simple().encode_lower(&mut text[4..]);
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RequestId, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// The id of a conversation, `conv_` and a time-ordered UUID (RFC 9562, version 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConversationId(Uuid);

impl ConversationId {
    /// What it begins with.
    pub const PREFIX: &'static str = "conv_";

    /// A new id, later than all before it.
    #[expect(clippy::new_without_default, reason = "two new ids differ, a default would not")]
    pub fn new() -> ConversationId {
        ConversationId(Uuid::now_v7())
    }

    /// The id as 16 bytes, as databases store it.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// The id from its 16 bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> ConversationId {
        ConversationId(Uuid::from_bytes(bytes))
    }
}

impl FromStr for ConversationId {
    type Err = uuid::Error;
    fn from_str(text: &str) -> Result<ConversationId, uuid::Error> {
        // Without its prefix it is not an id of a conversation, and not a UUID either.
        let hex = text.strip_prefix(ConversationId::PREFIX).unwrap_or_default();
        Uuid::parse_str(hex).map(ConversationId)
    }
}

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", ConversationId::PREFIX, self.0.simple())
    }
}
