//! The stored form of a conversation and its items.

use stint_types::tenant::KeyId;
use stint_types::units::{AccountId, ConversationId, EpisodeId, RequestId, Timestamp};

/// What counts for an item beside its texts, so that many small ones are bounded too.
const ITEM_OVERHEAD: usize = 128;
/// The same for a conversation. It is more than it takes, so that few have to go at once where one of them grows.
const CONVERSATION_OVERHEAD: usize = 4096;

/// A conversation as it is kept, without its items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredConversation {
    /// Its id.
    pub id: ConversationId,
    /// Whose it is.
    pub account: AccountId,
    /// The key whose it is; none where an earlier version stored it.
    pub key: Option<KeyId>,
    /// When it was made.
    pub at: Timestamp,
    /// What its caller noted of it, a JSON object.
    pub metadata: Box<str>,
    /// The episode that its last answer belonged to, where it had one.
    pub episode: Option<EpisodeId>,
}

impl StoredConversation {
    /// The bytes that it takes without its items.
    pub fn size(&self) -> usize {
        CONVERSATION_OVERHEAD + self.metadata.len()
    }
}

/// An item of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredItem {
    /// Its id, which no other item of the conversation has.
    pub id: Box<str>,
    /// The item, a JSON object, its id in it.
    pub value: Box<str>,
}

impl StoredItem {
    /// The bytes that it takes.
    pub fn size(&self) -> usize {
        ITEM_OVERHEAD + self.id.len() + self.value.len()
    }
}

/// An item and where it stands: later ones have greater numbers, with gaps where items were removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PositionedItem {
    /// Its place.
    pub position: u64,
    /// What stands there.
    pub item: StoredItem,
}

/// Which items are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemPage {
    /// Those behind this place, in the order in which they are wanted.
    pub after: Option<u64>,
    /// The latest first.
    pub newest_first: bool,
    /// So many at most.
    pub limit: u32,
}

impl ItemPage {
    /// All of them, from the first on.
    pub const ALL: ItemPage = ItemPage { after: None, newest_first: false, limit: u32::MAX };
}

/// Items that go to the end of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationAppend {
    /// Whose conversation it is.
    pub account: AccountId,
    /// Which one.
    pub id: ConversationId,
    /// The request whose claim on it this ends; none where somebody merely puts items in.
    pub claimant: Option<RequestId>,
    /// The items, in their order.
    pub items: Vec<StoredItem>,
    /// The episode that the conversation belongs to from now on; none leaves it as it is.
    pub episode: Option<EpisodeId>,
    /// Now.
    pub at: Timestamp,
}

impl ConversationAppend {
    /// The bytes by which the conversation grows.
    pub fn size(&self) -> usize {
        self.items.iter().map(StoredItem::size).sum()
    }
}

/// The most that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConversationLimits {
    /// Of one conversation, in bytes: it takes no more.
    pub conversation: u64,
    /// Of one account, in bytes: beyond it those go that were not touched for longest.
    pub account: u64,
}
