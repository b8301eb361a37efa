//! What the journal says when the books are opened.

use std::time::Duration;

use crate::tenant::Terms;
use crate::units::{Count, Timestamp, Window, Zone};

use super::open::abandoned_charge;
use super::{Accounts, Amounts, Dispatched, Entry, How, Journal, JournalError, Resolved, SettlementDetail};

/// Longer than any month of any time zone.
const MONTH_MAX: Duration = Duration::from_secs(33 * 24 * 3600);

/// The windows whose beginnings are quarters of an hour, wherever the account's clock is.
const LONG_WINDOWS: [Window; 4] = [Window::Hour, Window::Day, Window::Week, Window::Month];

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
    let mut accounts = Accounts::default();
    accounts.declare(terms);
    accounts.recover(&journal.balances().await?, &[Window::Total], now);
    accounts.recover(&journal.spent(before(now, MONTH_MAX)).await?, &LONG_WINDOWS, now);
    let minute = Window::Minute.start(now, &Zone::UTC);
    accounts.recover(&journal.spent(minute).await?, &[Window::Minute], now);
    Ok(accounts)
}

fn before(now: Timestamp, long: Duration) -> Timestamp {
    Timestamp(now.0.saturating_sub(i64::try_from(long.as_millis()).unwrap_or(i64::MAX)))
}

impl Entry {
    /// The end of a dispatched reservation that nobody came back for.
    pub fn posted(row: Dispatched, at: Timestamp) -> Entry {
        let spent =
            Amounts { requests: Count::ONE, ..abandoned_charge(row.if_abandoned, row.held, row.metered) };
        let overrun = Amounts { requests: Count::ZERO, ..spent }.saturating_sub(row.held);
        let Dispatched { id, account, about, admitted, .. } = row;
        let (how, detail) = (How::Expired, SettlementDetail::abandoned());
        Entry::Resolved(Resolved { id, account, about, admitted, at, how, spent, overrun, detail })
    }
}
