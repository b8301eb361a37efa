//! Conversations that callers come back to: items one after another, read by each request and lengthened by its answer.
//!
//! Each belongs to one account and nobody else ever sees it. A request *claims* its conversation before it reads it, and
//! gives the claim back with its answer, so that no two answers of one conversation cross. A claim runs out by itself
//! if the request that made it is gone.

mod claim;
#[cfg(test)]
pub(crate) mod conformance;
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
