//! Conversations that callers come back to, in statements that both databases take.

mod claims;
mod edits;
mod items;
mod records;
mod store;

pub(super) use claims::{claim_statements, may_grow};
pub(super) use edits::edit_statements;
pub(super) use items::item_statements;
pub(super) use records::record_statements;
pub(super) use store::conversation_store;

use crate::agent::conversations::{ConversationAppend, ConversationLimits, StoredConversation, StoredItem};
use crate::units::{AccountId, ConversationId, Timestamp};

/// A change of several rows, made whole or not at all.
pub(super) enum ConversationEdit<'a> {
    Create(&'a StoredConversation, &'a [StoredItem], ConversationLimits),
    Lengthen(&'a ConversationAppend, Timestamp, ConversationLimits),
    Remove(ItemRemoval<'a>),
}

/// An item that is to be taken out of its conversation.
pub(super) struct ItemRemoval<'a> {
    pub account: &'a AccountId,
    pub id: ConversationId,
    pub item: &'a str,
    pub since: Timestamp,
    pub now: Timestamp,
}

/// A number as databases have it. What is greater is as good as the greatest: nothing reaches either.
pub(super) fn whole(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}
