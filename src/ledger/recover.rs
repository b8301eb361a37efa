//! What the journal says when the books are opened.

use std::collections::BTreeSet;

use crate::tenant::Terms;
use crate::units::{Count, Timestamp, Window, Zone};

use super::rate::abandoned_charge;
use super::{Accounts, Amounts, Dispatched, Entry, How, Journal, JournalError, Resolved, SettlementDetail};

/// The windows that end some time.
const WINDOWS: [Window; 5] = [Window::Minute, Window::Hour, Window::Day, Window::Week, Window::Month];

/// Posts what was dispatched and never resolved, and sums up what was spent under these terms.
pub(super) async fn recover(
    journal: &dyn Journal,
    batch_max: usize,
    terms: &[Terms],
    now: Timestamp,
) -> Result<Accounts, JournalError> {
    let abandoned = journal.unresolved().await?;
    if !abandoned.is_empty() {
        tracing::warn!(count = abandoned.len(), "posting what was dispatched and never settled");
    }
    let entries: Vec<Entry> = abandoned.into_iter().map(|row| Entry::posted(row, now)).collect();
    for batch in entries.chunks(batch_max.max(1)) {
        journal.append(batch).await?;
    }
    spent(journal, terms, now).await
}

/// How accounts under these terms stand by what is in the journal, with these reservations open; for those who look and
/// reserve nothing.
pub async fn standing(
    journal: &dyn Journal,
    open: &[Dispatched],
    terms: &[Terms],
    now: Timestamp,
) -> Result<Accounts, JournalError> {
    let mut accounts = spent(journal, terms, now).await?;
    open.iter().for_each(|row| accounts.adopt(row, now));
    Ok(accounts)
}

async fn spent(journal: &dyn Journal, terms: &[Terms], now: Timestamp) -> Result<Accounts, JournalError> {
    let mut accounts = Accounts::default();
    accounts.declare(terms);
    accounts.recover(&journal.balances().await?, &[Window::Total], now);
    accounts.recover(&journal.spent_from(&starts(terms, now)).await?, &WINDOWS, now);
    Ok(accounts)
}

/// When the windows began that hold now, by everybody's clock, in order.
fn starts(terms: &[Terms], now: Timestamp) -> Vec<Timestamp> {
    let here = |zone: &Zone| WINDOWS.map(|window| window.start(now, zone));
    let starts = terms.iter().flat_map(|terms| here(&terms.zone)).chain(here(&Zone::UTC));
    starts.collect::<BTreeSet<_>>().into_iter().collect()
}

impl Entry {
    /// The end of a dispatched reservation that nobody came back for.
    pub fn posted(row: Dispatched, at: Timestamp) -> Entry {
        let spent = Amounts {
            requests: Count::ONE,
            ..abandoned_charge(&row, row.held, row.metered.map(|spent| (spent, row.metered_at)), at)
        };
        let detail = SettlementDetail::abandoned(&row);
        let overrun = Amounts { requests: Count::ZERO, ..spent }.saturating_sub(row.held);
        let Dispatched { id, account, about, admitted, .. } = row;
        let how = How::Expired;
        Entry::Resolved(Resolved { id, account, about, admitted, at, how, spent, overrun, detail })
    }
}
