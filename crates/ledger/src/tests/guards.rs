//! However a reservation ends, it is resolved exactly once.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, poll};

use crate::{Journal, Ledger, LedgerError, Reservation, ReserveError, SettlementReceipt, SettlementStatus};
use stint_types::tasks::Tasks;
use stint_types::units::{Money, Tokens};

use super::scripted::ScriptedJournal;
use super::{NOW, balance, claim, detail, open, worst};

const PATIENCE: Duration = Duration::from_secs(60);

async fn dispatched(ledger: &Ledger, nanos: u64) -> Reservation {
    let mut reservation = ledger.reserve(claim(nanos, 0)).unwrap();
    reservation.dispatch().await.unwrap();
    reservation
}

/// What the memory says must be what the journal says, and nothing may be open.
async fn check(tasks: &Tasks, journal: &Arc<ScriptedJournal>, ledger: Ledger, spent: u64) {
    assert_eq!(balance(&ledger), (spent, 0));
    assert_eq!(ledger.open_reservations(), 0);
    drop(ledger);
    assert!(tasks.drain(PATIENCE).await, "the writer ends when nothing can come any more");
    assert_eq!(journal.unresolved().await.unwrap(), []);
    let written = journal.balances().await.unwrap();
    assert_eq!(written.iter().map(|total| total.spent.money.0).sum::<u64>(), spent);
}

#[tokio::test(start_paused = true)]
async fn a_settled_reservation_costs_what_was_used() {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::failing(&[]));
    let ledger = open(&tasks, journal.clone(), 100).await;
    let reservation = dispatched(&ledger, 80).await;
    let receipt = reservation.settle(Money(30), Tokens(5), detail()).wait_durable(PATIENCE).await;
    assert_eq!(receipt, SettlementReceipt { overrun: Money::ZERO, status: SettlementStatus::Recorded });
    check(&tasks, &journal, ledger, 30).await;
}

/// LB-03: also in the journal.
#[tokio::test(start_paused = true)]
async fn a_bill_beyond_the_reservation_is_posted_whole() {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::failing(&[]));
    let ledger = open(&tasks, journal.clone(), 100).await;
    let settling = dispatched(&ledger, 80).await.settle(Money(120), Tokens(0), detail());
    assert_eq!(settling.overrun(), Money(40));
    assert_eq!(ledger.totals()[0].overrun, Money(40));
    check(&tasks, &journal, ledger, 120).await;
}

/// CR-02: what is reserved in memory and never dispatched is in no book.
#[tokio::test(start_paused = true)]
async fn what_was_never_dispatched_leaves_no_trace() {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::failing(&[]));
    let ledger = open(&tasks, journal.clone(), 100).await;
    drop(ledger.reserve(claim(100, 0)).unwrap());
    assert!(ledger.reserve(claim(100, 0)).unwrap().void().wait_durable(PATIENCE).await.is_recorded());
    assert!(journal.batches().is_empty());
    check(&tasks, &journal, ledger, 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_dispatched_reservation_that_is_dropped_is_posted_whole() {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::failing(&[]));
    let ledger = open(&tasks, journal.clone(), 100).await;
    let mut reservation = dispatched(&ledger, 60).await;
    reservation.extend(worst(20, 0), None).await.unwrap();
    drop(reservation);
    check(&tasks, &journal, ledger, 80).await;
}

#[tokio::test(start_paused = true)]
async fn a_dispatched_reservation_whose_call_was_never_sent_is_voided() {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::failing(&[]));
    let ledger = open(&tasks, journal.clone(), 100).await;
    assert!(dispatched(&ledger, 60).await.void().wait_durable(PATIENCE).await.is_recorded());
    check(&tasks, &journal, ledger, 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_leaves_while_the_dispatch_commits_pays_nothing() {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::stuck());
    let ledger = open(&tasks, journal.clone(), 100).await;
    let mut reservation = ledger.reserve(claim(60, 0)).unwrap();
    let mut dispatch = reservation.dispatch().boxed();
    assert!(poll!(&mut dispatch).is_pending());
    tokio::task::yield_now().await;
    assert!(poll!(&mut dispatch).is_pending());
    drop(dispatch);
    drop(reservation);
    journal.open();
    check(&tasks, &journal, ledger, 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_dispatch_that_was_broken_off_may_be_tried_again() {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::stuck());
    let ledger = open(&tasks, journal.clone(), 100).await;
    let mut reservation = ledger.reserve(claim(60, 0)).unwrap();
    assert!(reservation.dispatch().now_or_never().is_none());
    let id = reservation.id();
    assert_eq!(reservation.extend(worst(1, 0), None).await, Err(LedgerError::NotDispatched(id)));
    journal.open();
    reservation.dispatch().await.unwrap();
    drop(reservation.settle(Money(10), Tokens(0), detail()));
    check(&tasks, &journal, ledger, 10).await;
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_leaves_while_an_extension_commits_is_charged_once() {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::failing(&[]));
    let ledger = open(&tasks, journal.clone(), 100).await;
    let mut reservation = dispatched(&ledger, 60).await;
    journal.close();
    assert!(reservation.extend(worst(20, 0), None).now_or_never().is_none());
    drop(reservation);
    journal.open();
    check(&tasks, &journal, ledger, 80).await;
}

#[tokio::test(start_paused = true)]
async fn an_extension_that_does_not_fit_is_refused_and_the_reservation_stands() {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::failing(&[]));
    let ledger = open(&tasks, journal.clone(), 100).await;
    let mut reservation = dispatched(&ledger, 60).await;
    let refused = reservation.extend(worst(41, 0), None).await.unwrap_err();
    assert!(matches!(refused, LedgerError::Refused(ReserveError::Shortfall(_))));
    assert_eq!(balance(&ledger), (0, 60));
    reservation.extend(worst(40, 0), None).await.unwrap();
    drop(reservation.settle(Money(100), Tokens(0), detail()));
    check(&tasks, &journal, ledger, 100).await;
}

/// LB-05: the first result stands, and the receipt says that this is not the one.
#[tokio::test(start_paused = true)]
async fn settling_what_has_expired_changes_nothing() {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::failing(&[]));
    let ledger = open(&tasks, journal.clone(), 100).await;
    let reservation = dispatched(&ledger, 60).await;
    assert_eq!(ledger.expire(NOW), 0);
    assert_eq!(ledger.expire(NOW + PATIENCE), 1);
    let receipt = reservation.settle(Money(90), Tokens(0), detail()).wait_durable(PATIENCE).await;
    assert_eq!(receipt, SettlementReceipt { overrun: Money::ZERO, status: SettlementStatus::Superseded });
    assert_eq!(journal.unresolved().await.unwrap(), [], "the receipt speaks of the first result");
    check(&tasks, &journal, ledger, 60).await;
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_was_leaked_is_resolved_by_its_expiry() {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::failing(&[]));
    let ledger = open(&tasks, journal.clone(), 100).await;
    std::mem::forget(dispatched(&ledger, 60).await);
    std::mem::forget(ledger.reserve(claim(40, 0)).unwrap());
    assert_eq!(ledger.expire(NOW + PATIENCE), 2);
    assert_eq!(balance(&ledger), (60, 0));
    tasks.stop();
    assert!(tasks.drain(PATIENCE).await);
    assert_eq!(journal.unresolved().await.unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn an_expired_reservation_sends_nothing() {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::stuck());
    let ledger = open(&tasks, journal.clone(), 100).await;
    let mut reservation = ledger.reserve(claim(60, 0)).unwrap();
    let id = reservation.id();
    let mut dispatch = reservation.dispatch().boxed();
    assert!(poll!(&mut dispatch).is_pending());
    ledger.expire(NOW + PATIENCE);
    journal.open();
    assert_eq!(dispatch.await, Err(ReserveError::Expired(id).into()));
    drop(reservation);
    check(&tasks, &journal, ledger, 0).await;
}
