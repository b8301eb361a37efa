//! The store of conversations that callers come back to: the tables `conversations` and `conversation_items` of either
//! database.

mod claims;
mod edits;
mod items;
mod records;
mod store;

pub(super) use store::SqlConversationStore;
