//! The quota coordinator in PostgreSQL: it grants leases of quota windows, and reclaims those of replicas that have expired by the
//! database's clock.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, unfold};
use futures_util::{FutureExt, StreamExt};
use sqlx::{Postgres as Server, Row, Transaction};

use stint_ledger::{
    AccountId, ChangeNotice, DecideFn, ExchangeResult, JournalError, LeaseRenewal, PostedFn, QuotaBalance,
    QuotaCoordinator, QuotaWindow, ReplicaEpoch, ReplicaLease, WindowOpening,
};
use stint_types::units::Timestamp;

use super::changes::notify_recalls;
use super::clock::read_clock;
use super::database::Postgres;
use super::journal::{PostgresJournal, is_alive};
use super::quota_windows::{adjust_leases, changed_windows, lock_windows};
use super::reclaim::{lock_expired, lock_own, prune_windows, reclaim};
use super::window_opening::{create_windows, prior_usage};

/// Transactions are committed in another order than they read the clock in. So changes are read again from so much earlier on.
const OVERLAP_MICROS: i64 = 10_000_000;

/// Many years may have to be summed up, and another replica that opens the same window is waited for.
const LONG_TIMEOUTS: &str =
    "SELECT set_config('statement_timeout', '10min', TRUE), set_config('lock_timeout', '10min', TRUE)";

/// The coordinator of a database.
#[derive(Debug, Clone)]
pub struct PostgresCoordinator(Arc<Postgres>);

impl PostgresCoordinator {
    /// The coordinator of that database.
    pub fn new(database: Arc<Postgres>) -> PostgresCoordinator {
        PostgresCoordinator(database)
    }

    async fn begin(&self) -> Result<Transaction<'static, Server>, sqlx::Error> {
        self.0.pool.begin().await
    }

    async fn insert_replica(&self) -> Result<(ReplicaEpoch, Timestamp), sqlx::Error> {
        let statement = "\
            INSERT INTO replicas (name, expires_at) \
            VALUES ('pid ' || $1 || ' ' || coalesce(host(inet_client_addr()), 'here'), \
                    bank_clock() + $2 * interval '1 millisecond') \
            RETURNING epoch, floor(extract(epoch FROM bank_clock()) * 1000)::bigint AS now";
        let name = std::process::id().to_string();
        let row = sqlx::query(statement).bind(name).bind(self.lease_millis()).fetch_one(&self.0.pool).await?;
        Ok((ReplicaEpoch(row.try_get("epoch")?), Timestamp(row.try_get("now")?)))
    }

    fn lease_millis(&self) -> i64 {
        i64::try_from(self.0.lease.as_millis()).unwrap_or(i64::MAX)
    }

    async fn reclaim_all(&self, posted: PostedFn<'_>) -> Result<usize, sqlx::Error> {
        let mut count = 0;
        loop {
            let mut transaction = self.begin().await?;
            let now = read_clock(&mut transaction).await?;
            let Some(epoch) = lock_expired(&mut transaction).await? else {
                prune_windows(&mut transaction, now).await?;
                transaction.commit().await?;
                return Ok(count);
            };
            let entries = reclaim(&mut transaction, epoch, now).await?;
            transaction.commit().await?;
            posted(&entries);
            count += 1;
        }
    }

    async fn end_epoch(&self, epoch: ReplicaEpoch) -> Result<(), sqlx::Error> {
        let mut transaction = self.begin().await?;
        let now = read_clock(&mut transaction).await?;
        if lock_own(&mut transaction, epoch).await? {
            reclaim(&mut transaction, epoch, now).await?;
        }
        transaction.commit().await
    }

    /// Nothing, where the epoch is over.
    async fn renew_lease(&self, epoch: ReplicaEpoch) -> Result<Option<LeaseRenewal>, sqlx::Error> {
        let statement = "\
            UPDATE replicas SET expires_at = bank_clock() + $2 * interval '1 millisecond' \
            WHERE epoch = $1 AND NOT is_over \
            RETURNING floor(extract(epoch FROM bank_clock()) * 1000000)::bigint AS now, \
                      (SELECT count(*) FROM replicas WHERE NOT is_over) AS replicas";
        let row = sqlx::query(statement)
            .bind(epoch.0)
            .bind(self.lease_millis())
            .fetch_optional(&self.0.pool)
            .await?;
        let Some(row) = row else { return Ok(None) };
        let (micros, replicas): (i64, i64) = (row.try_get("now")?, row.try_get("replicas")?);
        let now = Timestamp(micros / 1000);
        let since = self.0.changes_seen_micros.load(Ordering::Relaxed).saturating_sub(OVERLAP_MICROS);
        let mut connection = self.0.pool.acquire().await?;
        let balances = changed_windows(&mut connection, epoch, since.max(0), now).await?;
        self.0.changes_seen_micros.store(micros, Ordering::Relaxed);
        Ok(Some(LeaseRenewal { now, replicas: replicas.unsigned_abs(), balances }))
    }

    /// Nothing, where the epoch is over.
    async fn adjust_leases(
        &self,
        epoch: ReplicaEpoch,
        windows: &[QuotaWindow],
        decide: DecideFn<'_>,
    ) -> Result<Option<ExchangeResult>, sqlx::Error> {
        let mut transaction = self.begin().await?;
        if !is_alive(&mut transaction, epoch).await? {
            return Ok(None);
        }
        let locked = match lock_windows(&mut transaction, epoch, windows).await? {
            Ok(locked) => locked,
            Err(missing) => return Ok(Some(ExchangeResult::Missing(missing))),
        };
        let before: Vec<QuotaBalance> = locked.iter().map(|one| one.balance).collect();
        let orders = decide(&before);
        let balances = adjust_leases(&mut transaction, epoch, &locked, &orders).await?;
        let recalled = windows.iter().zip(&orders).filter(|(_, order)| order.is_recalling);
        let mut accounts: Vec<&AccountId> = recalled.map(|(window, _)| &window.account).collect();
        accounts.dedup();
        notify_recalls(&mut transaction, epoch, accounts.into_iter()).await?;
        transaction.commit().await?;
        Ok(Some(ExchangeResult::Balances(balances)))
    }

    /// Nothing, where the epoch is over.
    async fn open_all_windows(
        &self,
        epoch: ReplicaEpoch,
        openings: &[WindowOpening],
    ) -> Result<Option<Vec<u64>>, sqlx::Error> {
        let mut transaction = self.begin().await?;
        sqlx::query(LONG_TIMEOUTS).execute(&mut *transaction).await?;
        // With no window locked: it waits for replicas to be reclaimed, and that waits for windows.
        create_windows(&mut transaction, openings).await?;
        transaction.commit().await?;
        let mut transaction = self.begin().await?;
        sqlx::query(LONG_TIMEOUTS).execute(&mut *transaction).await?;
        let before = prior_usage(&mut transaction, epoch, openings).await?;
        let is_alive = is_alive(&mut transaction, epoch).await?;
        transaction.commit().await?;
        Ok(is_alive.then_some(before))
    }

    fn or_lease_lost<T>(&self, done: Result<Option<T>, sqlx::Error>) -> Result<T, JournalError> {
        done.map_err(|source| self.0.failed(source))?.ok_or_else(JournalError::lease_lost)
    }
}

impl QuotaCoordinator for PostgresCoordinator {
    fn register(&self) -> BoxFuture<'_, Result<ReplicaLease, JournalError>> {
        async move {
            let failed = |source| self.0.failed(source);
            self.0.changes_seen_micros.store(0, Ordering::Relaxed);
            let (epoch, now) = self.insert_replica().await.map_err(failed)?;
            let journal = Arc::new(PostgresJournal::of(self.0.clone(), epoch));
            Ok(ReplicaLease { epoch, journal, duration: self.0.lease, now })
        }
        .boxed()
    }

    fn renew(&self, epoch: ReplicaEpoch) -> BoxFuture<'_, Result<LeaseRenewal, JournalError>> {
        async move { self.or_lease_lost(self.renew_lease(epoch).await) }.boxed()
    }

    fn exchange<'a>(
        &'a self,
        epoch: ReplicaEpoch,
        windows: &'a [QuotaWindow],
        decide: DecideFn<'a>,
    ) -> BoxFuture<'a, Result<ExchangeResult, JournalError>> {
        async move { self.or_lease_lost(self.adjust_leases(epoch, windows, decide).await) }.boxed()
    }

    fn reclaim<'a>(&'a self, posted: PostedFn<'a>) -> BoxFuture<'a, Result<usize, JournalError>> {
        async move { self.reclaim_all(posted).await.map_err(|source| self.0.failed(source)) }.boxed()
    }

    fn retire(&self, epoch: ReplicaEpoch) -> BoxFuture<'_, Result<(), JournalError>> {
        async move { self.end_epoch(epoch).await.map_err(|source| self.0.failed(source)) }.boxed()
    }

    fn open_windows<'a>(
        &'a self,
        epoch: ReplicaEpoch,
        openings: &'a [WindowOpening],
    ) -> BoxFuture<'a, Result<Vec<u64>, JournalError>> {
        async move { self.or_lease_lost(self.open_all_windows(epoch, openings).await) }.boxed()
    }

    fn changes(&self) -> BoxStream<'static, ChangeNotice> {
        unfold(self.0.listen(), async |mut changes| Some((changes.next().await, changes))).boxed()
    }
}
