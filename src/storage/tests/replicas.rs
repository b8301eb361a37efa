//! Replicas that share accounts through one database: their ledgers live in this process, their leases in PostgreSQL.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use sqlx::Row;
use tokio::time::sleep;

use crate::catalog::WorstCase;
use crate::ledger::{
    About, AccountId, Balance, Bank, Change, Claim, Decide, Epoch, IfAbandoned, JournalError, Lease, Ledger,
    LedgerError, News, Purse, Refused, Reservation, Settings,
};
use crate::tasks::Tasks;
use crate::tenant::{Scope, TenantLimit, Terms};
use crate::units::{Amount, Count, Money, RequestId, Timestamp, Tokens, Window};

use super::super::{Postgres, PostgresBank};
use super::cluster::cluster;
use super::detail;
use super::postgres::{connect, connect_for};

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
    ) -> BoxFuture<'a, Result<Vec<Balance>, JournalError>> {
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

    fn changed(&self, epoch: Epoch) -> BoxFuture<'_, Change> {
        async move {
            self.awake().await;
            self.bank.changed(epoch).await
        }
        .boxed()
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
        prices: None,
        if_abandoned: IfAbandoned::PostWhole,
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

/// LB-01 and LB-02 over three replicas: many tasks on one key with room for exactly so many pinned requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_for_twenty_serves_exactly_twenty_on_three_replicas() {
    let url = cluster().database();
    let all = replicas(&url, &key(&[money(Window::Total, 2_000)]), 3).await;
    let attempts = (0..60).map(|task| all[task % 3].obtain("key", 100));
    let decided = join_all(attempts).await;
    let (served, refused): (Vec<_>, Vec<_>) = decided.into_iter().partition(Result::is_ok);
    assert_eq!(served.len(), 20);
    for refusal in refused {
        let Err(Refused::Shortfall(short)) = refusal else { panic!("{refusal:?}") };
        assert_eq!(short.limit.to_string(), "key money total");
    }
    audit(&*connect(&url).await, 2_000).await;
}

/// LB-23: whoever looks, at any moment, finds no more handed out than there is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_requests_end_the_books_balance_and_nothing_stays_handed_out() {
    const MAX: u64 = 5_000;
    let url = cluster().database();
    let team = terms("team", &[money(Window::Day, MAX), money(Window::Total, 4 * MAX)]);
    let at_once = TenantLimit::new(Window::Total, Amount::Concurrency(Count(8)));
    let all_terms =
        vec![team, terms("team/one", &[money(Window::Total, 3_000), at_once]), terms("team/two", &[])];
    let all = replicas(&url, &all_terms, 3).await;
    let (database, is_over) = (connect(&url).await, AtomicBool::new(false));
    let watch = async {
        let mut looks = 0;
        while !is_over.load(Ordering::SeqCst) {
            for (name, granted, _) in audit(&database, 4 * MAX).await {
                let max = if name.starts_with("team/one money") { 3_000 } else { 5_000 };
                assert!(name.ends_with("money total") || granted <= max, "{name}: {granted}");
            }
            looks += 1;
            sleep(Duration::from_millis(2)).await;
        }
        assert!(looks > 3);
    };
    let spent = AtomicU64::new(0);
    let work = async {
        let attempts = (0..90).map(async |task: usize| {
            let (replica, account) = (&all[task % 3], ["team/one", "team/two"][task / 3 % 2]);
            sleep(Duration::from_millis(task as u64)).await;
            let Ok(mut reservation) = replica.obtain(account, 150).await else { return };
            if task % 5 == 4 {
                return;
            }
            reservation.dispatch().await.unwrap();
            if task % 7 == 3 {
                let more = WorstCase { money: Money(30), thinking: Tokens(0) };
                drop(reservation.extend(more, None).await);
            }
            match task % 5 {
                0 | 1 => {
                    spent.fetch_add(40, Ordering::SeqCst);
                    let settling = reservation.settle(Money(40), Tokens(1), detail());
                    assert!(settling.journalled(PATIENCE).await.journalled);
                }
                2 => assert!(reservation.void().journalled(PATIENCE).await.journalled),
                // Dropped, as by a caller who hangs up before anything is metered: posted whole.
                _ => {
                    spent.fetch_add(reservation.held().money.0, Ordering::SeqCst);
                }
            }
        });
        join_all(attempts).await;
        is_over.store(true, Ordering::SeqCst);
    };
    tokio::join!(watch, work);
    for replica in all {
        assert_eq!(replica.ledger.open_reservations(), 0);
        replica.stop().await;
    }
    let spent = i64::try_from(spent.into_inner()).unwrap();
    assert_eq!(books(&database).await, (spent, 0));
    for (name, granted, held) in audit(&database, 4 * MAX).await {
        assert_eq!(held, 0, "{name}");
        assert!(!name.starts_with("team money") || granted == spent, "{name}: {granted} of {spent}");
        assert!(!name.contains("concurrency") || granted == 0, "{name}: {granted}");
    }
}

/// A replica that stops without a word, and wakes up when it was buried.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_sleeps_beyond_its_lease_is_buried_and_spends_nothing_on_waking() {
    let url = cluster().database();
    let all = mortals(&url, &key(&[money(Window::Total, 1_000)])).await;
    let (sleeper, other) = (&all[0], &all[1]);
    let settled = sleeper.dispatched(100).await;
    settled.settle(Money(70), Tokens(1), detail()).journalled(PATIENCE).await;
    let lost = sleeper.dispatched(200).await;
    let mut late = sleeper.obtain("key", 300).await.unwrap();
    let refused = other.obtain("key", 600).await.unwrap_err();
    assert!(matches!(refused, Refused::Shortfall(_)), "{refused}");
    sleeper.pause(true);
    let database = connect(&url).await;
    until("the sleeper is buried", async || books(&database).await == (270, 0)).await;
    let taken = other.obtain("key", 600).await.unwrap();
    let asleep = sleeper.obtain("key", 1).await.unwrap_err();
    assert_eq!(asleep, Refused::NoLease, "it knows by its own clock");
    assert!(late.dispatch().await.is_err(), "nothing is sent");
    sleeper.pause(false);
    // What comes too late changes nothing.
    drop(lost.settle(Money(1), Tokens(1), detail()));
    drop(late);
    until("it has a lease again", async || sleeper.obtain("key", 100).await.is_ok()).await;
    assert_eq!(books(&database).await, (270, 0));
    audit(&database, 1_000).await;
    drop(taken);
    until("all is free again", async || sleeper.obtain("key", 730).await.is_ok()).await;
}

/// The end of a replica by kill -9, as the others see it: nobody hands anything back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_replica_gives_everybody_back_what_it_did_not_use() {
    let url = cluster().database();
    let mut all = mortals(&url, &key(&[money(Window::Total, 1_000)])).await;
    let killed = all.pop().unwrap();
    let open = killed.dispatched(150).await;
    killed.dispatched(100).await.settle(Money(30), Tokens(0), detail()).journalled(PATIENCE).await;
    killed.pause(true);
    // A kill runs no destructors.
    std::mem::forget((open, killed));
    let other = &all[0];
    until("the rest is to be had", async || other.obtain("key", 820).await.is_ok()).await;
    let short = other.obtain("key", 821).await.unwrap_err();
    assert!(short.to_string().contains("leaves 0.00000082"), "{short}");
}

/// CR-09 for the bank: the database is away for a while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_database_nothing_is_sent_and_what_was_used_is_written_once_it_is_back() {
    let url = cluster().database();
    let all = replicas(&url, &key(&[money(Window::Total, 10_000)]), 1).await;
    let replica = &all[0];
    let (running, mut waiting) = (replica.dispatched(50).await, replica.obtain("key", 10).await.unwrap());
    cluster().cut(&url);
    let settling = running.settle(Money(20), Tokens(1), detail());
    let refused = waiting.dispatch().await.unwrap_err();
    assert!(matches!(refused, LedgerError::Journal(_) | LedgerError::Stalled), "{refused}");
    cluster().mend(&url);
    assert!(settling.journalled(PATIENCE).await.journalled);
    until("it goes on", async || waiting.dispatch().await.is_ok()).await;
    waiting.settle(Money(5), Tokens(0), detail()).journalled(PATIENCE).await;
    assert_eq!(books(&*connect(&url).await).await, (25, 0));
}

/// CR-09: connections die under load, at any moment of any transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_connections_cost_nobody_anything_twice() {
    let url = cluster().database();
    let all = replicas(&url, &key(&[money(Window::Total, 1 << 40)]), 2).await;
    let (spent, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let work = join_all((0..16).map(async |task: usize| {
        while !is_over.load(Ordering::SeqCst) {
            let Ok(mut reservation) = all[task % 2].obtain("key", 1 << 20).await else { continue };
            if reservation.dispatch().await.is_ok() {
                let settling = reservation.settle(Money(3), Tokens(0), detail());
                assert!(settling.journalled(PATIENCE).await.journalled);
                spent.fetch_add(3, Ordering::SeqCst);
            }
        }
    }));
    let kill = async {
        for _ in 0..8 {
            sleep(Duration::from_millis(150)).await;
            cluster().kill(&url);
        }
        is_over.store(true, Ordering::SeqCst);
    };
    tokio::join!(work, kill);
    let database = connect(&url).await;
    for replica in all {
        replica.stop().await;
    }
    let spent = i64::try_from(spent.into_inner()).unwrap();
    assert_eq!(books(&database).await, (spent, 0));
    assert_eq!(audit(&database, 1 << 40).await, [("key money total".to_owned(), spent, 0)]);
}

/// CR-11: a clock that is a day ahead or behind opens no window of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_are_those_of_the_databases_clock() {
    let url = cluster().database();
    let all = replicas(&url, &key(&[money(Window::Month, 100)]), 2).await;
    let day = Duration::from_secs(24 * 3600);
    let ahead = all[0].ledger.obtain(claim_at("key", 60, Timestamp::now() + day * 40)).await.unwrap();
    let behind = Timestamp(Timestamp::now().0 - 40 * 24 * 3600 * 1000);
    let refused = all[1].ledger.obtain(claim_at("key", 60, behind)).await.unwrap_err();
    assert!(matches!(refused, Refused::Shortfall(_)), "{refused}");
    assert_eq!(all[0].ledger.expire(all[0].ledger.now()), 0, "nothing expires early");
    assert!((all[0].ledger.now().0 - Timestamp::now().0).abs() < 5_000);
    drop(ahead);
}

/// LB-22: what one replica holds and does not use is handed back to another that needs it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_cent_can_be_spent_wherever_it_lies() {
    let url = cluster().database();
    let all = replicas(&url, &key(&[money(Window::Total, 100_000)]), 3).await;
    for replica in &all {
        // Each has a share beyond what it needed.
        drop(replica.obtain("key", 1).await.unwrap());
    }
    let database = connect(&url).await;
    let held = audit(&database, 100_000).await;
    assert!(held[0].2 > 900, "{held:?}");
    let whole = all[2].obtain("key", 100_000).await.unwrap();
    assert_eq!(audit(&database, 100_000).await[0].2, 100_000);
    let refused = all[0].obtain("key", 1).await.unwrap_err();
    assert!(matches!(refused, Refused::Shortfall(_)), "{refused}");
    drop(whole);
    all[0].obtain("key", 100_000).await.unwrap();
}

/// What a statement says is the whole truth once the others were asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_left_is_what_all_replicas_leave() {
    let url = cluster().database();
    let all = replicas(&url, &key(&[money(Window::Total, 100_000)]), 2).await;
    let open = all[0].dispatched(30_000).await;
    all[1].ledger.gather(&AccountId::new("key"), &About::default()).await;
    let left = |replica: &Replica| {
        let (account, now) = (AccountId::new("key"), replica.ledger.now());
        replica.ledger.statement(&account, &About::default(), now)[0].left.size()
    };
    assert_eq!(left(&all[1]), 70_000);
    open.settle(Money(10_000), Tokens(0), detail()).journalled(PATIENCE).await;
    until("it is handed back, and heard of", async || left(&all[1]) >= 89_000).await;
}

/// LB-07: every limit or none, and the refusal names the one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_of_models_and_users_are_shared_too_and_a_refusal_leaves_nothing_set_aside() {
    let url = cluster().database();
    let limits = [
        money(Window::Day, 1_000),
        money(Window::Day, 300).on(Scope::Model("m".into())),
        money(Window::Day, 200).on(Scope::EachUser),
    ];
    let all = replicas(&url, &key(&limits), 2).await;
    let of = |user: &str, nanos| {
        let about = About { user: Some(user.into()), ..claim("key", nanos).about };
        Claim { about, ..claim("key", nanos) }
    };
    let bob = all[0].ledger.obtain(of("bob", 150)).await.unwrap();
    let refused = all[1].ledger.obtain(of("bob", 100)).await.unwrap_err();
    assert!(refused.to_string().contains("key money day of user bob"), "{refused}");
    let alice = all[1].ledger.obtain(of("alice", 150)).await.unwrap();
    let refused = all[1].ledger.obtain(of("carol", 100)).await.unwrap_err();
    assert!(refused.to_string().contains("key money day of model m"), "{refused}");
    drop((bob, alice));
    all[1].ledger.obtain(of("bob", 200)).await.unwrap();
}

/// LB-08: two accounts in two orders, many times, from all sides.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_each_other() {
    let url = cluster().database();
    let limits = |max| [money(Window::Day, max), money(Window::Hour, max), money(Window::Total, max)];
    let all_terms = [terms("a", &limits(50_000)), terms("a/b", &limits(3_000)), terms("a/c", &limits(3_000))];
    let all = replicas(&url, &all_terms, 3).await;
    let began = Instant::now();
    let attempts = (0..24).map(async |task: usize| {
        for round in 0..12 {
            let account = ["a/b", "a/c"][(task + round) % 2];
            match all[task % 3].obtain(account, 100).await {
                Ok(reservation) => drop(reservation.void()),
                Err(refused) => assert!(matches!(refused, Refused::Shortfall(_)), "{refused}"),
            }
        }
    });
    join_all(attempts).await;
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
}

/// LB-12: a limit that is lowered below what is handed out refuses what is new, one that is raised admits it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_that_is_changed_holds_at_once() {
    let url = cluster().database();
    let all = replicas(&url, &key(&[money(Window::Total, 100_000)]), 2).await;
    let declare = |max| all.iter().for_each(|one| one.ledger.declare(&key(&[money(Window::Total, max)])));
    let open = [all[0].dispatched(400).await, all[1].dispatched(400).await];
    declare(500);
    for replica in &all {
        let refused = replica.obtain("key", 1).await.unwrap_err();
        assert!(matches!(refused, Refused::Shortfall(_)), "{refused}");
    }
    declare(1_000);
    drop(all[0].obtain("key", 200).await.unwrap());
    declare(500);
    for reservation in open {
        reservation.settle(Money(200), Tokens(0), detail()).journalled(PATIENCE).await;
    }
    drop(all[1].obtain("key", 100).await.unwrap());
    let last = all[1].obtain("key", 101).await;
    assert!(
        last.is_err(),
        "{:?} {:?}",
        audit(&*connect(&url).await, 100_000).await,
        all.iter().map(|one| one.ledger.totals()).collect::<Vec<_>>()
    );
}
