//! Extensions of a running request, while something ends: the request, the lease, the replica.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{sleep, timeout};

use crate::tests::cluster::cluster;
use crate::tests::detail;
use crate::tests::postgres::connect;
use stint_types::catalog::WorstCase;
use stint_types::units::{Money, Tokens, Window};

use super::{PATIENCE, Replica, audit, books, key, money, replicas, short_leased_replicas, until};

fn more(nanos: u64) -> WorstCase {
    WorstCase { money: Money(nanos), thinking: Tokens(0) }
}

/// Grows in steps, and settles while the last one is on its way: what was asked for last is not used.
async fn grows(replica: &Replica, task: u64, spent: &AtomicU64) {
    let Ok(mut reservation) = replica.obtain("key", 20).await else { return };
    reservation.dispatch().await.unwrap();
    let mut covered = 20;
    for step in 0..4 {
        if reservation.extend(more(20), None).await.is_err() {
            break;
        }
        covered += 20;
        sleep(Duration::from_millis((task + step) % 3)).await;
    }
    // The answer ends before that is decided.
    let _ = timeout(Duration::from_micros(task % 4 * 300), reservation.extend(more(40), None)).await;
    spent.fetch_add(covered, Ordering::SeqCst);
    assert_eq!(reservation.settle(Money(covered), Tokens(1), detail()).overrun(), Money::ZERO);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_settle_while_more_is_on_its_way_and_nothing_stays_set_aside() {
    const MAX: u64 = 4_000;
    let url = cluster().database();
    let all = replicas(&url, &key(&[money(Window::Total, MAX)]), 3).await;
    let (database, spent) = (connect(&url).await, AtomicU64::new(0));
    for round in 0..4 {
        let tasks = (0..9).map(|task| grows(&all[(task % 3) as usize], task + round, &spent));
        join_all(tasks).await;
        audit(&database, MAX).await;
    }
    for replica in all {
        until("all is resolved", async || replica.ledger.open_reservations() == 0).await;
        replica.stop().await;
    }
    let spent = i64::try_from(spent.into_inner()).unwrap();
    assert!(spent > 0 && books(&database).await == (spent, 0), "{spent}: {:?}", books(&database).await);
    for (name, granted, held) in audit(&database, MAX).await {
        assert_eq!((granted, held), (spent, 0), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_that_is_on_its_way_when_the_lease_is_lost_is_never_used_nor_charged() {
    let url = cluster().database();
    let all = short_leased_replicas(&url, &key(&[money(Window::Total, 1_000)])).await;
    let (sleeper, other) = (&all[0], &all[1]);
    let mut grows = sleeper.dispatched(200).await;
    sleeper.pause(true);
    // Nobody is asked: either the lease is too small, or its row waits.
    let in_flight = timeout(PATIENCE, grows.extend(more(300), None));
    let database = connect(&url).await;
    let reclaimed = until("the sleeping replica is reclaimed", async || books(&database).await == (200, 0));
    let (extended, ()) = tokio::join!(in_flight, reclaimed);
    assert!(!matches!(extended, Ok(Ok(()))), "{extended:?}");
    let taken = other.obtain("key", 800).await.unwrap();
    sleeper.pause(false);
    // What comes too late changes nothing.
    drop(grows.settle(Money(450), Tokens(1), detail()));
    until("it has a lease again", async || books(&database).await == (200, 0) && sleeper.ledger.is_shared())
        .await;
    audit(&database, 1_000).await;
    drop(taken);
    until("all is free again", async || sleeper.obtain("key", 800).await.is_ok()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_is_killed_while_more_is_on_its_way_is_charged_no_more_than_was_set_aside() {
    let url = cluster().database();
    let mut all = short_leased_replicas(&url, &key(&[money(Window::Total, 1_000)])).await;
    let killed = all.pop().unwrap();
    let mut grows = killed.dispatched(100).await;
    grows.extend(more(50), None).await.unwrap();
    killed.pause(true);
    let _ = timeout(Duration::from_millis(50), grows.extend(more(500), None)).await;
    // A kill runs no destructors.
    std::mem::forget((grows, killed));
    let (other, database) = (&all[0], connect(&url).await);
    until("its lease is reclaimed", async || books(&database).await.1 == 0).await;
    let (spent, _) = books(&database).await;
    assert!((150..=650).contains(&spent), "{spent}");
    let left = 1_000 - u64::try_from(spent).unwrap();
    until("the rest is to be had", async || other.obtain("key", left).await.is_ok()).await;
    audit(&database, 1_000).await;
}
