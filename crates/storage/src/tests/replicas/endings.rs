//! However requests, replicas and connections end, the ledger stays correct.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::sleep;

use crate::tests::cluster::cluster;
use crate::tests::detail;
use crate::tests::postgres::connect;
use stint_ledger::{LedgerError, ReserveError};
use stint_types::catalog::WorstCase;
use stint_types::tenant::TenantLimit;
use stint_types::units::{Amount, Count, Money, Tokens, Window};

use super::{PATIENCE, Replica, audit, books, key, money, replicas, short_leased_replicas, terms, until};

/// A request that ends in one of all the ways there are.
async fn one_of_many(all: &[Replica], task: usize, spent: &AtomicU64) {
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
            assert!(settling.wait_durable(PATIENCE).await.is_recorded());
        }
        2 => assert!(reservation.void().wait_durable(PATIENCE).await.is_recorded()),
        // Dropped, as by a task that panicked before anything was metered: posted whole.
        _ => {
            spent.fetch_add(reservation.held().money.0, Ordering::SeqCst);
        }
    }
}

/// LB-23: at no moment is more handed out than there is.
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
        join_all((0..90).map(|task| one_of_many(&all, task, &spent))).await;
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

/// A replica that stops without a word, and wakes up when it was reclaimed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_sleeps_beyond_its_lease_is_reclaimed_and_spends_nothing_on_waking() {
    let url = cluster().database();
    let all = short_leased_replicas(&url, &key(&[money(Window::Total, 1_000)])).await;
    let (sleeper, other) = (&all[0], &all[1]);
    let settled = sleeper.dispatched(100).await;
    settled.settle(Money(70), Tokens(1), detail()).wait_durable(PATIENCE).await;
    let lost = sleeper.dispatched(200).await;
    let mut late = sleeper.obtain("key", 300).await.unwrap();
    let refused = other.obtain("key", 600).await.unwrap_err();
    assert!(matches!(refused, ReserveError::Shortfall(_)), "{refused}");
    sleeper.pause(true);
    let database = connect(&url).await;
    until("the sleeper is reclaimed", async || books(&database).await == (270, 0)).await;
    let taken = other.obtain("key", 600).await.unwrap();
    let asleep = sleeper.obtain("key", 1).await.unwrap_err();
    assert_eq!(asleep, ReserveError::NoLease, "it knows by its own clock");
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
    let mut all = short_leased_replicas(&url, &key(&[money(Window::Total, 1_000)])).await;
    let killed = all.pop().unwrap();
    let open = killed.dispatched(150).await;
    killed.dispatched(100).await.settle(Money(30), Tokens(0), detail()).wait_durable(PATIENCE).await;
    killed.pause(true);
    // A kill runs no destructors.
    std::mem::forget((open, killed));
    let other = &all[0];
    until("the rest is to be had", async || other.obtain("key", 820).await.is_ok()).await;
    let short = other.obtain("key", 821).await.unwrap_err();
    assert!(short.to_string().contains("has 0.00000082 USD left"), "{short}");
}

/// CR-09 for the coordinator: the database is away for a while.
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
    assert!(settling.wait_durable(PATIENCE).await.is_recorded());
    until("it goes on", async || waiting.dispatch().await.is_ok()).await;
    waiting.settle(Money(5), Tokens(0), detail()).wait_durable(PATIENCE).await;
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
                assert!(settling.wait_durable(PATIENCE).await.is_recorded());
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

/// CR-09: a replica that starts right after the database was away reclaims none of those that could not reach it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_starts_right_after_an_outage_buries_none_of_the_living() {
    const LEASE: Duration = Duration::from_secs(3);
    let (url, terms) = (cluster().database(), key(&[money(Window::Total, 1_000)]));
    let all = join_all((0..2).map(|_| Replica::start(&url, &terms, LEASE))).await;
    let open = [all[0].dispatched(300).await, all[1].dispatched(300).await];
    cluster().cut(&url);
    sleep(LEASE + LEASE / 5).await;
    // So that the newcomer is first.
    all.iter().for_each(|replica| replica.pause(true));
    cluster().mend(&url);
    let newcomer = Replica::start(&url, &terms, LEASE).await;
    all.iter().for_each(|replica| replica.pause(false));
    for settling in open.map(|open| open.settle(Money(10), Tokens(0), detail())) {
        assert!(settling.wait_durable(PATIENCE).await.is_recorded());
    }
    sleep(LEASE * 2).await;
    assert_eq!(books(&*connect(&url).await).await, (20, 0), "as they were settled");
    until("the rest is to be had", async || newcomer.obtain("key", 980).await.is_ok()).await;
}
