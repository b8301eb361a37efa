//! Stored conversations: lists of items that each request reads and extends with its answer.
//!
//! Each belongs to one key, and no other key ever sees it, not even a later one of the same name. A request *claims* its conversation
//! before it reads it, and releases the claim with its answer, so that no two answers of one conversation overlap. A claim expires if
//! the request that made it is gone.

mod claim;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod memory;
mod record;
mod service;
mod store;

pub use claim::ConversationClaim;
pub use memory::MemoryConversations;
pub use record::{
    ConversationAppend, ConversationLimits, ItemPage, PositionedItem, StoredConversation, StoredItem,
};
pub use service::ConversationService;
pub use store::{
    ClaimResult, ConversationFuture, ConversationStore, ConversationWriteResult, ConversationsError,
};
