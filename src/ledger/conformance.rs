//! What every journal must do: one suite for all of them.

use crate::catalog::Prices;
use crate::units::{Money, Price, RequestId, Timestamp, Tokens};

use super::{
    AccountId, Amounts, Dispatched, Entry, Extended, How, Journal, Resolved, SettlementDetail, Total,
};

/// Runs the whole suite on an empty journal.
pub(crate) async fn conforms(journal: &dyn Journal) {
    an_empty_journal_has_nothing(journal).await;
    an_open_reservation_comes_back_as_it_was(journal).await;
    extensions_add_up_once_each(journal).await;
    the_first_resolution_stands(journal).await;
    a_batch_is_taken_whole_or_not_at_all(journal).await;
    sums_are_by_account_and_time_of_admission(journal).await;
    a_large_batch_is_one_commit(journal).await;
}

pub(crate) fn amounts(money: u64, thinking: u64) -> Amounts {
    Amounts { money: Money(money), thinking: Tokens(thinking) }
}

pub(crate) fn dispatched(account: &str, admitted: i64, held: Amounts) -> Dispatched {
    let price = |nanos| Price { per_million_tokens: Money(nanos) };
    Dispatched {
        id: RequestId::new(),
        account: AccountId::new(account),
        held,
        prices: Some(Prices { input: price(150_000_000), output: price(600_000_000) }),
        admitted: Timestamp(admitted),
        expires: Timestamp(admitted + 60_000),
    }
}

pub(crate) fn resolved(row: &Dispatched, how: How, spent: Amounts) -> Resolved {
    let detail = SettlementDetail {
        model: Some("reasoner".into()),
        prompt: Tokens(40),
        overhead: Tokens(4),
        solution: Tokens(9),
        other: Tokens(1),
        outcome: "stop".into(),
    };
    let (id, account, admitted) = (row.id, row.account.clone(), row.admitted);
    let (at, overrun) = (Timestamp(admitted.0 + 1), spent.saturating_sub(row.held));
    Resolved { id, account, admitted, at, how, spent, overrun, detail }
}

async fn append(journal: &dyn Journal, entries: &[Entry]) {
    journal.append(entries).await.unwrap();
}

async fn an_empty_journal_has_nothing(journal: &dyn Journal) {
    append(journal, &[]).await;
    assert_eq!(journal.unresolved().await.unwrap(), []);
    assert_eq!(journal.spent(Timestamp(i64::MIN)).await.unwrap(), []);
}

async fn an_open_reservation_comes_back_as_it_was(journal: &dyn Journal) {
    let priced = dispatched("open", 1_000, amounts(7, 3));
    let free = Dispatched { prices: None, ..dispatched("open", 1_001, Amounts::ZERO) };
    let other = Dispatched { held: amounts(9, 9), ..priced.clone() };
    append(journal, &[Entry::Dispatched(priced.clone())]).await;
    append(journal, &[Entry::Dispatched(free.clone()), Entry::Dispatched(other)]).await;
    assert_eq!(journal.unresolved().await.unwrap(), [priced.clone(), free.clone()]);
    let ends = [&priced, &free].map(|row| Entry::Resolved(resolved(row, How::Voided, Amounts::ZERO)));
    append(journal, &ends).await;
    assert_eq!(journal.unresolved().await.unwrap(), []);
}

async fn extensions_add_up_once_each(journal: &dyn Journal) {
    let row = dispatched("extended", 1_000, amounts(10, 1));
    let step = |step, money| Entry::Extended(Extended { id: row.id, step, more: amounts(money, 2) });
    append(journal, &[step(1, 5), Entry::Dispatched(row.clone())]).await;
    append(journal, &[step(1, 500), step(2, 6)]).await;
    assert_eq!(journal.unresolved().await.unwrap(), [Dispatched { held: amounts(21, 5), ..row.clone() }]);
    append(journal, &[Entry::Resolved(resolved(&row, How::Expired, amounts(21, 5)))]).await;
}

async fn the_first_resolution_stands(journal: &dyn Journal) {
    let row = dispatched("once", 1_000, amounts(10, 10));
    let end = |how, money| Entry::Resolved(resolved(&row, how, amounts(money, 1)));
    append(journal, &[end(How::Settled, 12), Entry::Dispatched(row.clone())]).await;
    append(journal, &[end(How::Settled, 99), end(How::Voided, 0), Entry::Dispatched(row.clone())]).await;
    let (account, spent) = (AccountId::new("once"), amounts(12, 1));
    let expected = Total { account, spent, overrun: Money(2), settled: 1 };
    assert_eq!(total(journal, "once", i64::MIN).await, Some(expected));
}

async fn a_batch_is_taken_whole_or_not_at_all(journal: &dyn Journal) {
    let (row, never) = (dispatched("whole", 1_000, amounts(1, 1)), dispatched("whole", 1_000, amounts(1, 1)));
    let dangling = Entry::Resolved(resolved(&never, How::Settled, amounts(1, 1)));
    journal.append(&[Entry::Dispatched(row), dangling]).await.unwrap_err();
    assert_eq!(journal.unresolved().await.unwrap(), []);
}

async fn sums_are_by_account_and_time_of_admission(journal: &dyn Journal) {
    let mut entries = Vec::new();
    for (account, admitted, money) in
        [("a", 5_000, 1), ("a", 6_000, 2), ("b", 6_000, 1 << 53), ("b", 6_001, 1)]
    {
        let row = dispatched(account, admitted, amounts(money, 0));
        entries.push(Entry::Resolved(resolved(&row, How::Settled, amounts(money, 10))));
        entries.push(Entry::Dispatched(row));
    }
    append(journal, &entries).await;
    let money = async |account, since| total(journal, account, since).await.map(|total| total.spent.money.0);
    assert_eq!(money("a", i64::MIN).await, Some(3));
    assert_eq!(money("a", 5_001).await, Some(2));
    assert_eq!(money("a", 6_000).await, Some(2), "the moment itself belongs to the window");
    assert_eq!(money("a", 6_001).await, None);
    assert_eq!(money("b", 0).await, Some((1 << 53) + 1));
}

async fn a_large_batch_is_one_commit(journal: &dyn Journal) {
    let rows: Vec<Dispatched> = (0..3_000).map(|_| dispatched("large", 1, amounts(1, 1))).collect();
    append(journal, &rows.iter().cloned().map(Entry::Dispatched).collect::<Vec<_>>()).await;
    assert_eq!(journal.unresolved().await.unwrap().len(), 3_000);
    let ends = rows.iter().map(|row| Entry::Resolved(resolved(row, How::Settled, amounts(1, 1))));
    append(journal, &ends.collect::<Vec<_>>()).await;
    assert_eq!(journal.unresolved().await.unwrap(), []);
    assert_eq!(total(journal, "large", 0).await.map(|total| total.settled), Some(3_000));
}

async fn total(journal: &dyn Journal, account: &str, since: i64) -> Option<Total> {
    let totals = journal.spent(Timestamp(since)).await.unwrap();
    totals.into_iter().find(|total| total.account.as_str() == account)
}
