//! The trait for a store of one database.

/// The database's own are its connections (`reader`, `writer`), its transactions (`commit`), and its failures (`failed`).
macro_rules! conversation_store {
    ($store:ty) => {
        use futures_util::{FutureExt, TryFutureExt};

        use crate::agent::conversations::{ConversationFuture, ConversationStore};

        impl $store {
            fn answer<'a, T: 'a>(
                &'a self,
                done: impl Future<Output = Result<T, sqlx::Error>> + Send + 'a,
            ) -> ConversationFuture<'a, T> {
                done.map(|done| done.map_err(|source| self.failed(source))).boxed()
            }

            async fn alone(&self, statement: ConversationStatement) -> Result<u64, sqlx::Error> {
                run(statement, &mut *self.writer().await?).await
            }
        }

        impl ConversationStore for $store {
            fn create<'a>(
                &'a self,
                conversation: &'a StoredConversation,
                items: &'a [StoredItem],
                bounds: ConversationLimits,
            ) -> ConversationFuture<'a, ConversationWriteResult> {
                self.answer(self.commit(ConversationEdit::Create(conversation, items, bounds)))
            }

            fn find<'a>(
                &'a self,
                account: &'a AccountId,
                id: ConversationId,
                since: Timestamp,
            ) -> ConversationFuture<'a, Option<StoredConversation>> {
                self.answer(
                    async move { read_conversation(account, id, since, &mut *self.reader().await?).await },
                )
            }

            fn set_metadata<'a>(
                &'a self,
                account: &'a AccountId,
                id: ConversationId,
                metadata: &'a str,
                since: Timestamp,
                now: Timestamp,
            ) -> ConversationFuture<'a, Option<StoredConversation>> {
                let statement = described(account, id, metadata, since).bind(now.0);
                self.answer(async move {
                    let row = changed(statement, &mut *self.writer().await?).await?;
                    row.as_ref().map(conversation).transpose()
                })
            }

            fn delete<'a>(
                &'a self,
                account: &'a AccountId,
                id: ConversationId,
            ) -> ConversationFuture<'a, bool> {
                self.answer(async move { Ok(self.alone(of(DELETE, account, id)).await? > 0) })
            }

            fn items<'a>(
                &'a self,
                account: &'a AccountId,
                id: ConversationId,
                page: ItemPage,
                since: Timestamp,
            ) -> ConversationFuture<'a, Vec<PositionedItem>> {
                self.answer(
                    async move { read_items(account, id, page, since, &mut *self.reader().await?).await },
                )
            }

            fn item<'a>(
                &'a self,
                account: &'a AccountId,
                id: ConversationId,
                item: &'a str,
                since: Timestamp,
            ) -> ConversationFuture<'a, Option<PositionedItem>> {
                self.answer(
                    async move { read_item(account, id, item, since, &mut *self.reader().await?).await },
                )
            }

            fn remove<'a>(
                &'a self,
                account: &'a AccountId,
                id: ConversationId,
                item: &'a str,
                since: Timestamp,
                now: Timestamp,
            ) -> ConversationFuture<'a, ConversationWriteResult> {
                self.answer(self.commit(ConversationEdit::Remove(ItemRemoval {
                    account,
                    id,
                    item,
                    since,
                    now,
                })))
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
                    write_claim(account, id, since, claim, &mut *self.writer().await?).await
                })
            }

            fn renew<'a>(
                &'a self,
                account: &'a AccountId,
                id: ConversationId,
                claimant: RequestId,
                until: Timestamp,
            ) -> ConversationFuture<'a, bool> {
                let statement = held(PROLONG, account, id, claimant).bind(until.0);
                self.answer(async move { Ok(self.alone(statement).await? > 0) })
            }

            fn release<'a>(
                &'a self,
                account: &'a AccountId,
                id: ConversationId,
                claimant: RequestId,
            ) -> ConversationFuture<'a, ()> {
                self.answer(self.alone(held(RELEASE, account, id, claimant)).map_ok(drop))
            }

            fn append<'a>(
                &'a self,
                lengthening: &'a ConversationAppend,
                since: Timestamp,
                bounds: ConversationLimits,
            ) -> ConversationFuture<'a, ConversationWriteResult> {
                self.answer(self.commit(ConversationEdit::Lengthen(lengthening, since, bounds)))
            }

            fn purge(&self, before: Timestamp, most: u32) -> ConversationFuture<'_, u64> {
                self.answer(self.alone(purge(before, most)))
            }
        }
    };
}

pub(in crate::storage) use conversation_store;
