//! The handle that requests use for stored conversations. Claims are in `claim`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::agent::WriteLimiter;
use crate::agent::stored::Settings;
use stint_types::tasks::Tasks;
use stint_types::tenant::Tenant;
use stint_types::units::{AccountId, ConversationId, RequestId, Timestamp};

use super::{
    ConversationAppend, ConversationLimits, ConversationStore, ConversationWriteResult, ConversationsError,
    ItemPage, PositionedItem, StoredConversation, StoredItem,
};

/// How often an answer is tried to be kept, and how long the first retry waits; each later one waits twice as long.
const TRIES_MAX: u32 = 4;
const RETRY_MIN: Duration = Duration::from_millis(50);
/// Conversations deleted at once: settlements wait for it. Where there were so many, more are deleted soon.
const PURGE_MAX: u32 = 16;
const PURGE_PAUSE: Duration = Duration::from_millis(50);

/// The way to the conversations that are kept. Clones share it.
#[derive(Clone)]
pub struct ConversationService {
    settings: Settings,
    pub(super) store: Arc<dyn ConversationStore>,
    pub(super) tasks: Tasks,
    writes: WriteLimiter,
}

impl ConversationService {
    /// Begins to delete what is too old, until shutdown.
    pub fn open(tasks: &Tasks, store: Arc<dyn ConversationStore>, settings: Settings) -> ConversationService {
        let writes = WriteLimiter::new(settings.write_rate);
        let service = ConversationService { settings, store, tasks: tasks.clone(), writes };
        tasks.spawn(service.clone().sweep());
        service
    }

    /// What holds of conversations: the same as of responses. One is kept for `keep` from the last time it was touched, and
    /// takes `history_max` bytes.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What bounds the writes that callers ask for beside their requests.
    pub fn writes(&self) -> &WriteLimiter {
        &self.writes
    }

    /// What is there begins now, less how long it is kept.
    pub(super) fn since(&self, now: Timestamp) -> Timestamp {
        now.before(self.settings.keep)
    }

    fn bounds(&self) -> ConversationLimits {
        let bytes = |most: usize| u64::try_from(most).unwrap_or(u64::MAX);
        ConversationLimits {
            conversation: bytes(self.settings.history_max),
            account: bytes(self.settings.account_max),
        }
    }

    /// Makes a conversation with its first items.
    ///
    /// # Errors
    /// When the store does not work; so all of these.
    pub async fn create(
        &self,
        conversation: &StoredConversation,
        items: &[StoredItem],
    ) -> Result<ConversationWriteResult, ConversationsError> {
        self.store.create(conversation, items, self.bounds()).await
    }

    /// A conversation of that key, unless it is too old. What is done with one starts here.
    ///
    /// # Errors
    /// See `create`.
    pub async fn find(
        &self,
        tenant: &Tenant,
        id: ConversationId,
        now: Timestamp,
    ) -> Result<Option<StoredConversation>, ConversationsError> {
        let found = self.store.find(&tenant.account, id, self.since(now)).await?;
        Ok(found.filter(|found| tenant.owns(&found.account, found.key)))
    }

    /// Puts other metadata in the place of what is there.
    ///
    /// # Errors
    /// See `create`.
    pub async fn set_metadata(
        &self,
        conversation: &StoredConversation,
        metadata: &str,
        now: Timestamp,
    ) -> Result<Option<StoredConversation>, ConversationsError> {
        let StoredConversation { account, id, .. } = conversation;
        self.store.set_metadata(account, *id, metadata, self.since(now), now).await
    }

    /// Deletes a conversation with its items; false if it is gone already.
    ///
    /// # Errors
    /// See `create`.
    pub async fn delete(&self, conversation: &StoredConversation) -> Result<bool, ConversationsError> {
        self.store.delete(&conversation.account, conversation.id).await
    }

    /// Items of a conversation.
    ///
    /// # Errors
    /// See `create`.
    pub async fn items(
        &self,
        conversation: &StoredConversation,
        page: ItemPage,
        now: Timestamp,
    ) -> Result<Vec<PositionedItem>, ConversationsError> {
        self.store.items(&conversation.account, conversation.id, page, self.since(now)).await
    }

    /// One item of a conversation.
    ///
    /// # Errors
    /// See `create`.
    pub async fn item(
        &self,
        conversation: &StoredConversation,
        item: &str,
        now: Timestamp,
    ) -> Result<Option<PositionedItem>, ConversationsError> {
        self.store.item(&conversation.account, conversation.id, item, self.since(now)).await
    }

    /// Takes an item out of a conversation.
    ///
    /// # Errors
    /// See `create`.
    pub async fn remove(
        &self,
        conversation: &StoredConversation,
        item: &str,
        now: Timestamp,
    ) -> Result<ConversationWriteResult, ConversationsError> {
        let StoredConversation { account, id, .. } = conversation;
        self.store.remove(account, *id, item, self.since(now), now).await
    }

    /// Puts items at the end that no request has a claim for.
    ///
    /// # Errors
    /// See `create`.
    pub async fn append(
        &self,
        append: &ConversationAppend,
    ) -> Result<ConversationWriteResult, ConversationsError> {
        self.store.append(append, self.since(append.at), self.bounds()).await
    }

    pub(super) async fn release(&self, account: &AccountId, id: ConversationId, claimant: RequestId) {
        if let Err(error) = self.store.release(account, id, claimant).await {
            report(&error);
        }
    }

    /// Lengthens a conversation, and tries again while somebody waits for it.
    pub(super) async fn append_with_retry(
        &self,
        append: &ConversationAppend,
        is_given_up: impl Fn() -> bool,
    ) -> Option<ConversationWriteResult> {
        let mut wait = RETRY_MIN;
        for tried in 0..TRIES_MAX {
            match self.append(append).await {
                // What had failed may have been done all the same.
                Ok(ConversationWriteResult::Busy) if tried > 0 && self.has_appended(append).await => {
                    return Some(ConversationWriteResult::Done);
                }
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

    async fn has_appended(&self, append: &ConversationAppend) -> bool {
        let ConversationAppend { account, id, items, at, .. } = append;
        let Some(first) = items.first() else { return true };
        matches!(self.store.item(account, *id, &first.id, self.since(*at)).await, Ok(Some(_)))
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

impl fmt::Debug for ConversationService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConversationService").field("settings", &self.settings).finish_non_exhaustive()
    }
}

pub(super) fn report(error: &ConversationsError) {
    let source = std::error::Error::source(error).map(ToString::to_string);
    tracing::error!(%error, source, "the store of conversations failed");
}
