//! Conversations that callers come back to: items one after another, read by each request and lengthened by its answer.
//!
//! Each belongs to one account and nobody else ever sees it. A request *claims* its conversation before it reads it, and
//! gives the claim back with its answer, so that no two answers of one conversation cross. A claim runs out by itself
//! where whoever made it is gone.

mod claim;
#[cfg(test)]
pub(crate) mod conformance;
mod keeper;
mod memory;
mod record;
mod store;

pub use claim::Claim;
pub use keeper::ConversationKeeper;
pub use memory::MemoryConversations;
pub use record::{Bounds, Lengthening, Page, Placed, StoredConversation, StoredItem};
pub use store::{Answer, Change, Claimed, Conversations, ConversationsError};
