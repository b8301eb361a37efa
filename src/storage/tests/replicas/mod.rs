//! Replicas that share accounts through one database: their ledgers live in this process, their leases in PostgreSQL.

mod endings;
mod episodes;
mod extensions;
mod late;
mod limits;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use futures_util::stream::BoxStream;
use sqlx::Row;
use tokio::time::sleep;

use crate::catalog::WorstCase;
use crate::ledger::{
    About, AccountId, Bank, Change, Claim, Decide, Epoch, IfAbandoned, JournalError, Lease, Ledger, News,
    Opening, Purse, Refused, Reservation, Settings, Traded,
};
use crate::tasks::Tasks;
use crate::tenant::{TenantLimit, Terms};
use crate::units::{Amount, Money, RequestId, Timestamp, Tokens, Window};

use super::super::{Postgres, PostgresBank};
use super::postgres::connect_for;

const PATIENCE: Duration = Duration::from_secs(20);
/// A lease that does not run out in a test, however slow the machine is.
const LONG: Duration = Duration::from_secs(10);

/// A bank that can be paused, as a process that is stopped would be: it asks nothing and hears nothing.
struct Pausable {
    bank: PostgresBank,
    is_paused: AtomicBool,
}

impl Pausable {
    async fn awake(&self) {
        while self.is_paused.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Bank for Pausable {
    fn register(&self) -> BoxFuture<'_, Result<Lease, JournalError>> {
        async move {
            self.awake().await;
            self.bank.register().await
        }
        .boxed()
    }

    fn renew(&self, epoch: Epoch) -> BoxFuture<'_, Result<News, JournalError>> {
        async move {
            self.awake().await;
            self.bank.renew(epoch).await
        }
        .boxed()
    }

    fn exchange<'a>(
        &'a self,
        epoch: Epoch,
        purses: &'a [Purse],
        decide: Decide<'a>,
    ) -> BoxFuture<'a, Result<Traded, JournalError>> {
        async move {
            self.awake().await;
            self.bank.exchange(epoch, purses, decide).await
        }
        .boxed()
    }

    fn bury(&self) -> BoxFuture<'_, Result<usize, JournalError>> {
        async move {
            self.awake().await;
            self.bank.bury().await
        }
        .boxed()
    }

    fn retire(&self, epoch: Epoch) -> BoxFuture<'_, Result<(), JournalError>> {
        self.bank.retire(epoch)
    }

    fn open<'a>(
        &'a self,
        epoch: Epoch,
        openings: &'a [Opening],
    ) -> BoxFuture<'a, Result<Vec<u64>, JournalError>> {
        async move {
            self.awake().await;
            self.bank.open(epoch, openings).await
        }
        .boxed()
    }

    fn changes(&self) -> BoxStream<'static, Change> {
        self.bank.changes()
    }
}

struct Replica {
    ledger: Ledger,
    bank: Arc<Pausable>,
    tasks: Tasks,
}

impl Replica {
    async fn start(url: &str, terms: &[Terms], lease: Duration) -> Replica {
        let (bank, tasks) = (PostgresBank::new(connect_for(url, lease).await), Tasks::default());
        let bank = Arc::new(Pausable { bank, is_paused: AtomicBool::new(false) });
        let observer = Arc::new(());
        let ledger = Ledger::share(&tasks, bank.clone(), observer, Settings::default(), terms).await.unwrap();
        Replica { ledger, bank, tasks }
    }

    fn pause(&self, is_paused: bool) {
        self.bank.is_paused.store(is_paused, Ordering::SeqCst);
    }

    async fn obtain(&self, account: &str, nanos: u64) -> Result<Reservation, Refused> {
        self.ledger.obtain(claim(account, nanos)).await
    }

    async fn dispatched(&self, nanos: u64) -> Reservation {
        let mut reservation = self.obtain("key", nanos).await.unwrap();
        reservation.dispatch().await.unwrap();
        reservation
    }

    /// Buries the dead now, not some time.
    async fn bank_buries(&self) -> usize {
        self.bank.bury().await.unwrap()
    }

    /// Leaves in good order.
    async fn stop(self) {
        drop(self.ledger);
        self.tasks.stop();
        assert!(self.tasks.drain(PATIENCE).await);
    }
}

fn claim(account: &str, nanos: u64) -> Claim {
    claim_at(account, nanos, Timestamp::now())
}

fn claim_at(account: &str, nanos: u64, now: Timestamp) -> Claim {
    Claim {
        account: AccountId::new(account),
        id: RequestId::new(),
        about: About { model: Some("m".into()), ..About::default() },
        worst: WorstCase { money: Money(nanos), thinking: Tokens(1) },
        step: None,
        prices: None,
        if_abandoned: IfAbandoned::PostWhole,
        rate: None,
        now,
        expires: now + Duration::from_secs(600),
    }
}

fn money(window: Window, nanos: u64) -> TenantLimit {
    TenantLimit::new(window, Amount::Money(Money(nanos)))
}

fn terms(account: &str, limits: &[TenantLimit]) -> Terms {
    Terms { limits: limits.to_vec(), ..Terms::unlimited(AccountId::new(account)) }
}

fn key(limits: &[TenantLimit]) -> Vec<Terms> {
    vec![terms("key", limits)]
}

async fn replicas(url: &str, terms: &[Terms], count: usize) -> Vec<Replica> {
    join_all((0..count).map(|_| Replica::start(url, terms, LONG))).await
}

/// Two whose leases run out soon.
async fn mortals(url: &str, terms: &[Terms]) -> Vec<Replica> {
    join_all((0..2).map(|_| Replica::start(url, terms, Duration::from_millis(1_500)))).await
}

/// Where something is wrong with a purse; and of each its limit's window, what is granted, and what is held in slices.
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
