//! `ConversationStore`: the trait of a durable store of conversations.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use stint_types::tenant::KeyId;
use stint_types::units::{AccountId, ConversationId, RequestId, Timestamp};

use super::{
    ConversationAppend, ConversationLimits, ItemPage, PositionedItem, StoredConversation, StoredItem,
};

/// What a store answers.
pub type ConversationFuture<'a, T> = BoxFuture<'a, Result<T, ConversationsError>>;

/// Durable conversations. `conformance` says in tests what one must do. A conversation that was last touched before `since`
/// is not there any more; making it, claiming it, lengthening it, removing items, and describing it touch it.
pub trait ConversationStore: Send + Sync {
    /// Makes a conversation. Beyond the account's bound others of it go, those first that were not touched for longest.
    /// If it is there already it stays, and the result is `Done`. The result is never `Unknown`.
    fn create<'a>(
        &'a self,
        conversation: &'a StoredConversation,
        items: &'a [StoredItem],
        bounds: ConversationLimits,
    ) -> ConversationFuture<'a, ConversationWriteResult>;

    /// A conversation of that account.
    fn find<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        since: Timestamp,
    ) -> ConversationFuture<'a, Option<StoredConversation>>;

    /// Replaces the metadata; returns the conversation with the new one.
    fn set_metadata<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        metadata: &'a str,
        since: Timestamp,
        now: Timestamp,
    ) -> ConversationFuture<'a, Option<StoredConversation>>;

    /// Deletes a conversation with all of its items, claimed or not; false if there is none.
    fn delete<'a>(&'a self, account: &'a AccountId, id: ConversationId) -> ConversationFuture<'a, bool>;

    /// Deletes conversations of that account with their items, some at a time: those of that key, or all where none is named. Says how
    /// many; 0 once none is left.
    fn delete_of<'a>(&'a self, account: &'a AccountId, key: Option<KeyId>) -> ConversationFuture<'a, u64>;

    /// The items of a page. An unknown conversation has none.
    fn items<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        page: ItemPage,
        since: Timestamp,
    ) -> ConversationFuture<'a, Vec<PositionedItem>>;

    /// One item.
    fn item<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        item: &'a str,
        since: Timestamp,
    ) -> ConversationFuture<'a, Option<PositionedItem>>;

    /// Takes an item out. The result is `Unknown` where there is no such item or conversation.
    fn remove<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        item: &'a str,
        since: Timestamp,
        now: Timestamp,
    ) -> ConversationFuture<'a, ConversationWriteResult>;

    /// Claims a conversation for a request until then, unless another's claim still runs. Its own it may claim again.
    fn claim<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        claimant: RequestId,
        since: Timestamp,
        now: Timestamp,
        until: Timestamp,
    ) -> ConversationFuture<'a, ClaimResult>;

    /// Prolongs a claim until then; false if the request has none any more, because another came after it had run out,
    /// or because it is over.
    fn renew<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        claimant: RequestId,
        until: Timestamp,
    ) -> ConversationFuture<'a, bool>;

    /// Gives a claim back. Another's stays.
    fn release<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        claimant: RequestId,
    ) -> ConversationFuture<'a, ()>;

    /// Puts items at the end, all or none, and ends the claim of their request. The result is `Busy` if that request's claim
    /// is gone, even if nobody else has one, and if items come without a claim while somebody has one. Beyond the account's
    /// bound, other conversations of it go, as with `create`.
    fn append<'a>(
        &'a self,
        append: &'a ConversationAppend,
        since: Timestamp,
        bounds: ConversationLimits,
    ) -> ConversationFuture<'a, ConversationWriteResult>;

    /// Deletes conversations that were last touched before, the oldest first, so many at most; returns how many.
    fn purge(&self, before: Timestamp, most: u32) -> ConversationFuture<'_, u64>;
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversationWriteResult {
    /// It is made.
    Done,
    /// Another request has a claim on the conversation.
    Busy,
    /// The conversation would be longer than one may be.
    Full,
    /// There is no such thing.
    Unknown,
}

impl ConversationWriteResult {
    /// The word for it in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            ConversationWriteResult::Done => "done",
            ConversationWriteResult::Busy => "busy",
            ConversationWriteResult::Full => "full",
            ConversationWriteResult::Unknown => "unknown",
        }
    }
}

/// What became of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimResult {
    /// The request has it; so the conversation stands.
    Granted(StoredConversation),
    /// Another request has it.
    Busy,
    /// There is no such conversation.
    Unknown,
}

/// A store that did not do its work. Whether the change is in it is unknown.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ConversationsError {
    message: String,
    #[source]
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl ConversationsError {
    /// A failure without a deeper cause.
    pub fn new(message: impl Into<String>) -> ConversationsError {
        ConversationsError { message: message.into(), source: None }
    }

    /// A failure with its cause.
    pub fn caused(
        message: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> ConversationsError {
        ConversationsError { message: message.into(), source: Some(Arc::new(source)) }
    }
}
