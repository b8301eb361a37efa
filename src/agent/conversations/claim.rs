//! A request's claim on a conversation.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::DropGuard;

use crate::units::{AccountId, ConversationId, EpisodeId, RequestId, Timestamp};

use super::{ConversationAppend, ConversationService, ConversationWriteResult, StoredItem};

/// A request's claim on a conversation. It is prolonged by itself, and given back when it is let go of.
#[must_use = "a claim that nobody has is given back at once"]
pub struct ConversationClaim {
    pub(super) keeper: ConversationService,
    pub(super) account: AccountId,
    pub(super) id: ConversationId,
    pub(super) claimant: RequestId,
    /// True once there is nothing to give back.
    pub(super) is_over: Arc<AtomicBool>,
    pub(super) _held: DropGuard,
}

impl ConversationClaim {
    /// The conversation.
    pub fn conversation(&self) -> ConversationId {
        self.id
    }

    /// Puts what was said at the end of the conversation, which ends the claim. Waits a bounded time; none where the store
    /// did not take it, or not in time. What is under way goes on whether or not somebody waits, and has the claim as long.
    pub async fn append(
        self: &Arc<Self>,
        items: Vec<StoredItem>,
        episode: Option<EpisodeId>,
    ) -> Option<ConversationWriteResult> {
        let lengthening = ConversationAppend {
            account: self.account.clone(),
            id: self.id,
            claimant: Some(self.claimant),
            items,
            episode,
            at: Timestamp::now(),
        };
        let (told, answer) = oneshot::channel();
        let (claim, patience) = (self.clone(), self.keeper.settings().patience);
        self.keeper.tasks.spawn(async move {
            let change = claim.keeper.append_with_retry(&lengthening, || told.is_closed()).await;
            claim.is_over.store(change == Some(ConversationWriteResult::Done), Ordering::Release);
            drop(claim);
            // Nobody may be waiting any more.
            let _ = told.send(change);
        });
        let change = timeout(patience, answer).await.ok().and_then(Result::ok).flatten();
        if change.is_none() {
            tracing::error!(conversation = %self.id, "what was said could not be added to its conversation");
        }
        change
    }

    /// Gives it back now, so that whoever is told that it is over may come back at once.
    pub async fn release(self) {
        if !self.is_over.swap(true, Ordering::AcqRel) {
            self.keeper.release(&self.account, self.id, self.claimant).await;
        }
    }
}

impl fmt::Debug for ConversationClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConversationClaim")
            .field("id", &self.id)
            .field("claimant", &self.claimant)
            .finish_non_exhaustive()
    }
}
