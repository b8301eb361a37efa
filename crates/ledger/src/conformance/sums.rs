//! Conformance tests: the sums that a journal answers with.

use std::sync::Arc;

use crate::{
    AccountId, Amounts, DispatchEntry, GroupBy, GroupUsage, Journal, JournalEntry, ModelSpend,
    QUARTER_HOUR_MS, RequestScope, ResolutionKind, UsageQuery,
};
use stint_types::units::{Money, Timestamp, Tokens};

use super::fixtures::{amounts, append, balance, dispatched, resolved};

pub(super) async fn sums_are_by_account_and_time_of_admission(journal: &dyn Journal) {
    let mut entries = Vec::new();
    for (account, admitted, money) in
        [("a", 5_000, 1), ("a", 6_000, 2), ("b", 6_000, 1 << 53), ("b", 6_001, 1)]
    {
        let row = dispatched(account, admitted, amounts(money, 0));
        entries.push(JournalEntry::Resolved(resolved(&row, ResolutionKind::Settled, amounts(money, 10))));
        entries.push(JournalEntry::Dispatched(row));
    }
    append(journal, &entries).await;
    let money = async |account, since| {
        let spent = journal.spend_since(Timestamp(since)).await.unwrap();
        let mine = spent.into_iter().filter(|spent| spent.account.as_str() == account);
        mine.map(|spent| (spent.since.0, spent.spent.money.0)).collect::<Vec<_>>()
    };
    assert_eq!(money("a", 0).await, [(0, 3)]);
    assert_eq!(money("a", 5_001).await, [(5_001, 2)]);
    assert_eq!(money("a", 6_000).await, [(6_000, 2)], "the moment itself belongs to the window");
    assert_eq!(money("a", 6_001).await, []);
    assert_eq!(money("b", 0).await, [(0, (1 << 53) + 1)]);
    assert_eq!(balance(journal, "b").await[0].spent.money, Money((1 << 53) + 1));
}

pub(super) async fn sums_tell_quarters_of_an_hour_apart(journal: &dyn Journal) {
    let mut entries = Vec::new();
    for (admitted, how) in [
        (0, ResolutionKind::Settled),
        (QUARTER_HOUR_MS - 1, ResolutionKind::Expired),
        (QUARTER_HOUR_MS, ResolutionKind::Settled),
        (QUARTER_HOUR_MS, ResolutionKind::Voided),
    ] {
        let row = dispatched("quarters", 10 * QUARTER_HOUR_MS + admitted, amounts(5, 0));
        let spent = if how == ResolutionKind::Voided { Amounts::ZERO } else { amounts(5, 0) };
        entries.push(JournalEntry::Resolved(resolved(&row, how, spent)));
        entries.push(JournalEntry::Dispatched(row));
    }
    append(journal, &entries).await;
    let spent = journal.spend_since(Timestamp(0)).await.unwrap();
    let mine = spent.into_iter().filter(|spent| spent.account.as_str() == "quarters");
    let sums: Vec<_> = mine
        .map(|one| (one.since.0 / QUARTER_HOUR_MS, one.spent.money.0, one.spent.requests.0, one.settled))
        .collect();
    assert_eq!(sums, [(10, 10, 2, 1), (11, 5, 1, 1)]);
}

pub(super) async fn sums_tell_models_users_and_tags_apart(journal: &dyn Journal) {
    let about = |user: Option<&str>, tag: Option<&str>| RequestScope {
        model: Some("m".into()),
        user: user.map(Into::into),
        tag: tag.map(Into::into),
        ..RequestScope::default()
    };
    let kinds =
        [about(None, None), about(Some(""), None), about(Some("u"), None), about(Some("u"), Some("t"))];
    let mut entries = Vec::new();
    for about in kinds.iter().chain(&kinds[2..]) {
        let row = DispatchEntry { about: about.clone(), ..dispatched("about", 1_000, amounts(5, 0)) };
        entries.push(JournalEntry::Resolved(resolved(&row, ResolutionKind::Settled, amounts(5, 0))));
        entries.push(JournalEntry::Dispatched(row));
    }
    append(journal, &entries).await;
    let sums: Vec<_> =
        balance(journal, "about").await.into_iter().map(|one| (one.about, one.settled)).collect();
    assert_eq!(sums, kinds.into_iter().zip([1, 1, 2, 2]).collect::<Vec<_>>());
}

pub(super) async fn what_other_models_took_is_booked_under_them(journal: &dyn Journal) {
    let part =
        |money, prompt| ModelSpend { money: Money(money), prompt: Tokens(prompt), ..ModelSpend::default() };
    let row = |day: i64| dispatched("parts", day * 96 * QUARTER_HOUR_MS + 1, amounts(100, 6));
    let end = |row: &DispatchEntry, money, of: &[(&str, ModelSpend)]| {
        let mut end = resolved(row, ResolutionKind::Settled, amounts(money, 5));
        of.iter().for_each(|(model, part)| end.detail.parts.add(&Arc::from(*model), *part));
        JournalEntry::Resolved(end)
    };
    let rows = [row(1), row(1), row(2), row(3)];
    append(journal, &rows.clone().map(JournalEntry::Dispatched)).await;
    let parts = [("judge", part(30, 7)), ("draft", part(4, 1))];
    // Of the first there are two ends in one batch: the first of them stands, and its parts.
    append(journal, &[end(&rows[0], 90, &parts), end(&rows[0], 80, &[("late", part(50, 1))])]).await;
    append(journal, &[end(&rows[1], 10, &[]), end(&rows[2], 20, &parts[1..])]).await;
    append(
        journal,
        &[end(&rows[3], 5, &[("judge", part(5, 40))]), end(&rows[2], 99, &[("late", part(9, 9))])],
    )
    .await;
    let used = async |by: GroupBy, from: i64, to: i64| -> Vec<_> {
        let (account, day) = (Some(AccountId::new("parts")), 96 * QUARTER_HOUR_MS);
        let (from, to) = (Timestamp(from * day), Timestamp(to * day));
        let query = UsageQuery { account, from, to, by, after: None, limit: 100 };
        let used = journal.usage(&query).await.unwrap().into_iter();
        let line = |GroupUsage { group, sums }: GroupUsage| {
            (group.day.0 / day, group.model.to_string(), sums.spent.money.0, sums.prompt.0, sums.settled)
        };
        used.map(line).collect()
    };
    let (none, by_model) = (GroupBy::default(), GroupBy { model: true, ..GroupBy::default() });
    let line = |day, model: &str, money, prompt, settled| (day, model.to_owned(), money, prompt, settled);
    assert_eq!(used(none, 0, 9).await, [line(0, "", 125, 160, 4)]);
    let all = [line(0, "draft", 8, 2, 0), line(0, "judge", 35, 47, 0), line(0, "reasoner", 82, 111, 4)];
    assert_eq!(used(by_model, 0, 9).await, all);
    assert_eq!(used(by_model, 3, 4).await, [line(0, "judge", 5, 40, 0), line(0, "reasoner", 0, 0, 1)]);
    let by_day = GroupBy { day: true, ..by_model };
    assert_eq!(used(by_day, 2, 3).await, [line(2, "draft", 4, 1, 0), line(2, "reasoner", 16, 39, 1)]);
    assert_eq!(used(by_day, 0, 9).await.len(), 7);
    // Limits count whole requests.
    let balances = balance(journal, "parts").await;
    let whole: Vec<_> = balances.iter().map(|one| (one.about.model.as_deref(), one.spent.money.0)).collect();
    assert_eq!(whole, [(Some("reasoner"), 125)]);
}
