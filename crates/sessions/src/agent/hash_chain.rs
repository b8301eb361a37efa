//! Hashes a conversation up to each of the model's replies, so that its episode can be found again.

use std::fmt;

use sha2::{Digest, Sha256};

use stint_types::chat::{ContentPart, Message, Role};

use super::arguments::{self, canonical};

/// The hash of a conversation up to some point. It does not reveal the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HistoryHash(pub [u8; 16]);

/// A conversation, hashed as far as it goes. What differs from client to client does not count: thoughts, the operator's
/// instructions (some write the time into them), white space at the ends of texts and in arguments, empty turns, and
/// whether one turn is sent as several messages.
#[derive(Debug, Clone)]
pub struct HashChain {
    /// After the last message.
    end: HistoryHash,
    /// The open turn of the last speaker, which the next message may continue.
    open: Option<HashedTurn>,
    /// After each of the model's replies that something followed, the latest first.
    pub replies: Vec<HistoryHash>,
}

/// The most replies of one conversation that are looked for, the latest of them.
const REPLIES_MAX: usize = 8;

/// The text of one speaker up to the next speaker's.
#[derive(Debug, Clone)]
struct HashedTurn {
    role: Role,
    hasher: Sha256,
    /// Text that is not in the hash yet, since the next message may continue it.
    text: String,
    is_empty: bool,
}

impl HashChain {
    /// Reads a conversation.
    pub fn read(messages: &[Message]) -> HashChain {
        let mut chain = HashChain { end: HistoryHash([0; 16]), open: None, replies: Vec::new() };
        for message in messages.iter().filter(|message| message.role != Role::System) {
            chain.push(message);
        }
        chain.replies.reverse();
        chain.replies.truncate(REPLIES_MAX);
        chain
    }

    /// The link after a reply to it, by which the conversation is found when it goes on.
    #[must_use]
    pub fn hash_after(mut self, reply: &Message) -> HistoryHash {
        self.push(reply);
        self.close();
        self.end
    }

    fn push(&mut self, message: &Message) {
        // A tool's results are apart from one another by what they answer.
        if self.open.as_ref().is_some_and(|turn| turn.role != message.role) {
            self.close();
        }
        let role = message.role;
        let turn = self.open.get_or_insert_with(|| HashedTurn::new(role));
        turn.push(message);
    }

    fn close(&mut self) {
        let Some(mut turn) = self.open.take() else { return };
        turn.end_text();
        if turn.is_empty {
            return;
        }
        let turn_hash = turn.hasher.finalize();
        let mut hasher = Sha256::new();
        hasher.update(self.end.0);
        hasher.update(turn.role.as_str());
        hasher.update(turn_hash);
        self.end = HistoryHash::of(hasher);
        if turn.role == Role::Assistant {
            self.replies.push(self.end);
        }
    }
}

impl HashedTurn {
    fn new(role: Role) -> HashedTurn {
        HashedTurn { role, hasher: Sha256::new(), text: String::new(), is_empty: true }
    }

    fn push(&mut self, message: &Message) {
        if let Some(id) = &message.tool_call_id {
            self.add("answers", id);
        }
        for part in &message.content {
            match part {
                ContentPart::Text(text) => self.text.push_str(text),
                ContentPart::Other(value) => {
                    self.end_text();
                    self.is_empty = false;
                    arguments::hash(value, &mut self.hasher);
                }
                ContentPart::StableEnd | ContentPart::CacheBreakpoint(_) => {}
            }
        }
        for call in &message.tool_calls {
            self.add("call", &call.id);
            self.add("name", &call.name);
            self.add("arguments", &canonical(&call.arguments));
        }
    }

    /// With its length, so that nothing can be taken for something else.
    fn add(&mut self, what: &str, text: &str) {
        self.end_text();
        self.hash(what, text);
    }

    fn end_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.trim().is_empty() {
            self.hash("text", text.trim());
        }
    }

    fn hash(&mut self, what: &str, text: &str) {
        self.is_empty = false;
        self.hasher.update(what);
        self.hasher.update(u64::try_from(text.len()).unwrap_or(u64::MAX).to_be_bytes());
        self.hasher.update(text);
    }
}

impl HistoryHash {
    fn of(hasher: Sha256) -> HistoryHash {
        let mut link = [0; 16];
        link.copy_from_slice(&hasher.finalize()[..16]);
        HistoryHash(link)
    }
}

impl fmt::Display for HistoryHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
