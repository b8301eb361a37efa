//! Guard, queue and group commit under a scheduler that tries many interleavings (random, and a few preemptions at
//! the worst moments: Burckhardt et al. 2010).
//!
//! `cargo test --package stint-ledger --lib --features shuttle shuttle`

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use shuttle::rand::{Rng, thread_rng};
use tokio::runtime::Runtime;

use crate::{
    AccountSpend, DispatchEntry, EpisodeUsage, Journal, JournalEntry, JournalError, Ledger, MemoryJournal,
    Reservation, ReserveError,
};
use stint_types::tasks::Tasks;
use stint_types::units::{Money, Timestamp, Tokens};

use super::{balance, claim, detail, open};

/// Interleavings of each test and each scheduler.
const TIMES: usize = 400;

/// Gives deadlines a clock; nothing runs on it.
static CLOCK: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap());

/// Lets others run in the middle of each commit.
struct Yielding(MemoryJournal);

impl Journal for Yielding {
    fn append<'a>(&'a self, entries: &'a [JournalEntry]) -> BoxFuture<'a, Result<(), JournalError>> {
        async move {
            shuttle::future::yield_now().await;
            self.0.append(entries).await?;
            shuttle::future::yield_now().await;
            Ok(())
        }
        .boxed()
    }

    fn unresolved(&self) -> BoxFuture<'_, Result<Vec<DispatchEntry>, JournalError>> {
        self.0.unresolved()
    }

    fn spend_since(&self, since: Timestamp) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        self.0.spend_since(since)
    }

    fn episode_usage<'a>(
        &'a self,
        account: &'a stint_types::units::AccountId,
        episode: &'a stint_types::units::EpisodeId,
    ) -> BoxFuture<'a, Result<EpisodeUsage, JournalError>> {
        self.0.episode_usage(account, episode)
    }

    fn balances(&self) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        self.0.balances()
    }
}

fn check<F: Future<Output = ()> + Send + 'static>(test: impl Fn() -> F + Send + Sync + Clone + 'static) {
    let run = move || {
        let _clock = CLOCK.enter();
        shuttle::future::block_on(test());
    };
    shuttle::check_random(run.clone(), TIMES);
    shuttle::check_pct(run, TIMES, 3);
}

/// Polls a future a few times and then lets go of it; returns whether it ended before.
async fn abandon<T>(work: impl Future<Output = T>, polls: usize) -> Option<T> {
    let (mut work, mut left) = (pin!(work), polls);
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        work.as_mut().poll(context).map(Some)
    })
    .await
}

/// One of the ways in which a request goes; what it was charged, if that is known.
async fn request(ledger: &Ledger) -> Option<u64> {
    let mut reservation = match ledger.reserve(claim(40, 0)) {
        Ok(reservation) => reservation,
        Err(ReserveError::Shortfall(_)) => return Some(0),
        Err(other) => panic!("{other}"),
    };
    match thread_rng().gen_range(0..6) {
        0 => {
            reservation.void();
            Some(0)
        }
        // Dropped while its dispatch is on the way, before it or after it.
        1 => abandon(reservation.dispatch(), thread_rng().gen_range(0..3)).await.map(|_| 40),
        2 => dispatched(reservation, async |_| 40).await,
        _ => {
            dispatched(reservation, async |reservation| {
                let settling = reservation.settle(Money(30), Tokens(0), detail());
                assert!(settling.wait_durable(Duration::from_secs(3600)).await.is_recorded());
                30
            })
            .await
        }
    }
}

async fn dispatched(mut reservation: Reservation, end: impl AsyncFnOnce(Reservation) -> u64) -> Option<u64> {
    reservation.dispatch().await.unwrap();
    Some(end(reservation).await)
}

#[test]
fn in_every_order_money_is_neither_lost_nor_left_behind() {
    check(|| async {
        let (tasks, journal) = (Tasks::default(), Arc::new(Yielding(MemoryJournal::default())));
        let ledger = open(&tasks, journal.clone(), 100).await;
        let callers: Vec<_> = (0..4)
            .map(|_| {
                let ledger = ledger.clone();
                shuttle::future::spawn(async move {
                    let charged = request(&ledger).await;
                    let (spent, reserved) = balance(&ledger);
                    assert!(spent + reserved <= 100, "{spent} spent and {reserved} reserved of 100");
                    charged
                })
            })
            .collect();
        let mut known = Some(0);
        for caller in callers {
            known = known.zip(caller.await.unwrap()).map(|(sum, charged)| sum + charged);
        }
        assert_eq!((balance(&ledger).1, ledger.open_reservations()), (0, 0));
        let spent = balance(&ledger).0;
        assert!(known.is_none_or(|known| known == spent), "{known:?} charged, {spent} spent");
        // The writer ends when nothing can come any more; by then everything is written.
        tasks.stop();
        while tasks.running() > 0 {
            shuttle::future::yield_now().await;
        }
        assert_eq!(journal.unresolved().await.unwrap(), []);
        let written = journal.balances().await.unwrap().iter().map(|one| one.spent.money.0).sum::<u64>();
        assert_eq!(written, spent);
    });
}

#[test]
fn in_every_order_shutdown_waits_for_what_was_dispatched() {
    check(|| async {
        let (tasks, journal) = (Tasks::default(), Arc::new(Yielding(MemoryJournal::default())));
        let ledger = open(&tasks, journal.clone(), 100).await;
        let mut reservation = ledger.reserve(claim(40, 0)).unwrap();
        reservation.dispatch().await.unwrap();
        let stopper = tasks.clone();
        let stopped = shuttle::future::spawn(async move { stopper.stop() });
        let settled = shuttle::future::spawn(async move {
            let settling = reservation.settle(Money(30), Tokens(0), detail());
            assert!(settling.wait_durable(Duration::from_secs(3600)).await.is_recorded());
        });
        settled.await.unwrap();
        stopped.await.unwrap();
        assert_eq!(journal.balances().await.unwrap()[0].spent.money, Money(30));
    });
}
