//! Rebuilds the accounts from the journal: when a ledger is opened, and for readers that reserve nothing.

use std::collections::BTreeSet;

use crate::accounts::{ClosedReservation, LedgerState};
use crate::commit::Observer;
use crate::journal::{Journal, JournalError};
use crate::rows::{DispatchEntry, JournalEntry};
use stint_types::tenant::AccountTerms;
use stint_types::units::{Timestamp, Window, Zone};

/// The windows that end.
const WINDOWS: [Window; 5] = [Window::Minute, Window::Hour, Window::Day, Window::Week, Window::Month];

/// Posts what was dispatched and never resolved, tells the observer of it, and sums up what was spent under these terms.
pub(crate) async fn recover(
    journal: &dyn Journal,
    observer: &dyn Observer,
    batch_max: usize,
    terms: &[AccountTerms],
    now: Timestamp,
) -> Result<LedgerState, JournalError> {
    let abandoned = journal.unresolved().await?;
    if !abandoned.is_empty() {
        tracing::warn!(count = abandoned.len(), "posting what was dispatched and never settled");
    }
    let entries: Vec<JournalEntry> =
        abandoned.into_iter().map(|row| JournalEntry::posted(row, now)).collect();
    for batch in entries.chunks(batch_max.max(1)) {
        journal.append(batch).await?;
        batch.iter().filter_map(ClosedReservation::of_posted).for_each(|one| observer.resolved(&one));
    }
    load_spend(journal, terms, now).await
}

/// How accounts under these terms stand by the journal, with these reservations open; for readers that reserve nothing.
pub async fn accounts_from_journal(
    journal: &dyn Journal,
    open: &[DispatchEntry],
    terms: &[AccountTerms],
    now: Timestamp,
) -> Result<LedgerState, JournalError> {
    let mut accounts = load_spend(journal, terms, now).await?;
    open.iter().for_each(|row| accounts.adopt(row, now));
    Ok(accounts)
}

async fn load_spend(
    journal: &dyn Journal,
    terms: &[AccountTerms],
    now: Timestamp,
) -> Result<LedgerState, JournalError> {
    let mut accounts = LedgerState::default();
    accounts.declare(terms);
    accounts.recover(&journal.balances().await?, &[Window::Total], now);
    accounts.recover(&journal.spend_between(&window_starts(terms, now)).await?, &WINDOWS, now);
    Ok(accounts)
}

/// When the windows that hold `now` began, in every account's time zone, in order.
fn window_starts(terms: &[AccountTerms], now: Timestamp) -> Vec<Timestamp> {
    let here = |zone: &Zone| WINDOWS.map(|window| window.start(now, zone));
    let starts = terms.iter().flat_map(|terms| here(&terms.zone)).chain(here(&Zone::UTC));
    starts.collect::<BTreeSet<_>>().into_iter().collect()
}
