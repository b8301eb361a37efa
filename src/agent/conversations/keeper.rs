//! The handle: claims that live as long as their requests, and answers that are kept though nobody waits.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::agent::stored::Settings;
use crate::tasks::Tasks;
use crate::units::{AccountId, ConversationId, RequestId, Timestamp};

use super::{
    Bounds, Change, Claim, Claimed, Conversations, ConversationsError, Lengthening, Page, Placed,
    StoredConversation, StoredItem,
};

/// How long a claim holds without being prolonged, so long does a conversation wait for a gateway that died. The clocks of
/// replicas may differ by two thirds of it.
const CLAIM: Duration = Duration::from_secs(30);
const PROLONG: Duration = Duration::from_secs(10);
/// How often an answer is tried to be kept, and how long the first retry waits; each later one waits twice as long.
const TRIES_MAX: u32 = 4;
const RETRY_MIN: Duration = Duration::from_millis(50);
/// Conversations deleted at once: settlements wait for it. Where there were so many, more are deleted soon.
const PURGE_MAX: u32 = 16;
const PURGE_PAUSE: Duration = Duration::from_millis(50);

/// What becomes of a claim, and the claim.
type Told = Result<(Claimed, Option<Claim>), ConversationsError>;

/// The way to the conversations that are kept. Clones share it.
#[derive(Clone)]
pub struct ConversationKeeper {
    settings: Settings,
    store: Arc<dyn Conversations>,
    pub(super) tasks: Tasks,
}

impl ConversationKeeper {
    /// Begins to delete what is too old, until shutdown.
    pub fn open(tasks: &Tasks, store: Arc<dyn Conversations>, settings: Settings) -> ConversationKeeper {
        let keeper = ConversationKeeper { settings, store, tasks: tasks.clone() };
        tasks.spawn(keeper.clone().sweep());
        keeper
    }

    /// What holds of conversations: the same as of responses. One is kept for `keep` from the last time it was touched, and
    /// takes `history_max` bytes.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What is there begins now, less how long it is kept.
    fn since(&self, now: Timestamp) -> Timestamp {
        now.before(self.settings.keep)
    }

    fn bounds(&self) -> Bounds {
        let bytes = |most: usize| u64::try_from(most).unwrap_or(u64::MAX);
        Bounds { conversation: bytes(self.settings.history_max), account: bytes(self.settings.account_max) }
    }

    /// Makes a conversation with its first items.
    ///
    /// # Errors
    /// When the store does not work; so all of these.
    pub async fn create(
        &self,
        conversation: &StoredConversation,
        items: &[StoredItem],
    ) -> Result<Change, ConversationsError> {
        self.store.create(conversation, items, self.bounds()).await
    }

    /// A conversation of that account, unless it is too old.
    ///
    /// # Errors
    /// See `create`.
    pub async fn find(
        &self,
        account: &AccountId,
        id: ConversationId,
        now: Timestamp,
    ) -> Result<Option<StoredConversation>, ConversationsError> {
        self.store.find(account, id, self.since(now)).await
    }

    /// Puts other metadata in the place of what is there.
    ///
    /// # Errors
    /// See `create`.
    pub async fn describe(
        &self,
        account: &AccountId,
        id: ConversationId,
        metadata: &str,
        now: Timestamp,
    ) -> Result<Option<StoredConversation>, ConversationsError> {
        self.store.describe(account, id, metadata, self.since(now), now).await
    }

    /// Deletes a conversation of that account with its items; false where there is none.
    ///
    /// # Errors
    /// See `create`.
    pub async fn delete(&self, account: &AccountId, id: ConversationId) -> Result<bool, ConversationsError> {
        self.store.delete(account, id).await
    }

    /// Items of a conversation.
    ///
    /// # Errors
    /// See `create`.
    pub async fn items(
        &self,
        account: &AccountId,
        id: ConversationId,
        page: Page,
        now: Timestamp,
    ) -> Result<Vec<Placed>, ConversationsError> {
        self.store.items(account, id, page, self.since(now)).await
    }

    /// One item of a conversation.
    ///
    /// # Errors
    /// See `create`.
    pub async fn item(
        &self,
        account: &AccountId,
        id: ConversationId,
        item: &str,
        now: Timestamp,
    ) -> Result<Option<Placed>, ConversationsError> {
        self.store.item(account, id, item, self.since(now)).await
    }

    /// Takes an item out of a conversation.
    ///
    /// # Errors
    /// See `create`.
    pub async fn remove(
        &self,
        account: &AccountId,
        id: ConversationId,
        item: &str,
        now: Timestamp,
    ) -> Result<Change, ConversationsError> {
        self.store.remove(account, id, item, self.since(now), now).await
    }

    /// Puts items at the end that no request has a claim for.
    ///
    /// # Errors
    /// See `create`.
    pub async fn lengthen(&self, lengthening: &Lengthening) -> Result<Change, ConversationsError> {
        self.store.lengthen(lengthening, self.since(lengthening.at), self.bounds()).await
    }

    /// Claims a conversation for a request, as long as what is returned lives.
    ///
    /// # Errors
    /// See `create`.
    pub async fn claim(
        &self,
        account: &AccountId,
        id: ConversationId,
        now: Timestamp,
    ) -> Result<(Claimed, Option<Claim>), ConversationsError> {
        let (told, answer) = oneshot::channel();
        self.tasks.spawn(self.clone().hold(account.clone(), id, now, told));
        answer.await.unwrap_or_else(|_| Err(ConversationsError::new("a claim was not made")))
    }

    /// Claims a conversation, prolongs the claim until it is let go of, and gives it back unless it is over. All in one place,
    /// so that nothing stays claimed where whoever asks leaves in the middle.
    async fn hold(self, account: AccountId, id: ConversationId, now: Timestamp, told: oneshot::Sender<Told>) {
        let (claimant, over, held) = (RequestId::new(), Arc::default(), CancellationToken::new());
        let claimed = self.store.claim(&account, id, claimant, self.since(now), now, now + CLAIM).await;
        match claimed {
            Ok(Claimed::Claimed(conversation)) => {
                let claim = Claim {
                    keeper: self.clone(),
                    account: account.clone(),
                    id,
                    claimant,
                    over: Arc::clone(&over),
                    _held: held.clone().drop_guard(),
                };
                // Where nobody waits any more, it is let go of here.
                drop(told.send(Ok((Claimed::Claimed(conversation), Some(claim)))));
                self.prolong(&account, id, claimant, &held).await;
            }
            Ok(refused) => return drop(told.send(Ok((refused, None)))),
            // What did not work may have been done all the same.
            Err(error) => drop(told.send(Err(error))),
        }
        if !over.load(Ordering::Acquire) {
            self.release(&account, id, claimant).await;
        }
    }

    /// Until it is let go of, or lost.
    async fn prolong(
        &self,
        account: &AccountId,
        id: ConversationId,
        claimant: RequestId,
        held: &CancellationToken,
    ) {
        while timeout(PROLONG, held.cancelled()).await.is_err() {
            match self.store.prolong(account, id, claimant, Timestamp::now() + CLAIM).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => report(&error),
            }
        }
    }

    pub(super) async fn release(&self, account: &AccountId, id: ConversationId, claimant: RequestId) {
        if let Err(error) = self.store.release(account, id, claimant).await {
            report(&error);
        }
    }

    /// Lengthens a conversation, and tries again while somebody waits for it.
    pub(super) async fn insist(
        &self,
        lengthening: &Lengthening,
        is_given_up: impl Fn() -> bool,
    ) -> Option<Change> {
        let mut wait = RETRY_MIN;
        for tried in 0..TRIES_MAX {
            match self.lengthen(lengthening).await {
                // What had failed may have been done all the same.
                Ok(Change::Busy) if tried > 0 && self.has(lengthening).await => return Some(Change::Done),
                Ok(change) => return Some(change),
                Err(error) => report(&error),
            }
            sleep(wait).await;
            wait *= 2;
            if is_given_up() {
                return None;
            }
        }
        None
    }

    async fn has(&self, lengthening: &Lengthening) -> bool {
        let Lengthening { account, id, items, at, .. } = lengthening;
        let Some(first) = items.first() else { return true };
        matches!(self.item(account, *id, &first.id, *at).await, Ok(Some(_)))
    }

    async fn sweep(self) {
        let stopping = self.tasks.stopping();
        tokio::pin!(stopping);
        let mut pause = self.settings.sweep;
        loop {
            tokio::select! {
                () = &mut stopping => return,
                () = sleep(pause) => {}
            }
            pause = match self.store.purge(self.since(Timestamp::now()), PURGE_MAX).await {
                Ok(purged) if purged >= u64::from(PURGE_MAX) => PURGE_PAUSE,
                Ok(_) => self.settings.sweep,
                Err(error) => {
                    report(&error);
                    self.settings.sweep
                }
            };
        }
    }
}

impl fmt::Debug for ConversationKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConversationKeeper").field("settings", &self.settings).finish_non_exhaustive()
    }
}

fn report(error: &ConversationsError) {
    let source = std::error::Error::source(error).map(ToString::to_string);
    tracing::error!(%error, source, "the store of conversations failed");
}
