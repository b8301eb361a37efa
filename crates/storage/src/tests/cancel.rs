//! CR-13: a caller that waits for the ledger or the keys may leave at any moment. Every poll is such a moment.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;

use crate::keys::SqlKeyStore;
use crate::{PostgresCoordinator, PostgresJournal, SqliteArchive};
use stint_ledger::conformance::{amounts, dispatched};
use stint_ledger::{
    AbandonPolicy, AccountId, Journal, JournalEntry, Ledger, QuotaCoordinator, RequestScope,
    ReservationRequest, Settings as LedgerSettings,
};
use stint_types::catalog::WorstCase;
use stint_types::tasks::Tasks;
use stint_types::tenant::{AccountTerms, KeyStore, KeyStoreChange, TenantLimit};
use stint_types::units::{Amount, Money, RequestId, Timestamp, Tokens, Window};

use super::cluster::cluster;
use super::postgres::connect;
use super::{Sqlite, detail, ends_within, open, settings};

const PATIENCE: Duration = Duration::from_secs(20);
/// What is reserved at first.
const HELD: u64 = 60;
/// What more.
const MORE: u64 = 20;
/// What is spent of it, where nobody leaves.
const SPENT: u64 = 25;

fn limited() -> [AccountTerms; 1] {
    let limits = vec![TenantLimit::new(Window::Total, Amount::Money(Money(1_000_000)))];
    [AccountTerms { limits, ..AccountTerms::unlimited(AccountId::new("key")) }]
}

fn worst(nanos: u64) -> WorstCase {
    WorstCase { money: Money(nanos), thinking: Tokens(1) }
}

/// One request's way through the ledger.
async fn life(ledger: &Ledger) {
    let now = ledger.now();
    let claim = ReservationRequest {
        account: AccountId::new("key"),
        id: RequestId::new(),
        about: RequestScope::default(),
        worst: worst(HELD),
        step: None,
        prices: None,
        if_abandoned: AbandonPolicy::PostWhole,
        rate: None,
        now,
        expires: now + Duration::from_secs(600),
    };
    let mut reservation = ledger.obtain(claim).await.unwrap();
    reservation.dispatch().await.unwrap();
    reservation.extend(worst(MORE), None).await.unwrap();
    reservation.meter(Money(1), Tokens(1));
    assert!(reservation.settle(Money(SPENT), Tokens(1), detail()).wait_durable(PATIENCE).await.is_recorded());
}

/// Lives that end at every poll, some of them: nothing stays reserved, each costs what it may, and the journal says the
/// same as the memory.
async fn check(ledger: Ledger, journal: Arc<dyn Journal>) {
    let mut ended = 0;
    for _ in 0..8 {
        let mut polls_max = 0;
        while !ends_within(life(&ledger).boxed(), polls_max).await {
            polls_max += 1;
            assert_eq!(ledger.open_reservations(), 0, "after {polls_max} polls");
        }
        assert!(polls_max >= 3, "there were moments to leave at");
        ended += 1;
    }
    let began = Instant::now();
    while ledger.stats().pending > 0 || ledger.stats().unresolved > 0 {
        assert!(began.elapsed() < PATIENCE, "{:?}", ledger.stats());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    life(&ledger).await;
    let [totals] = &ledger.totals()[..] else { panic!("one account") };
    assert_eq!(totals.reserved.money, Money::ZERO);
    assert!(totals.settled > ended, "{totals:?}");
    assert_eq!(journal.unresolved().await.unwrap(), []);
    let balances = journal.balances().await.unwrap();
    let written: u64 = balances.iter().map(|one| one.spent.money.0).sum();
    assert_eq!(written, totals.spent.money.0);
    // A caller that left after the dispatch is charged in full: what was reserved, with or without the extension.
    let rest = totals.spent.money.0 - totals.settled * SPENT;
    assert!((0..=rest / HELD).any(|plain| (rest - plain * HELD).is_multiple_of(HELD + MORE)), "{totals:?}");
}

#[tokio::test]
async fn requests_that_are_left_at_any_moment_leave_the_books_in_sqlite_exact() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    let (tasks, journal) = (Tasks::default(), Arc::new(open(&path).await));
    let settings = LedgerSettings::default();
    let ledger =
        Ledger::open(&tasks, journal.clone(), Arc::new(()), settings, &limited(), Timestamp::now()).await;
    check(ledger.unwrap(), journal).await;
    assert!(SqliteArchive::open(&path).await.unwrap().verify().await.unwrap().is_right());
    assert!(tasks.drain(PATIENCE).await);
}

#[tokio::test]
async fn requests_that_are_left_at_any_moment_leave_the_books_in_postgres_exact() {
    let url = cluster().database();
    let (tasks, database) = (Tasks::default(), connect(&url).await);
    let coordinator: Arc<dyn QuotaCoordinator> = Arc::new(PostgresCoordinator::new(database.clone()));
    let ledger =
        Ledger::share(&tasks, coordinator, Arc::new(()), LedgerSettings::default(), &limited()).await;
    check(ledger.unwrap(), Arc::new(PostgresJournal::new(database))).await;
    tasks.stop();
    assert!(tasks.drain(PATIENCE).await);
}

#[tokio::test]
async fn a_commit_in_postgres_that_is_broken_off_is_whole_or_not_there() {
    let journal = PostgresJournal::new(connect(&cluster().database()).await);
    for round in 1..=10 {
        let rows = [1, 2].map(|admitted| dispatched("a", admitted, amounts(5, 6)));
        let entries = rows.map(JournalEntry::Dispatched);
        let mut polls_max = 0;
        while !ends_within(journal.append(&entries), polls_max).await {
            polls_max += 1;
            let there = journal.unresolved().await.unwrap().len();
            assert!(there == 2 * round || there == 2 * (round - 1), "{there} in round {round}");
        }
        assert_eq!(journal.unresolved().await.unwrap().len(), 2 * round);
    }
}

/// Changes that are left at every poll: each is there with its version, or neither is.
async fn check_keys(store: &dyn KeyStore) {
    for round in 0..6 {
        let mut polls_max = 0;
        loop {
            let before = store.load().await.unwrap();
            let name = format!("r{round}/p{polls_max}");
            let changes = [KeyStoreChange::PutTerms(AccountTerms::unlimited(AccountId::new(name)))];
            let ended = ends_within(store.apply(before.version, &changes, &[]), polls_max).await;
            let after = store.load().await.unwrap();
            let (changed, more) = (after.version != before.version, after.terms.len() - before.terms.len());
            assert_eq!(usize::from(changed), more, "after {polls_max} polls");
            assert!(changed || !ended);
            if ended {
                break;
            }
            polls_max += 1;
        }
    }
}

#[tokio::test]
async fn a_change_of_keys_that_is_broken_off_is_whole_or_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = Sqlite::open(&settings(&folder.path().join("stint.db"))).await.unwrap();
    check_keys(&SqlKeyStore::new(Arc::new(file))).await;
    check_keys(&SqlKeyStore::new(connect(&cluster().database()).await)).await;
}
