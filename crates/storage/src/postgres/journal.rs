//! The ledger's journal in PostgreSQL.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryFutureExt};
use sqlx::PgConnection;

use crate::journal::{self, OPEN_COLUMNS};
use crate::sql::{SqlConnection, SqlDatabase, SqlText, Statement, sql};
use stint_ledger::{
    AccountId, AccountSpend, DispatchEntry, EpisodeUsage, GroupUsage, Journal, JournalEntry, JournalError,
    ReplicaEpoch, Seal, UsageQuery,
};
use stint_types::units::{EpisodeId, Timestamp};

use super::database::Postgres;
use super::insert::insert;
use super::seals::seal;

/// The journal in a PostgreSQL database, as one replica writes it.
#[derive(Debug)]
pub struct PostgresJournal {
    database: Arc<Postgres>,
    epoch: Option<i64>,
}

impl PostgresJournal {
    /// The journal of that database, for a process that shares the accounts with nobody.
    pub fn new(database: Arc<Postgres>) -> PostgresJournal {
        PostgresJournal { database, epoch: None }
    }

    /// The same, for one epoch of a replica. When that is over, nothing can be appended any more.
    pub(super) fn of(database: Arc<Postgres>, epoch: ReplicaEpoch) -> PostgresJournal {
        PostgresJournal { database, epoch: Some(epoch.0) }
    }

    /// The dispatched reservations of all replicas that are not resolved.
    pub(crate) async fn unresolved_of_all(&self) -> Result<Vec<DispatchEntry>, JournalError> {
        let find = Statement::new(unresolved("TRUE"));
        self.answer(async move { read_entries(find, &mut *self.database.reader().await?).await }).await
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

    fn answer<'a, T: 'a>(
        &'a self,
        done: impl Future<Output = Result<T, sqlx::Error>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, JournalError>> {
        done.map_err(|source| self.database.failed(source)).boxed()
    }
}

/// Whether a replica's epoch is not over; if so, nobody ends it before this transaction ends.
pub(super) async fn is_alive(
    connection: &mut PgConnection,
    epoch: ReplicaEpoch,
) -> Result<bool, sqlx::Error> {
    // Weak enough for renewals, which do not touch the key; reclaiming waits for it.
    let statement = "SELECT 1 FROM replicas WHERE epoch = $1 AND NOT is_over FOR KEY SHARE";
    let alive = sqlx::query(statement).bind(epoch.0).fetch_optional(connection).await?;
    Ok(alive.is_some())
}

/// The dispatched reservations that are not resolved, of one replica, or of those who share with nobody.
pub(super) async fn read_unresolved(
    epoch: Option<i64>,
    connection: &mut dyn SqlConnection,
) -> Result<Vec<DispatchEntry>, sqlx::Error> {
    let find = Statement::new(unresolved("r.epoch IS NOT DISTINCT FROM $1"));
    read_entries(find.bind(epoch), connection).await
}

async fn read_entries(
    find: Statement,
    connection: &mut dyn SqlConnection,
) -> Result<Vec<DispatchEntry>, sqlx::Error> {
    connection.fetch_all(find).await?.iter().map(journal::dispatch_entry).collect()
}

fn unresolved(condition: &'static str) -> SqlText {
    sql(
        "SELECT {}, \
                (r.money + coalesce(e.money, 0))::bigint AS money, \
                (r.thinking + coalesce(e.thinking, 0))::bigint AS thinking, \
                (r.tool_calls + coalesce(e.tool_calls, 0))::bigint AS tool_calls \
         FROM reservations r \
         LEFT JOIN LATERAL (SELECT sum(money) AS money, sum(thinking) AS thinking, sum(tool_calls) AS tool_calls \
                            FROM extensions WHERE reservation = r.id) e ON TRUE \
         LEFT JOIN LATERAL (SELECT * FROM meterings WHERE reservation = r.id ORDER BY step DESC LIMIT 1) m ON TRUE \
         WHERE {} AND NOT EXISTS (SELECT 1 FROM resolutions WHERE reservation = r.id) \
         ORDER BY r.id",
        &[&OPEN_COLUMNS, &condition],
    )
}

impl Journal for PostgresJournal {
    fn append<'a>(&'a self, entries: &'a [JournalEntry]) -> BoxFuture<'a, Result<(), JournalError>> {
        self.insert(entries).boxed()
    }

    fn unresolved(&self) -> BoxFuture<'_, Result<Vec<DispatchEntry>, JournalError>> {
        self.answer(async move { read_unresolved(self.epoch, &mut *self.database.reader().await?).await })
    }

    fn spend_since(&self, since: Timestamp) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        self.answer(async move { journal::spend_since(since, &mut *self.database.reader().await?).await })
    }

    fn spend_between<'a>(
        &'a self,
        moments: &'a [Timestamp],
    ) -> BoxFuture<'a, Result<Vec<AccountSpend>, JournalError>> {
        self.answer(async move { journal::spend_between(moments, self.database.reader().await?).await })
    }

    fn episode_usage<'a>(
        &'a self,
        account: &'a AccountId,
        episode: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<EpisodeUsage, JournalError>> {
        self.answer(async move {
            journal::episode_usage(account, episode, &mut *self.database.reader().await?).await
        })
    }

    fn balances(&self) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        self.answer(async move { journal::balances(&mut *self.database.reader().await?).await })
    }

    fn seal(&self, now: Timestamp) -> BoxFuture<'_, Result<Option<Seal>, JournalError>> {
        self.answer(async move { seal(&mut *self.database.pool.acquire().await?, now).await })
    }

    fn last_seal(&self) -> BoxFuture<'_, Result<Option<Seal>, JournalError>> {
        self.answer(async move { journal::last_seal(&mut *self.database.reader().await?).await })
    }

    fn usage<'a>(&'a self, query: &'a UsageQuery) -> BoxFuture<'a, Result<Vec<GroupUsage>, JournalError>> {
        self.answer(async move { journal::usage(query, &mut *self.database.slow_reader().await?).await })
    }
}
