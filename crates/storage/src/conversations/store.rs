//! The trait `ConversationStore` for a database.

use std::sync::Arc;

use futures_util::{FutureExt, TryFutureExt};

use crate::sql::{SqlDatabase, Statement};
use stint_sessions::agent::conversations::{
    ClaimResult, ConversationAppend, ConversationFuture, ConversationLimits, ConversationStore,
    ConversationWriteResult, ConversationsError, ItemPage, PositionedItem, StoredConversation, StoredItem,
};
use stint_types::tenant::KeyId;
use stint_types::units::{AccountId, ConversationId, RequestId, Timestamp};

use super::claims::NewClaim;
use super::edits::{ConversationEdit, ItemRemoval, make_edit};
use super::{claims, items, records};

/// Conversations in a database.
#[derive(Debug)]
pub(crate) struct SqlConversationStore {
    database: Arc<dyn SqlDatabase>,
}

impl SqlConversationStore {
    pub(crate) fn new(database: Arc<dyn SqlDatabase>) -> SqlConversationStore {
        SqlConversationStore { database }
    }

    async fn commit(&self, edit: ConversationEdit<'_>) -> Result<ConversationWriteResult, sqlx::Error> {
        let mut writer = self.database.writer().await?;
        let mut transaction = writer.begin().await?;
        let result = make_edit(edit, &mut *transaction).await?;
        transaction.commit().await?;
        Ok(result)
    }

    async fn execute(&self, statement: Statement) -> Result<u64, sqlx::Error> {
        self.database.writer().await?.execute(statement).await
    }

    fn answer<'a, T: 'a>(
        &'a self,
        done: impl Future<Output = Result<T, sqlx::Error>> + Send + 'a,
    ) -> ConversationFuture<'a, T> {
        done.map_err(|source| ConversationsError::caused(self.database.failure(), source)).boxed()
    }
}

impl ConversationStore for SqlConversationStore {
    fn create<'a>(
        &'a self,
        conversation: &'a StoredConversation,
        items: &'a [StoredItem],
        limits: ConversationLimits,
    ) -> ConversationFuture<'a, ConversationWriteResult> {
        self.answer(self.commit(ConversationEdit::Create(conversation, items, limits)))
    }

    fn find<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        since: Timestamp,
    ) -> ConversationFuture<'a, Option<StoredConversation>> {
        self.answer(async move {
            records::read_conversation(account, id, since, &mut *self.database.reader().await?).await
        })
    }

    fn set_metadata<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        metadata: &'a str,
        since: Timestamp,
        now: Timestamp,
    ) -> ConversationFuture<'a, Option<StoredConversation>> {
        self.answer(async move {
            let mut writer = self.database.writer().await?;
            records::set_metadata(account, id, metadata, since, now, &mut *writer).await
        })
    }

    fn delete<'a>(&'a self, account: &'a AccountId, id: ConversationId) -> ConversationFuture<'a, bool> {
        self.answer(
            self.execute(records::CONVERSATIONS.delete(account, id.as_bytes())).map_ok(|deleted| deleted > 0),
        )
    }

    fn delete_of<'a>(&'a self, account: &'a AccountId, key: Option<KeyId>) -> ConversationFuture<'a, u64> {
        self.answer(async move {
            let mut writer = self.database.writer().await?;
            let statement = records::CONVERSATIONS.delete_some_of(account, key, writer.dialect());
            writer.execute(statement).await
        })
    }

    fn items<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        page: ItemPage,
        since: Timestamp,
    ) -> ConversationFuture<'a, Vec<PositionedItem>> {
        self.answer(async move {
            items::read_items(account, id, page, since, &mut *self.database.reader().await?).await
        })
    }

    fn item<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        item: &'a str,
        since: Timestamp,
    ) -> ConversationFuture<'a, Option<PositionedItem>> {
        self.answer(async move {
            items::read_item(account, id, item, since, &mut *self.database.reader().await?).await
        })
    }

    fn remove<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        item: &'a str,
        since: Timestamp,
        now: Timestamp,
    ) -> ConversationFuture<'a, ConversationWriteResult> {
        let removal = ItemRemoval { account, id, item, since, now };
        self.answer(self.commit(ConversationEdit::Remove(removal)))
    }

    fn claim<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        claimant: RequestId,
        since: Timestamp,
        now: Timestamp,
        until: Timestamp,
    ) -> ConversationFuture<'a, ClaimResult> {
        let claim = NewClaim { claimant, now, until };
        self.answer(async move {
            claims::claim(account, id, since, claim, &mut *self.database.writer().await?).await
        })
    }

    fn renew<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        claimant: RequestId,
        until: Timestamp,
    ) -> ConversationFuture<'a, bool> {
        self.answer(self.execute(claims::renew(account, id, claimant, until)).map_ok(|renewed| renewed > 0))
    }

    fn release<'a>(
        &'a self,
        account: &'a AccountId,
        id: ConversationId,
        claimant: RequestId,
    ) -> ConversationFuture<'a, ()> {
        self.answer(self.execute(claims::release(account, id, claimant)).map_ok(drop))
    }

    fn append<'a>(
        &'a self,
        append: &'a ConversationAppend,
        since: Timestamp,
        limits: ConversationLimits,
    ) -> ConversationFuture<'a, ConversationWriteResult> {
        self.answer(self.commit(ConversationEdit::Append(append, since, limits)))
    }

    fn purge(&self, before: Timestamp, most: u32) -> ConversationFuture<'_, u64> {
        self.answer(async move {
            let before = self.database.by_own_clock(before).await?;
            records::delete_before(before, most, &mut *self.database.writer().await?).await
        })
    }
}
