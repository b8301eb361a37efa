//! Tests of many concurrent requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Barrier;

use crate::{Journal, MemoryJournal, Reservation, ReserveError};
use stint_types::tasks::Tasks;
use stint_types::units::{Money, Tokens};

use super::scripted::ScriptedJournal;
use super::{balance, claim, detail, open};

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn money_for_ten_serves_ten_of_sixty_four_at_once() {
    let (tasks, journal) = (Tasks::default(), Arc::new(MemoryJournal::default()));
    let ledger = open(&tasks, journal.clone(), 1_000).await;
    let (served, decided) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(64)));
    let requests = Tasks::default();
    for _ in 0..64 {
        let (ledger, served, decided) = (ledger.clone(), served.clone(), decided.clone());
        requests.spawn(async move {
            let reserved = ledger.reserve(claim(100, 0));
            decided.wait().await;
            match reserved {
                Ok(mut reservation) => {
                    reservation.dispatch().await.unwrap();
                    let settling = reservation.settle(Money(100), Tokens(0), detail());
                    assert!(settling.wait_durable(PATIENCE).await.is_recorded());
                    served.fetch_add(1, Ordering::Relaxed);
                }
                Err(refused) => assert!(matches!(refused, ReserveError::Shortfall(_)), "{refused}"),
            }
        });
    }
    assert!(requests.drain(PATIENCE).await);
    assert_eq!(served.load(Ordering::Relaxed), 10);
    assert_eq!(balance(&ledger), (1_000, 0));
    assert_eq!(journal.balances().await.unwrap()[0].settled, 10);
    assert_eq!(journal.unresolved().await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn one_commit_takes_all_that_arrived_during_the_last() {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::stuck());
    let ledger = open(&tasks, journal.clone(), 1_000).await;
    let mut reservations: Vec<_> = (0..101).map(|_| ledger.reserve(claim(1, 0)).unwrap()).collect();
    let (first, others) = reservations.split_at_mut(1);
    let first = async {
        let dispatch = first[0].dispatch();
        let open = async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            journal.open();
        };
        tokio::join!(dispatch, open).0
    };
    let others = async {
        // The first commit runs by then.
        while journal.batches().is_empty() {
            tokio::task::yield_now().await;
        }
        futures_util::future::join_all(others.iter_mut().map(Reservation::dispatch)).await
    };
    let (first, others) = tokio::join!(first, others);
    assert!(first.is_ok() && others.iter().all(Result::is_ok));
    assert_eq!(journal.batches(), [1, 100]);
    assert_eq!((ledger.stats().commits, ledger.stats().entries), (2, 101));
}
