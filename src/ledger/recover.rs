//! What the journal says when the books are opened.

use std::collections::BTreeSet;

use crate::tenant::AccountTerms;
use crate::units::{Count, Timestamp, Window, Zone};

use super::rate::abandoned_charge;
use super::{
    Amounts, DispatchEntry, Journal, JournalEntry, JournalError, LedgerState, ResolutionEntry,
    ResolutionKind, SettlementDetail,
};

/// The windows that end some time.
const WINDOWS: [Window; 5] = [Window::Minute, Window::Hour, Window::Day, Window::Week, Window::Month];

/// Posts what was dispatched and never resolved, and sums up what was spent under these terms.
pub(super) async fn recover(
    journal: &dyn Journal,
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
    }
    load_spend(journal, terms, now).await
}

/// How accounts under these terms stand by what is in the journal, with these reservations open; for those who look and
/// reserve nothing.
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

/// When the windows began that hold now, by everybody's clock, in order.
fn window_starts(terms: &[AccountTerms], now: Timestamp) -> Vec<Timestamp> {
    let here = |zone: &Zone| WINDOWS.map(|window| window.start(now, zone));
    let starts = terms.iter().flat_map(|terms| here(&terms.zone)).chain(here(&Zone::UTC));
    starts.collect::<BTreeSet<_>>().into_iter().collect()
}

impl JournalEntry {
    /// The end of a dispatched reservation that nobody came back for.
    pub fn posted(row: DispatchEntry, at: Timestamp) -> JournalEntry {
        let spent = Amounts {
            requests: Count::ONE,
            ..abandoned_charge(&row, row.held, row.metered.map(|spent| (spent, row.metered_at)), at)
        };
        let detail = SettlementDetail::abandoned(&row);
        let overrun = Amounts { requests: Count::ZERO, ..spent }.saturating_sub(row.held);
        let DispatchEntry { id, account, about, admitted, .. } = row;
        let how = ResolutionKind::Expired;
        JournalEntry::Resolved(ResolutionEntry {
            id,
            account,
            about,
            admitted,
            at,
            how,
            spent,
            overrun,
            detail,
        })
    }
}
