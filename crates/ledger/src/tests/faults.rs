//! Tests with a journal that fails, stalls, or goes away; and what a restart finds.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;

use crate::{
    AbandonPolicy, ClosedReservation, DatabaseFault, Journal, Ledger, LedgerError, LimitWarning,
    MemoryJournal, Observer, Reservation, ReservationRequest, Settings,
};
use stint_types::tasks::Tasks;
use stint_types::units::{Money, Tokens, Window};

use super::scripted::{JournalFault, ScriptedJournal};
use super::{balance, claim, detail, open, worst};

const PATIENCE: Duration = Duration::from_secs(60);

/// Settles through these faults, and finds the settlement written once.
async fn check_settled(faults: &[JournalFault]) {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::stuck());
    let ledger = open(&tasks, journal.clone(), 100).await;
    journal.open();
    let mut reservation = ledger.reserve(claim(60, 0)).unwrap();
    reservation.dispatch().await.unwrap();
    journal.fail(faults);
    let receipt = reservation.settle(Money(25), Tokens(0), detail()).wait_durable(PATIENCE).await;
    assert!(receipt.is_recorded());
    assert_eq!(balance(&ledger), (25, 0));
    assert_eq!(journal.balances().await.unwrap()[0].spent.money, Money(25));
    assert_eq!(ledger.stats().failures, u64::try_from(faults.len()).unwrap());
    assert!(!ledger.stats().stalled);
    ledger.reserve(claim(60, 0)).unwrap().dispatch().await.unwrap();
}

/// CR-12: a journal that panics included.
#[tokio::test(start_paused = true)]
async fn a_settlement_is_tried_until_it_is_journalled() {
    check_settled(&[JournalFault::Before; 7]).await;
    check_settled(&[JournalFault::After, JournalFault::Before, JournalFault::After]).await;
    check_settled(&[JournalFault::Panic]).await;
}

/// A file that another program locks: the commit waits, and new requests are refused with the reason before it fails.
#[tokio::test(start_paused = true)]
async fn a_commit_that_takes_too_long_is_an_outage_until_it_is_over() {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::stuck());
    let ledger = open(&tasks, journal.clone(), 100).await;
    let mut reservation = ledger.reserve(claim(60, 0)).unwrap();
    let waited = tokio::time::timeout(Settings::default().stall_max * 2, reservation.dispatch()).await;
    assert!(!matches!(waited, Ok(Ok(()))), "nothing is written");
    let stats = ledger.stats();
    assert!(stats.stalled && stats.failures == 0);
    assert_eq!(stats.outage.and_then(|outage| outage.fault), Some(DatabaseFault::Silent));
    journal.open();
    let is_over = async {
        while ledger.stats().outage.is_some() || ledger.stats().stalled {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, is_over).await.expect("it is over when the commit is");
}

/// Someone who watches and fails at it.
struct Clumsy;

impl Observer for Clumsy {
    fn committed(&self, _: usize, _: Duration) {
        panic!("a mistake")
    }

    fn warned(&self, _: &LimitWarning) {
        panic!("a mistake")
    }

    fn resolved(&self, _: &ClosedReservation) {
        panic!("a mistake")
    }
}

/// CR-12: also where the guard is dropped because of another panic.
#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_stops_neither_writer_nor_settlement() {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::failing(&[]));
    let terms = [super::terms("key", &[super::money(Window::Total, 100)])];
    let settings = Settings::default();
    let ledger =
        Ledger::open(&tasks, journal.clone(), Arc::new(Clumsy), settings, &terms, super::NOW).await.unwrap();
    let mut reservation = ledger.reserve(claim(90, 0)).unwrap();
    reservation.dispatch().await.unwrap();
    assert!(reservation.settle(Money(25), Tokens(0), detail()).wait_durable(PATIENCE).await.is_recorded());
    let mut reservation = ledger.reserve(claim(30, 0)).unwrap();
    reservation.dispatch().await.unwrap();
    let task = async move {
        let _reservation = reservation;
        panic!("another mistake")
    };
    assert!(AssertUnwindSafe(task).catch_unwind().await.is_err());
    assert_eq!(balance(&ledger), (55, 0));
    drop(ledger);
    assert!(tasks.drain(PATIENCE).await);
    assert_eq!(journal.balances().await.unwrap()[0].spent.money, Money(55));
}

/// A dispatch whose commit fails: the caller gets the error, and nothing stays reserved.
async fn check_dispatch(fault: JournalFault) {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::failing(&[fault]));
    let ledger = open(&tasks, journal.clone(), 100).await;
    let mut reservation = ledger.reserve(claim(60, 0)).unwrap();
    assert!(matches!(reservation.dispatch().await, Err(LedgerError::Journal(_))));
    assert!(reservation.void().wait_durable(PATIENCE).await.is_recorded());
    assert_eq!(balance(&ledger), (0, 0));
    assert_eq!(journal.unresolved().await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_dispatch_whose_commit_failed_is_told_and_leaves_nothing_open() {
    check_dispatch(JournalFault::Before).await;
    check_dispatch(JournalFault::After).await;
    check_dispatch(JournalFault::Panic).await;
}

#[tokio::test(start_paused = true)]
async fn nothing_new_is_dispatched_while_settlements_cannot_be_written() {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::failing(&[]));
    let ledger = open(&tasks, journal.clone(), 100).await;
    let mut reservation = ledger.reserve(claim(10, 0)).unwrap();
    reservation.dispatch().await.unwrap();
    journal.fail(&[JournalFault::Before; 3]);
    let settling = reservation.settle(Money(10), Tokens(0), detail());
    tokio::time::sleep(Duration::from_millis(5)).await;
    let mut refused = ledger.reserve(claim(10, 0)).unwrap();
    assert_eq!(refused.dispatch().await, Err(LedgerError::Stalled));
    assert!(settling.wait_durable(PATIENCE).await.is_recorded());
    refused.dispatch().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_hangs_refuses_new_work_and_lets_go_of_the_caller() {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::stuck());
    let ledger = open(&tasks, journal.clone(), 100).await;
    let mut waiting = ledger.reserve(claim(10, 0)).unwrap();
    assert_eq!(waiting.dispatch().await, Err(LedgerError::Stalled));
    let mut refused = ledger.reserve(claim(10, 0)).unwrap();
    let asked = tokio::time::Instant::now();
    assert_eq!(refused.dispatch().await, Err(LedgerError::Stalled));
    assert_eq!(asked.elapsed(), Duration::ZERO, "at once");
    let receipt = waiting.void().wait_durable(Duration::from_secs(1)).await;
    assert!(!receipt.is_recorded());
    journal.open();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(ledger.stats().pending, 0);
    assert_eq!(journal.unresolved().await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn the_queue_to_the_journal_is_bounded() {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::stuck());
    let settings = Settings { pending_max: 2, ..Settings::default() };
    let ledger = Ledger::open(
        &tasks,
        journal.clone(),
        Arc::new(()),
        settings,
        &[super::terms("key", &[])],
        super::NOW,
    )
    .await
    .unwrap();
    let mut reservations: Vec<_> = (0..3).map(|_| ledger.reserve(claim(1, 0)).unwrap()).collect();
    let dispatches = reservations.iter_mut().map(Reservation::dispatch);
    let answers = futures_util::future::join_all(dispatches);
    tokio::pin!(answers);
    assert!(futures_util::poll!(&mut answers).is_pending());
    journal.open();
    let refused = answers.await.into_iter().filter(|answer| *answer == Err(LedgerError::Stalled)).count();
    assert_eq!(refused, 1);
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_what_was_dispatched_and_writes_all_of_it() {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::failing(&[]));
    let ledger = open(&tasks, journal.clone(), 100).await;
    let mut reservation = ledger.reserve(claim(60, 0)).unwrap();
    reservation.dispatch().await.unwrap();
    tasks.stop();
    assert!(!tasks.drain(PATIENCE).await, "a request is still on its way");
    journal.fail(&[JournalFault::Before]);
    drop(reservation.settle(Money(25), Tokens(0), detail()));
    assert!(tasks.drain(PATIENCE).await);
    assert_eq!(journal.balances().await.unwrap()[0].settled, 1);
    let mut late = ledger.reserve(claim(1, 0)).unwrap();
    assert_eq!(late.dispatch().await, Err(LedgerError::Closed));
}

/// Someone who sums up what is posted.
#[derive(Default)]
pub(super) struct PostedSum(pub(super) AtomicU64);

impl Observer for PostedSum {
    fn resolved(&self, closed: &ClosedReservation) {
        self.0.fetch_add(closed.spent.money.0, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_watches_is_told_once_of_what_was_left_open_before() {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::failing(&[]));
    let ledger = open(&tasks, journal.clone(), 100).await;
    let mut reservation = ledger.reserve(claim(60, 0)).unwrap();
    reservation.dispatch().await.unwrap();
    std::mem::forget(reservation);
    for expected in [60, 0] {
        let (sum, terms) = (Arc::new(PostedSum::default()), [super::terms("key", &[])]);
        Ledger::open(&tasks, journal.clone(), sum.clone(), Settings::default(), &terms, super::NOW)
            .await
            .unwrap();
        assert_eq!(sum.0.load(Ordering::Relaxed), expected);
    }
}

/// CR-02, CR-03
#[tokio::test(start_paused = true)]
async fn after_a_crash_what_was_settled_is_there_and_what_was_not_is_posted_whole() {
    let (tasks, journal) = (Tasks::default(), Arc::new(MemoryJournal::default()));
    let ledger = open(&tasks, journal.clone(), 100).await;
    let mut settled = ledger.reserve(claim(60, 0)).unwrap();
    settled.dispatch().await.unwrap();
    assert!(settled.settle(Money(10), Tokens(0), detail()).wait_durable(PATIENCE).await.is_recorded());
    let mut running = ledger.reserve(claim(20, 0)).unwrap();
    running.dispatch().await.unwrap();
    running.extend(worst(5, 0), None).await.unwrap();
    // A crash runs no destructors.
    std::mem::forget((running, ledger.reserve(claim(40, 0)).unwrap()));

    let restarted = open(&tasks, journal.clone(), 100).await;
    assert_eq!(balance(&restarted), (35, 0));
    assert_eq!(journal.unresolved().await.unwrap(), []);
    assert!(restarted.reserve(claim(66, 0)).is_err());
    let again = open(&tasks, journal, 100).await;
    assert_eq!(balance(&again), (35, 0), "what was posted at one start is not posted at the next");
}

/// CR-03: where the upstream stops its bill with us, the last checkpoint is posted; before there is one, all of it: what
/// was dispatched is never let go of silently.
#[tokio::test(start_paused = true)]
async fn after_a_crash_what_was_noted_last_is_posted_of_what_stops_its_bill() {
    let (tasks, journal) = (Tasks::default(), Arc::new(MemoryJournal::default()));
    let ledger = open(&tasks, journal.clone(), 200).await;
    for noted in [Some(17), None] {
        let claim = ReservationRequest { if_abandoned: AbandonPolicy::PostMetered, ..claim(60, 0) };
        let mut running = ledger.reserve(claim).unwrap();
        running.dispatch().await.unwrap();
        for nanos in noted.into_iter().flat_map(|last| [3, last]) {
            running.meter(Money(nanos), Tokens(0));
        }
        std::mem::forget(running);
    }
    // What is committed later shows that all before it was.
    let mut last = ledger.reserve(claim(1, 0)).unwrap();
    last.dispatch().await.unwrap();
    assert!(last.void().wait_durable(PATIENCE).await.is_recorded());
    let restarted = open(&tasks, journal.clone(), 200).await;
    assert_eq!(balance(&restarted), (17 + 60, 0));
    assert_eq!(journal.unresolved().await.unwrap(), []);
}
