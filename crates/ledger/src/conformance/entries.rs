//! Conformance tests: what a journal does with the entries it gets.

use crate::{
    AbandonPolicy, AccountId, AccountSpend, Amounts, DispatchEntry, ExtensionEntry, Journal, JournalEntry,
    MeterEntry, RequestScope, ResolutionKind, SpendRate,
};
use stint_types::catalog::WorstCase;
use stint_types::units::{Count, Money, Timestamp, Tokens};

use super::fixtures::{amounts, append, balance, dispatched, resolved};

pub(super) async fn an_empty_journal_has_nothing(journal: &dyn Journal) {
    append(journal, &[]).await;
    assert_eq!(journal.unresolved().await.unwrap(), []);
    assert_eq!(journal.spend_since(Timestamp(0)).await.unwrap(), []);
    assert_eq!(journal.balances().await.unwrap(), []);
}

pub(super) async fn an_open_reservation_comes_back_as_it_was(journal: &dyn Journal) {
    let priced = dispatched("open", 1_000, amounts(7, 3));
    let free = DispatchEntry { prices: None, ..dispatched("open", 1_001, Amounts::ZERO) };
    let other = DispatchEntry { held: amounts(9, 9), ..priced.clone() };
    append(journal, &[JournalEntry::Dispatched(priced.clone())]).await;
    append(journal, &[JournalEntry::Dispatched(free.clone()), JournalEntry::Dispatched(other)]).await;
    assert_eq!(journal.unresolved().await.unwrap(), [priced.clone(), free.clone()]);
    let ends = [&priced, &free]
        .map(|row| JournalEntry::Resolved(resolved(row, ResolutionKind::Voided, Amounts::ZERO)));
    append(journal, &ends).await;
    assert_eq!(journal.unresolved().await.unwrap(), []);
}

pub(super) async fn extensions_add_up_once_each(journal: &dyn Journal) {
    let row = dispatched("extended", 1_000, amounts(10, 1));
    let step = |step, money| {
        JournalEntry::Extended(ExtensionEntry {
            id: row.id,
            step,
            more: amounts(money, 2),
            model: Some("other".into()),
        })
    };
    append(journal, &[step(1, 5), JournalEntry::Dispatched(row.clone())]).await;
    append(journal, &[step(1, 500), step(2, 6)]).await;
    let held = Amounts { requests: Count::ONE, ..amounts(21, 5) };
    let about = RequestScope { model: Some("other".into()), ..row.about.clone() };
    assert_eq!(journal.unresolved().await.unwrap(), [DispatchEntry { held, about, ..row.clone() }]);
    append(journal, &[JournalEntry::Resolved(resolved(&row, ResolutionKind::Expired, amounts(21, 5)))]).await;
}

pub(super) async fn the_first_resolution_stands(journal: &dyn Journal) {
    let row = dispatched("once", 1_000, amounts(10, 10));
    let end = |how, money| JournalEntry::Resolved(resolved(&row, how, amounts(money, 1)));
    append(journal, &[end(ResolutionKind::Settled, 12), JournalEntry::Dispatched(row.clone())]).await;
    append(
        journal,
        &[
            end(ResolutionKind::Settled, 99),
            end(ResolutionKind::Voided, 0),
            JournalEntry::Dispatched(row.clone()),
        ],
    )
    .await;
    let (account, about) = (AccountId::new("once"), row.about.clone());
    let spent = Amounts { requests: Count::ONE, ..amounts(12, 1) };
    let since = Timestamp(i64::MIN);
    let expected = AccountSpend { account, about, since, spent, overrun: Money(2), settled: 1 };
    assert_eq!(balance(journal, "once").await, [expected]);
}

pub(super) async fn a_batch_is_taken_whole_or_not_at_all(journal: &dyn Journal) {
    let (row, never) = (dispatched("whole", 1_000, amounts(1, 1)), dispatched("whole", 1_000, amounts(1, 1)));
    let dangling = JournalEntry::Resolved(resolved(&never, ResolutionKind::Settled, amounts(1, 1)));
    journal.append(&[JournalEntry::Dispatched(row), dangling]).await.unwrap_err();
    assert_eq!(journal.unresolved().await.unwrap(), []);
}

pub(super) async fn the_last_metering_counts(journal: &dyn Journal) {
    let second = WorstCase { money: Money(40), thinking: Tokens(3) };
    let rate = Some(SpendRate { prompt_cost: Money(5), per_second: second });
    let row = DispatchEntry {
        if_abandoned: AbandonPolicy::PostMetered,
        rate,
        ..dispatched("metered", 1_000, amounts(10, 1))
    };
    let at = |step: u32| Some(Timestamp(1_000 + i64::from(step)));
    let step = |step, money| {
        JournalEntry::Metered(MeterEntry { id: row.id, step, spent: amounts(money, 1), at: at(step) })
    };
    append(journal, &[step(2, 7), JournalEntry::Dispatched(row.clone()), step(1, 3)]).await;
    append(journal, &[step(2, 99)]).await;
    let metered = Some(amounts(7, 1));
    let metered_at = at(2);
    assert_eq!(journal.unresolved().await.unwrap(), [DispatchEntry { metered, metered_at, ..row.clone() }]);
    append(journal, &[JournalEntry::Resolved(resolved(&row, ResolutionKind::Expired, amounts(7, 1)))]).await;
}

pub(super) async fn a_large_batch_is_one_commit(journal: &dyn Journal) {
    let rows: Vec<DispatchEntry> = (0..3_000).map(|_| dispatched("large", 1, amounts(1, 1))).collect();
    append(journal, &rows.iter().cloned().map(JournalEntry::Dispatched).collect::<Vec<_>>()).await;
    assert_eq!(journal.unresolved().await.unwrap().len(), 3_000);
    let ends =
        rows.iter().map(|row| JournalEntry::Resolved(resolved(row, ResolutionKind::Settled, amounts(1, 1))));
    append(journal, &ends.collect::<Vec<_>>()).await;
    assert_eq!(journal.unresolved().await.unwrap(), []);
    assert_eq!(balance(journal, "large").await[0].settled, 3_000);
}
