//! The bank in PostgreSQL: hands out slices, keeps leases by the database's clock.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::{Postgres as Server, Row, Transaction};

use crate::ledger::{AccountId, Balance, Bank, Change, Decide, Epoch, JournalError, Lease, News, Purse};
use crate::units::Timestamp;

use super::Postgres;
use super::burial::{bury, clock, dead, forget, own};
use super::changes::{Changes, recall};
use super::journal::{PostgresJournal, is_alive};
use super::purses::{change, changed, create, lock};

/// Transactions are committed in another order than they look at the clock; so much earlier is looked again.
const OVERLAP_MICROS: i64 = 10_000_000;

/// The bank of a database.
#[derive(Debug, Clone)]
pub struct PostgresBank(Arc<Postgres>);

impl PostgresBank {
    /// The bank of that database.
    pub fn new(database: Arc<Postgres>) -> PostgresBank {
        PostgresBank(database)
    }

    async fn begin(&self) -> Result<Transaction<'static, Server>, sqlx::Error> {
        self.0.pool.begin().await
    }

    async fn add(&self) -> Result<(Epoch, Timestamp), sqlx::Error> {
        let statement = "\
            INSERT INTO replicas (name, expires_at) \
            VALUES ('pid ' || $1 || ' ' || coalesce(host(inet_client_addr()), 'here'), \
                    clock_timestamp() + $2 * interval '1 millisecond') \
            RETURNING epoch, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now";
        let name = std::process::id().to_string();
        let row = sqlx::query(statement).bind(name).bind(self.lasts()).fetch_one(&self.0.pool).await?;
        Ok((Epoch(row.try_get("epoch")?), Timestamp(row.try_get("now")?)))
    }

    fn lasts(&self) -> i64 {
        i64::try_from(self.0.lease.as_millis()).unwrap_or(i64::MAX)
    }

    async fn bury_all(&self) -> Result<usize, sqlx::Error> {
        let mut count = 0;
        loop {
            let mut transaction = self.begin().await?;
            let now = clock(&mut transaction).await?;
            let Some(epoch) = dead(&mut transaction).await? else {
                forget(&mut transaction, now).await?;
                transaction.commit().await?;
                return Ok(count);
            };
            bury(&mut transaction, epoch, now).await?;
            transaction.commit().await?;
            count += 1;
        }
    }

    async fn end(&self, epoch: Epoch) -> Result<(), sqlx::Error> {
        let mut transaction = self.begin().await?;
        let now = clock(&mut transaction).await?;
        if own(&mut transaction, epoch).await? {
            bury(&mut transaction, epoch, now).await?;
        }
        transaction.commit().await
    }

    /// Nothing, where the life is over.
    async fn go_on(&self, epoch: Epoch) -> Result<Option<News>, sqlx::Error> {
        let statement = "\
            UPDATE replicas SET expires_at = clock_timestamp() + $2 * interval '1 millisecond' \
            WHERE epoch = $1 AND NOT is_over \
            RETURNING floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now, \
                      (SELECT count(*) FROM replicas WHERE NOT is_over) AS replicas";
        let row =
            sqlx::query(statement).bind(epoch.0).bind(self.lasts()).fetch_optional(&self.0.pool).await?;
        let Some(row) = row else { return Ok(None) };
        let (micros, replicas): (i64, i64) = (row.try_get("now")?, row.try_get("replicas")?);
        let now = Timestamp(micros / 1000);
        let since = self.0.heard.load(Ordering::Relaxed).saturating_sub(OVERLAP_MICROS);
        let mut connection = self.0.pool.acquire().await?;
        let purses = changed(&mut connection, epoch, since.max(0), now).await?;
        self.0.heard.store(micros, Ordering::Relaxed);
        Ok(Some(News { now, replicas: replicas.unsigned_abs(), purses }))
    }

    /// Nothing, where the life is over.
    async fn trade(
        &self,
        epoch: Epoch,
        purses: &[Purse],
        decide: Decide<'_>,
    ) -> Result<Option<Vec<Balance>>, sqlx::Error> {
        loop {
            let mut transaction = self.begin().await?;
            if !is_alive(&mut transaction, epoch).await? {
                return Ok(None);
            }
            let locked = lock(&mut transaction, epoch, purses).await?;
            if locked.len() < purses.len() {
                // With nothing locked, since it waits for burials, and those wait for purses.
                transaction.rollback().await?;
                let mut transaction = self.begin().await?;
                create(&mut transaction, purses).await?;
                transaction.commit().await?;
                continue;
            }
            let stand: Vec<Balance> = locked.iter().map(|one| one.balance).collect();
            let orders = decide(&stand);
            let balances = change(&mut transaction, epoch, &locked, &orders).await?;
            let recalled = purses.iter().zip(&orders).filter(|(_, order)| order.recalls);
            let mut accounts: Vec<&AccountId> = recalled.map(|(purse, _)| &purse.account).collect();
            accounts.dedup();
            recall(&mut transaction, epoch, accounts.into_iter()).await?;
            transaction.commit().await?;
            return Ok(Some(balances));
        }
    }

    fn told<T>(&self, told: Result<Option<T>, sqlx::Error>) -> Result<T, JournalError> {
        told.map_err(|source| self.0.failed(source))?.ok_or_else(JournalError::lease_over)
    }
}

impl Bank for PostgresBank {
    fn register(&self) -> BoxFuture<'_, Result<Lease, JournalError>> {
        async move {
            let failed = |source| self.0.failed(source);
            // Whoever cannot be buried now is buried later, by anybody.
            if let Err(error) = self.bury_all().await {
                tracing::warn!(%error, "a dead replica is not buried yet");
            }
            self.0.heard.store(0, Ordering::Relaxed);
            let (epoch, now) = self.add().await.map_err(failed)?;
            let journal = Arc::new(PostgresJournal::of(self.0.clone(), epoch));
            Ok(Lease { epoch, journal, lasts: self.0.lease, now })
        }
        .boxed()
    }

    fn renew(&self, epoch: Epoch) -> BoxFuture<'_, Result<News, JournalError>> {
        async move { self.told(self.go_on(epoch).await) }.boxed()
    }

    fn exchange<'a>(
        &'a self,
        epoch: Epoch,
        purses: &'a [Purse],
        decide: Decide<'a>,
    ) -> BoxFuture<'a, Result<Vec<Balance>, JournalError>> {
        async move { self.told(self.trade(epoch, purses, decide).await) }.boxed()
    }

    fn bury(&self) -> BoxFuture<'_, Result<usize, JournalError>> {
        async move { self.bury_all().await.map_err(|source| self.0.failed(source)) }.boxed()
    }

    fn retire(&self, epoch: Epoch) -> BoxFuture<'_, Result<(), JournalError>> {
        async move { self.end(epoch).await.map_err(|source| self.0.failed(source)) }.boxed()
    }

    fn changed(&self, epoch: Epoch) -> BoxFuture<'_, Change> {
        async move {
            let mut changes = self.0.changes.lock().await;
            if !changes.as_ref().is_some_and(|changes| changes.is_of(epoch)) {
                *changes = None;
            }
            changes.get_or_insert_with(|| Changes::of(self.0.pool.clone(), epoch)).next().await
        }
        .boxed()
    }
}
