//! The ledger's journal in `SQLite`.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::ledger::{
    AccountId, AccountSpend, DispatchEntry, EpisodeUsage, GroupUsage, Journal, JournalEntry, JournalError,
    Seal, UsageQuery,
};
use crate::storage::books::parts_of;
use crate::units::{EpisodeId, Timestamp};

use super::Sqlite;
use super::rows::{
    UNRESOLVED, dispatched, insert_dispatched, insert_extended, insert_metered, insert_parts,
    insert_resolved, inserts,
};
use super::{seals, sums};

/// The journal in a `SQLite` file.
///
/// A future of `append` should be left to end; one that is dropped is rolled back before the next begins.
#[derive(Debug)]
pub struct SqliteJournal {
    database: Arc<Sqlite>,
}

impl SqliteJournal {
    /// The journal of this file.
    pub fn new(database: Arc<Sqlite>) -> SqliteJournal {
        SqliteJournal { database }
    }

    async fn insert(&self, entries: &[JournalEntry]) -> Result<(), sqlx::Error> {
        let (mut sent, mut more, mut used, mut ended) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for entry in entries {
            match entry {
                JournalEntry::Dispatched(row) => sent.push(row),
                JournalEntry::Extended(row) => more.push(row),
                JournalEntry::Metered(row) => used.push(row),
                JournalEntry::Resolved(row) => ended.push(row),
            }
        }
        let parts = parts_of(&ended);
        // What is referred to comes first.
        let statements = inserts(&sent, insert_dispatched)
            .chain(inserts(&more, insert_extended))
            .chain(inserts(&used, insert_metered))
            .chain(inserts(&parts, insert_parts))
            .chain(inserts(&ended, insert_resolved));
        let mut writer = self.database.writer().await?;
        let mut transaction = self.database.begin(&mut writer).await?;
        for mut statement in statements {
            // Batches differ in length, so there is little to gain from keeping their statements.
            statement.build().persistent(false).execute(&mut *transaction).await?;
        }
        transaction.commit().await
    }

    fn failed(&self, source: sqlx::Error) -> JournalError {
        JournalError::caused(format!("the database {} failed", self.database.settings.path.display()), source)
    }
}

impl Journal for SqliteJournal {
    fn append<'a>(&'a self, entries: &'a [JournalEntry]) -> BoxFuture<'a, Result<(), JournalError>> {
        async move { self.insert(entries).await.map_err(|source| self.failed(source)) }.boxed()
    }

    fn unresolved(&self) -> BoxFuture<'_, Result<Vec<DispatchEntry>, JournalError>> {
        async move {
            let rows = sqlx::query(UNRESOLVED).fetch_all(&mut *self.database.reader().await).await;
            let read = rows.and_then(|rows| rows.iter().map(dispatched).collect());
            read.map_err(|source| self.failed(source))
        }
        .boxed()
    }

    fn spend_since(&self, since: Timestamp) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        async move {
            let read = sums::since(&mut *self.database.reader().await, since).await;
            read.map_err(|source| self.failed(source))
        }
        .boxed()
    }

    fn spend_between<'a>(
        &'a self,
        moments: &'a [Timestamp],
    ) -> BoxFuture<'a, Result<Vec<AccountSpend>, JournalError>> {
        async move {
            let read = sums::between(&mut *self.database.reader().await, moments).await;
            read.map_err(|source| self.failed(source))
        }
        .boxed()
    }

    fn episode_usage<'a>(
        &'a self,
        account: &'a AccountId,
        episode: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<EpisodeUsage, JournalError>> {
        async move {
            let read = sums::episode(&mut *self.database.reader().await, account, episode).await;
            read.map_err(|source| self.failed(source))
        }
        .boxed()
    }

    fn balances(&self) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        async move {
            let read = sums::balances(&mut *self.database.reader().await).await;
            read.map_err(|source| self.failed(source))
        }
        .boxed()
    }

    fn seal(&self, now: Timestamp) -> BoxFuture<'_, Result<Option<Seal>, JournalError>> {
        async move { seals::seal(&self.database, now).await.map_err(|source| self.failed(source)) }.boxed()
    }

    fn last_seal(&self) -> BoxFuture<'_, Result<Option<Seal>, JournalError>> {
        async move {
            let read = seals::last(&mut *self.database.reader().await).await;
            read.map_err(|source| self.failed(source))
        }
        .boxed()
    }

    fn usage<'a>(&'a self, query: &'a UsageQuery) -> BoxFuture<'a, Result<Vec<GroupUsage>, JournalError>> {
        async move {
            let read = sums::usage(&mut *self.database.slow_reader().await, query).await;
            read.map_err(|source| self.failed(source))
        }
        .boxed()
    }
}
