//! A request's claim on a conversation.

use std::fmt;

use tokio_util::sync::DropGuard;

use crate::units::{AccountId, ConversationId, EpisodeId, RequestId, Timestamp};

use super::{Change, ConversationKeeper, Lengthening, StoredItem};

/// A request's claim on a conversation. It is prolonged by itself, and given back when it is let go of.
#[must_use = "a claim that nobody has is given back at once"]
pub struct Claim {
    pub(super) keeper: ConversationKeeper,
    pub(super) account: AccountId,
    pub(super) id: ConversationId,
    pub(super) claimant: RequestId,
    pub(super) _held: DropGuard,
}

impl Claim {
    /// The conversation.
    pub fn conversation(&self) -> ConversationId {
        self.id
    }

    /// Puts what was said at the end of the conversation, which ends the claim. Waits a bounded time; none where the store
    /// did not take it, or not in time.
    pub async fn lengthen(&self, items: Vec<StoredItem>, episode: Option<EpisodeId>) -> Option<Change> {
        let lengthening = Lengthening {
            account: self.account.clone(),
            id: self.id,
            claimant: Some(self.claimant),
            items,
            episode,
            at: Timestamp::now(),
        };
        self.keeper.lengthen_to_the_end(lengthening).await
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("id", &self.id)
            .field("claimant", &self.claimant)
            .finish_non_exhaustive()
    }
}
