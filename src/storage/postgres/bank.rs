//! The bank in PostgreSQL: hands out slices, keeps leases by the database's clock.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, unfold};
use futures_util::{FutureExt, StreamExt};
use sqlx::{Postgres as Server, Row, Transaction};

use crate::ledger::{
    AccountId, Balance, Bank, Change, Decide, Epoch, JournalError, Lease, News, Opening, Purse, Traded,
};
use crate::units::Timestamp;

use super::Postgres;
use super::burial::{bury, clock, dead, forget, own};
use super::changes::recall;
use super::journal::{PostgresJournal, is_alive};
use super::opening::{before, create};
use super::purses::{change, changed, lock};

/// Transactions are committed in another order than they look at the clock; so much earlier is looked again.
const OVERLAP_MICROS: i64 = 10_000_000;

/// Many years may have to be summed up, and who made the same purse at the same time is waited for.
const PATIENTLY: &str =
    "SELECT set_config('statement_timeout', '10min', TRUE), set_config('lock_timeout', '10min', TRUE)";

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
                    bank_clock() + $2 * interval '1 millisecond') \
            RETURNING epoch, floor(extract(epoch FROM bank_clock()) * 1000)::bigint AS now";
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
            UPDATE replicas SET expires_at = bank_clock() + $2 * interval '1 millisecond' \
            WHERE epoch = $1 AND NOT is_over \
            RETURNING floor(extract(epoch FROM bank_clock()) * 1000000)::bigint AS now, \
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
    ) -> Result<Option<Traded>, sqlx::Error> {
        let mut transaction = self.begin().await?;
        if !is_alive(&mut transaction, epoch).await? {
            return Ok(None);
        }
        let locked = match lock(&mut transaction, epoch, purses).await? {
            Ok(locked) => locked,
            Err(missing) => return Ok(Some(Traded::Missing(missing))),
        };
        let stand: Vec<Balance> = locked.iter().map(|one| one.balance).collect();
        let orders = decide(&stand);
        let balances = change(&mut transaction, epoch, &locked, &orders).await?;
        let recalled = purses.iter().zip(&orders).filter(|(_, order)| order.recalls);
        let mut accounts: Vec<&AccountId> = recalled.map(|(purse, _)| &purse.account).collect();
        accounts.dedup();
        recall(&mut transaction, epoch, accounts.into_iter()).await?;
        transaction.commit().await?;
        Ok(Some(Traded::Balances(balances)))
    }

    /// Nothing, where the life is over.
    async fn open_all(&self, epoch: Epoch, openings: &[Opening]) -> Result<Option<Vec<u64>>, sqlx::Error> {
        let mut transaction = self.begin().await?;
        sqlx::query(PATIENTLY).execute(&mut *transaction).await?;
        // With no purse locked, since it waits for burials, and those wait for purses.
        create(&mut transaction, openings).await?;
        transaction.commit().await?;
        let mut transaction = self.begin().await?;
        sqlx::query(PATIENTLY).execute(&mut *transaction).await?;
        let before = before(&mut transaction, epoch, openings).await?;
        let goes_on = is_alive(&mut transaction, epoch).await?;
        transaction.commit().await?;
        Ok(goes_on.then_some(before))
    }

    fn told<T>(&self, told: Result<Option<T>, sqlx::Error>) -> Result<T, JournalError> {
        told.map_err(|source| self.0.failed(source))?.ok_or_else(JournalError::lease_over)
    }
}

impl Bank for PostgresBank {
    fn register(&self) -> BoxFuture<'_, Result<Lease, JournalError>> {
        async move {
            let failed = |source| self.0.failed(source);
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
    ) -> BoxFuture<'a, Result<Traded, JournalError>> {
        async move { self.told(self.trade(epoch, purses, decide).await) }.boxed()
    }

    fn bury(&self) -> BoxFuture<'_, Result<usize, JournalError>> {
        async move { self.bury_all().await.map_err(|source| self.0.failed(source)) }.boxed()
    }

    fn retire(&self, epoch: Epoch) -> BoxFuture<'_, Result<(), JournalError>> {
        async move { self.end(epoch).await.map_err(|source| self.0.failed(source)) }.boxed()
    }

    fn open<'a>(
        &'a self,
        epoch: Epoch,
        openings: &'a [Opening],
    ) -> BoxFuture<'a, Result<Vec<u64>, JournalError>> {
        async move { self.told(self.open_all(epoch, openings).await) }.boxed()
    }

    fn changes(&self) -> BoxStream<'static, Change> {
        unfold(self.0.listen(), async |mut changes| Some((changes.next().await, changes))).boxed()
    }
}
