//! A request's claim on a conversation. A task of its own makes, renews and releases it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use stint_types::tenant::Tenant;
use stint_types::units::{AccountId, ConversationId, EpisodeId, RequestId, Timestamp};

use super::service::{ConversationService, report};
use super::{ClaimResult, ConversationAppend, ConversationWriteResult, ConversationsError, StoredItem};

/// How long a claim holds without being prolonged, so long does a conversation wait for a gateway that died.
const CLAIM_TTL: Duration = Duration::from_secs(30);
const RENEW_EVERY: Duration = Duration::from_secs(10);
/// What becomes of a claim, and the claim.
type ClaimReply = Result<(ClaimResult, Option<ConversationClaim>), ConversationsError>;

/// The time by which a claim counts: that of the request that made it, which replicas share, and what has passed since. A machine's own
/// clock may be another.
#[derive(Debug, Clone, Copy)]
struct ClaimClock {
    made_at: Timestamp,
    since: Instant,
}

impl ClaimClock {
    fn now(self) -> Timestamp {
        self.made_at + self.since.elapsed()
    }
}

/// A request's claim on a conversation. It is renewed automatically, and given back when it is dropped.
#[must_use = "a claim that nobody has is given back at once"]
pub struct ConversationClaim {
    service: ConversationService,
    account: AccountId,
    id: ConversationId,
    claimant: RequestId,
    clock: ClaimClock,
    /// True once there is nothing to give back.
    is_over: Arc<AtomicBool>,
    _held: DropGuard,
}

impl ConversationClaim {
    /// The conversation.
    pub fn conversation(&self) -> ConversationId {
        self.id
    }

    /// Appends the answer's items to the conversation, which ends the claim. Waits a bounded time; none where the store
    /// did not take it, or not in time. What is under way goes on whether or not somebody waits, and has the claim as long.
    pub async fn append(
        self: &Arc<Self>,
        items: Vec<StoredItem>,
        episode: Option<EpisodeId>,
    ) -> Option<ConversationWriteResult> {
        let append = ConversationAppend {
            account: self.account.clone(),
            id: self.id,
            claimant: Some(self.claimant),
            items,
            episode,
            at: self.clock.now(),
        };
        let (reply, answer) = oneshot::channel();
        let (claim, patience) = (self.clone(), self.service.settings().patience);
        self.service.tasks.spawn(async move {
            let change = claim.service.append_with_retry(&append, || reply.is_closed()).await;
            claim.is_over.store(change == Some(ConversationWriteResult::Done), Ordering::Release);
            drop(claim);
            // Nobody may be waiting any more.
            let _ = reply.send(change);
        });
        let change = timeout(patience, answer).await.ok().and_then(Result::ok).flatten();
        if change.is_none() {
            tracing::error!(conversation = %self.id, "an answer could not be appended to its conversation");
        }
        change
    }

    /// Gives it back now, so that a caller that sees the end of its answer may use the conversation again at once.
    pub async fn release(self) {
        if !self.is_over.swap(true, Ordering::AcqRel) {
            self.service.release(&self.account, self.id, self.claimant).await;
        }
    }
}

impl ConversationService {
    /// Claims a conversation of that key for a request, as long as what is returned lives.
    ///
    /// # Errors
    /// See `create`.
    pub async fn claim(
        &self,
        tenant: &Tenant,
        id: ConversationId,
        now: Timestamp,
    ) -> Result<(ClaimResult, Option<ConversationClaim>), ConversationsError> {
        if self.find(tenant, id, now).await?.is_none() {
            return Ok((ClaimResult::Unknown, None));
        }
        let (reply, answer) = oneshot::channel();
        self.tasks.spawn(self.clone().hold_claim(tenant.account.clone(), id, now, reply));
        answer.await.unwrap_or_else(|_| Err(ConversationsError::new("a claim was not made")))
    }

    /// Claims a conversation, prolongs the claim until it is released, and gives it back unless it is over. All of this
    /// is in one place, so that nothing stays claimed if the caller leaves in the middle.
    async fn hold_claim(
        self,
        account: AccountId,
        id: ConversationId,
        now: Timestamp,
        reply: oneshot::Sender<ClaimReply>,
    ) {
        let (claimant, over, held) = (RequestId::new(), Arc::default(), CancellationToken::new());
        let clock = ClaimClock { made_at: now, since: Instant::now() };
        let claimed = self.store.claim(&account, id, claimant, self.since(now), now, now + CLAIM_TTL).await;
        match claimed {
            Ok(ClaimResult::Granted(conversation)) => {
                let claim = ConversationClaim {
                    service: self.clone(),
                    account: account.clone(),
                    id,
                    claimant,
                    clock,
                    is_over: Arc::clone(&over),
                    _held: held.clone().drop_guard(),
                };
                // If nobody waits any more, it is dropped here.
                drop(reply.send(Ok((ClaimResult::Granted(conversation), Some(claim)))));
                self.renew_claim(&account, id, (claimant, clock), &held).await;
            }
            Ok(refused) => return drop(reply.send(Ok((refused, None)))),
            // What did not work may have been done all the same.
            Err(error) => drop(reply.send(Err(error))),
        }
        if !over.load(Ordering::Acquire) {
            self.release(&account, id, claimant).await;
        }
    }

    /// Until it is dropped, or lost.
    async fn renew_claim(
        &self,
        account: &AccountId,
        id: ConversationId,
        (claimant, clock): (RequestId, ClaimClock),
        held: &CancellationToken,
    ) {
        while timeout(RENEW_EVERY, held.cancelled()).await.is_err() {
            match self.store.renew(account, id, claimant, clock.now() + CLAIM_TTL).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => report(&error),
            }
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

#[cfg(test)]
mod tests {
    use stint_types::tasks::Tasks;
    use stint_types::tenant::hash_key;

    use super::super::{MemoryConversations, StoredConversation};
    use super::*;
    use crate::agent::stored::Settings;

    /// Claims count by the database's clock, which may be an hour ahead of this machine's.
    #[tokio::test(start_paused = true)]
    async fn a_claim_is_renewed_by_the_clock_by_which_it_was_made() {
        let (tasks, store) = (Tasks::default(), Arc::new(MemoryConversations::default()));
        let service = ConversationService::open(&tasks, store, Settings::default());
        let tenant = Tenant::new(AccountId::new("a"), hash_key("sk-a"));
        let made_at = Timestamp::now() + Duration::from_secs(3_600);
        let conversation = StoredConversation {
            id: ConversationId::new(),
            account: tenant.account.clone(),
            key: Some(tenant.id),
            at: made_at,
            metadata: "{}".into(),
            episode: None,
        };
        service.create(&conversation, &[]).await.unwrap();
        let (granted, claim) = service.claim(&tenant, conversation.id, made_at).await.unwrap();
        assert!(matches!(granted, ClaimResult::Granted(_)) && claim.is_some());
        tokio::time::sleep(Duration::from_secs(45)).await;
        let later = made_at + Duration::from_secs(45);
        let (busy, _) = service.claim(&tenant, conversation.id, later).await.unwrap();
        assert!(matches!(busy, ClaimResult::Busy), "{busy:?}");
    }
}
