//! Replicas that share accounts through one database: their ledgers live in this process, their leases in PostgreSQL.

mod endings;
mod episodes;
mod extensions;
mod late;
mod limits;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use futures_util::stream::BoxStream;
use sqlx::Row;
use tokio::time::sleep;

use stint_ledger::{
    AbandonPolicy, AccountId, ChangeNotice, DecideFn, ExchangeResult, JournalEntry, JournalError,
    LeaseRenewal, Ledger, PostedFn, QuotaCoordinator, QuotaWindow, ReplicaEpoch, ReplicaLease, RequestScope,
    Reservation, ReservationRequest, ReserveError, Settings, WindowOpening,
};
use stint_types::catalog::WorstCase;
use stint_types::tasks::Tasks;
use stint_types::tenant::{AccountTerms, TenantLimit};
use stint_types::units::{Amount, Money, RequestId, Timestamp, Tokens, Window};

use super::super::{Postgres, PostgresCoordinator};
use super::postgres::connect_for;

const PATIENCE: Duration = Duration::from_secs(60);
/// A lease that does not run out in a test, however slow the machine is.
const LONG: Duration = Duration::from_secs(10);

/// A coordinator that can be paused, as a process that is stopped would be: it asks nothing and gets no notices.
struct Pausable {
    coordinator: PostgresCoordinator,
    is_paused: AtomicBool,
}

impl Pausable {
    async fn awake(&self) {
        while self.is_paused.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(5)).await;
        }
    }
}

impl QuotaCoordinator for Pausable {
    fn register(&self) -> BoxFuture<'_, Result<ReplicaLease, JournalError>> {
        async move {
            self.awake().await;
            self.coordinator.register().await
        }
        .boxed()
    }

    fn renew(&self, epoch: ReplicaEpoch) -> BoxFuture<'_, Result<LeaseRenewal, JournalError>> {
        async move {
            self.awake().await;
            self.coordinator.renew(epoch).await
        }
        .boxed()
    }

    fn exchange<'a>(
        &'a self,
        epoch: ReplicaEpoch,
        windows: &'a [QuotaWindow],
        decide: DecideFn<'a>,
    ) -> BoxFuture<'a, Result<ExchangeResult, JournalError>> {
        async move {
            self.awake().await;
            self.coordinator.exchange(epoch, windows, decide).await
        }
        .boxed()
    }

    fn reclaim<'a>(&'a self, posted: PostedFn<'a>) -> BoxFuture<'a, Result<usize, JournalError>> {
        async move {
            self.awake().await;
            self.coordinator.reclaim(posted).await
        }
        .boxed()
    }

    fn retire(&self, epoch: ReplicaEpoch) -> BoxFuture<'_, Result<(), JournalError>> {
        self.coordinator.retire(epoch)
    }

    fn open_windows<'a>(
        &'a self,
        epoch: ReplicaEpoch,
        openings: &'a [WindowOpening],
    ) -> BoxFuture<'a, Result<Vec<u64>, JournalError>> {
        async move {
            self.awake().await;
            self.coordinator.open_windows(epoch, openings).await
        }
        .boxed()
    }

    fn changes(&self) -> BoxStream<'static, ChangeNotice> {
        self.coordinator.changes()
    }
}

struct Replica {
    ledger: Ledger,
    coordinator: Arc<Pausable>,
    tasks: Tasks,
}

impl Replica {
    async fn start(url: &str, terms: &[AccountTerms], lease: Duration) -> Replica {
        let (coordinator, tasks) =
            (PostgresCoordinator::new(connect_for(url, lease).await), Tasks::default());
        let coordinator = Arc::new(Pausable { coordinator, is_paused: AtomicBool::new(false) });
        let observer = Arc::new(());
        let ledger =
            Ledger::share(&tasks, coordinator.clone(), observer, Settings::default(), terms).await.unwrap();
        Replica { ledger, coordinator, tasks }
    }

    fn pause(&self, is_paused: bool) {
        self.coordinator.is_paused.store(is_paused, Ordering::SeqCst);
    }

    async fn obtain(&self, account: &str, nanos: u64) -> Result<Reservation, ReserveError> {
        self.ledger.obtain(claim(account, nanos)).await
    }

    async fn dispatched(&self, nanos: u64) -> Reservation {
        let mut reservation = self.obtain("key", nanos).await.unwrap();
        reservation.dispatch().await.unwrap();
        reservation
    }

    /// Reclaims expired replicas now: how many there were, and how many requests they had left open.
    async fn reclaim_expired(&self) -> (usize, usize) {
        let posted = AtomicUsize::new(0);
        let count_posted = |entries: &[JournalEntry]| {
            posted.fetch_add(entries.len(), Ordering::SeqCst);
        };
        let replicas = self.coordinator.reclaim(&count_posted).await.unwrap();
        (replicas, posted.into_inner())
    }

    /// Leaves in good order.
    async fn stop(self) {
        drop(self.ledger);
        self.tasks.stop();
        assert!(self.tasks.drain(PATIENCE).await);
    }
}

fn claim(account: &str, nanos: u64) -> ReservationRequest {
    claim_at(account, nanos, Timestamp::now())
}

fn claim_at(account: &str, nanos: u64, now: Timestamp) -> ReservationRequest {
    ReservationRequest {
        account: AccountId::new(account),
        id: RequestId::new(),
        about: RequestScope { model: Some("m".into()), ..RequestScope::default() },
        worst: WorstCase { money: Money(nanos), thinking: Tokens(1) },
        step: None,
        prices: None,
        if_abandoned: AbandonPolicy::PostWhole,
        rate: None,
        now,
        expires: now + Duration::from_secs(600),
    }
}

fn money(window: Window, nanos: u64) -> TenantLimit {
    TenantLimit::new(window, Amount::Money(Money(nanos)))
}

fn terms(account: &str, limits: &[TenantLimit]) -> AccountTerms {
    AccountTerms { limits: limits.to_vec(), ..AccountTerms::unlimited(AccountId::new(account)) }
}

fn key(limits: &[TenantLimit]) -> Vec<AccountTerms> {
    vec![terms("key", limits)]
}

async fn replicas(url: &str, terms: &[AccountTerms], count: usize) -> Vec<Replica> {
    join_all((0..count).map(|_| Replica::start(url, terms, LONG))).await
}

/// Two whose leases run out soon.
async fn short_leased_replicas(url: &str, terms: &[AccountTerms]) -> Vec<Replica> {
    join_all((0..2).map(|_| Replica::start(url, terms, Duration::from_millis(1_500)))).await
}

/// What is wrong with quota windows; and of each window, what is granted and what is leased.
async fn audit(database: &Postgres, max: u64) -> Vec<(String, i64, i64)> {
    let rows = sqlx::query(
        "SELECT p.account || ' ' || p.unit || ' ' || p.period AS name, p.granted, \
                (SELECT coalesce(sum(amount), 0)::bigint FROM slices WHERE purse = p.id) AS held \
         FROM purses p ORDER BY 1",
    );
    let rows = rows.fetch_all(database.pool()).await.unwrap();
    let all: Vec<(String, i64, i64)> =
        rows.iter().map(|row| (row.get("name"), row.get("granted"), row.get("held"))).collect();
    for (name, granted, held) in &all {
        assert!(held <= granted, "{name}: {held} of {granted}");
        assert!(*granted <= i64::try_from(max).unwrap(), "{name}: {granted} of {max}");
    }
    all
}

/// What the journal says that was spent, and how many reservations are open in it.
async fn books(database: &Postgres) -> (i64, i64) {
    let row = sqlx::query(
        "SELECT (SELECT coalesce(sum(money), 0)::bigint FROM resolutions) AS spent, \
                (SELECT count(*) FROM reservations v WHERE NOT EXISTS \
                     (SELECT 1 FROM resolutions r WHERE r.reservation = v.id)) AS open",
    );
    let row = row.fetch_one(database.pool()).await.unwrap();
    (row.get("spent"), row.get("open"))
}

async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        sleep(Duration::from_millis(20)).await;
    }
}
