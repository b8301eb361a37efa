//! The ledger's journal in PostgreSQL.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::PgConnection;

use crate::ledger::{
    AccountId, AccountSpend, DispatchEntry, EpisodeUsage, GroupUsage, Journal, JournalEntry, JournalError,
    ReplicaEpoch, Seal, UsageQuery,
};
use crate::storage::books::parts_of;
use crate::units::{EpisodeId, Timestamp};

use super::Postgres;
use super::rows::{
    UNRESOLVED, UNRESOLVED_OF_ALL, dispatched, insert_dispatched, insert_extended, insert_metered,
    insert_parts, insert_resolved,
};
use super::{seals, sums};

/// The journal in a PostgreSQL database, as one replica writes it.
#[derive(Debug)]
pub struct PostgresJournal {
    database: Arc<Postgres>,
    epoch: Option<i64>,
}

impl PostgresJournal {
    /// The journal of that database, for one that shares the accounts with nobody.
    pub fn new(database: Arc<Postgres>) -> PostgresJournal {
        PostgresJournal { database, epoch: None }
    }

    /// The same, for one life of a replica. When that is over, nothing can be appended any more.
    pub(super) fn of(database: Arc<Postgres>, epoch: ReplicaEpoch) -> PostgresJournal {
        PostgresJournal { database, epoch: Some(epoch.0) }
    }

    /// The dispatched reservations of all replicas that are not resolved.
    pub(in crate::storage) async fn unresolved_of_all(&self) -> Result<Vec<DispatchEntry>, JournalError> {
        let rows = sqlx::query(UNRESOLVED_OF_ALL).fetch_all(&self.database.pool).await;
        let read = rows.and_then(|rows| rows.iter().map(dispatched).collect());
        read.map_err(|source| self.database.failed(source))
    }

    async fn insert(&self, entries: &[JournalEntry]) -> Result<(), JournalError> {
        let failed = |source| self.database.failed(source);
        let mut transaction = self.database.pool.begin().await.map_err(failed)?;
        if let Some(epoch) = self.epoch
            && !is_alive(&mut transaction, ReplicaEpoch(epoch)).await.map_err(failed)?
        {
            return Err(JournalError::lease_lost());
        }
        insert(&mut transaction, self.epoch, entries).await.map_err(failed)?;
        transaction.commit().await.map_err(failed)
    }
}

/// Whether a life goes on; if so, nobody ends it before this transaction ends.
pub(super) async fn is_alive(
    connection: &mut PgConnection,
    epoch: ReplicaEpoch,
) -> Result<bool, sqlx::Error> {
    // Weak enough for renewals, which do not touch the key; a burial waits for it.
    let statement = "SELECT 1 FROM replicas WHERE epoch = $1 AND NOT is_over FOR KEY SHARE";
    let alive = sqlx::query(statement).bind(epoch.0).fetch_optional(connection).await?;
    Ok(alive.is_some())
}

/// Inserts all of these, where they are not there yet.
pub(super) async fn insert(
    connection: &mut PgConnection,
    epoch: Option<i64>,
    entries: &[JournalEntry],
) -> Result<(), sqlx::Error> {
    let (mut sent, mut more, mut used, mut ended) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for entry in entries {
        match entry {
            JournalEntry::Dispatched(row) => sent.push(row),
            JournalEntry::Extended(row) => more.push(row),
            JournalEntry::Metered(row) => used.push(row),
            JournalEntry::Resolved(row) => ended.push(row),
        }
    }
    // What is referred to comes first.
    insert_dispatched(connection, epoch, &sent).await?;
    insert_extended(connection, &more).await?;
    insert_metered(connection, &used).await?;
    insert_parts(connection, &parts_of(&ended)).await?;
    insert_resolved(connection, &ended).await
}

impl Journal for PostgresJournal {
    fn append<'a>(&'a self, entries: &'a [JournalEntry]) -> BoxFuture<'a, Result<(), JournalError>> {
        self.insert(entries).boxed()
    }

    fn unresolved(&self) -> BoxFuture<'_, Result<Vec<DispatchEntry>, JournalError>> {
        async move {
            let rows = sqlx::query(UNRESOLVED).bind(self.epoch).fetch_all(&self.database.pool).await;
            let read = rows.and_then(|rows| rows.iter().map(dispatched).collect());
            read.map_err(|source| self.database.failed(source))
        }
        .boxed()
    }

    fn spend_since(&self, since: Timestamp) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        async move {
            let read = async { sums::since(&mut *self.database.pool.acquire().await?, since).await };
            read.await.map_err(|source| self.database.failed(source))
        }
        .boxed()
    }

    fn spend_between<'a>(
        &'a self,
        moments: &'a [Timestamp],
    ) -> BoxFuture<'a, Result<Vec<AccountSpend>, JournalError>> {
        async move {
            let read = async { sums::between(&mut *self.database.pool.acquire().await?, moments).await };
            read.await.map_err(|source| self.database.failed(source))
        }
        .boxed()
    }

    fn episode_usage<'a>(
        &'a self,
        account: &'a AccountId,
        episode: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<EpisodeUsage, JournalError>> {
        async move {
            let read =
                async { sums::episode(&mut *self.database.pool.acquire().await?, account, episode).await };
            read.await.map_err(|source| self.database.failed(source))
        }
        .boxed()
    }

    fn balances(&self) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        async move {
            let read = async { sums::balances(&mut *self.database.pool.acquire().await?).await };
            read.await.map_err(|source| self.database.failed(source))
        }
        .boxed()
    }

    fn seal(&self, now: Timestamp) -> BoxFuture<'_, Result<Option<Seal>, JournalError>> {
        async move {
            let read = async { seals::seal(&mut *self.database.pool.acquire().await?, now).await };
            read.await.map_err(|source| self.database.failed(source))
        }
        .boxed()
    }

    fn last_seal(&self) -> BoxFuture<'_, Result<Option<Seal>, JournalError>> {
        async move {
            let read = async { seals::last(&mut *self.database.pool.acquire().await?).await };
            read.await.map_err(|source| self.database.failed(source))
        }
        .boxed()
    }

    fn usage<'a>(&'a self, query: &'a UsageQuery) -> BoxFuture<'a, Result<Vec<GroupUsage>, JournalError>> {
        async move {
            let read = async { sums::usage(&mut *self.database.pool.acquire().await?, query).await };
            read.await.map_err(|source| self.database.failed(source))
        }
        .boxed()
    }
}
