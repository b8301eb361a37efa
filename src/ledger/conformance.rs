//! What every journal must do: one suite for all of them.

use crate::catalog::{Prices, WorstCase};
use crate::chat::ToolCounts;
use crate::units::{Count, EpisodeId, Money, Price, RequestId, Timestamp, Tokens};

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{
    AbandonPolicy, AccountId, AccountSpend, Amounts, DispatchEntry, EpisodeUsage, ExtensionEntry, GroupBy,
    GroupUsage, Journal, JournalEntry, JournalError, MemoryJournal, MeterEntry, ModelSpend, QUARTER_HOUR_MS,
    RequestScope, ResolutionEntry, ResolutionKind, Seal, SettlementDetail, SpendByModel, SpendRate,
    UsageGroup, UsageQuery,
};

/// A journal that seals what is there after every so many appends.
pub(crate) struct Sealed<J> {
    journal: J,
    every: usize,
    appends: AtomicUsize,
}

impl<J: Journal> Sealed<J> {
    pub(crate) fn every(every: usize, journal: J) -> Sealed<J> {
        Sealed { journal, every, appends: AtomicUsize::new(0) }
    }
}

impl<J: Journal> Journal for Sealed<J> {
    fn append<'a>(&'a self, entries: &'a [JournalEntry]) -> BoxFuture<'a, Result<(), JournalError>> {
        async move {
            let appended = self.journal.append(entries).await;
            if self.appends.fetch_add(1, Ordering::Relaxed).is_multiple_of(self.every) {
                while let Some(seal) = self.journal.seal(Timestamp(0)).await? {
                    assert_eq!(self.journal.last_seal().await?, Some(seal));
                }
            }
            appended
        }
        .boxed()
    }

    fn unresolved(&self) -> BoxFuture<'_, Result<Vec<DispatchEntry>, JournalError>> {
        self.journal.unresolved()
    }

    fn spend_since(&self, since: Timestamp) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        self.journal.spend_since(since)
    }

    fn spend_between<'a>(
        &'a self,
        moments: &'a [Timestamp],
    ) -> BoxFuture<'a, Result<Vec<AccountSpend>, JournalError>> {
        self.journal.spend_between(moments)
    }

    fn episode_usage<'a>(
        &'a self,
        account: &'a AccountId,
        episode: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<EpisodeUsage, JournalError>> {
        self.journal.episode_usage(account, episode)
    }

    fn balances(&self) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        self.journal.balances()
    }

    fn seal(&self, now: Timestamp) -> BoxFuture<'_, Result<Option<Seal>, JournalError>> {
        self.journal.seal(now)
    }

    fn last_seal(&self) -> BoxFuture<'_, Result<Option<Seal>, JournalError>> {
        self.journal.last_seal()
    }

    fn usage<'a>(&'a self, query: &'a UsageQuery) -> BoxFuture<'a, Result<Vec<GroupUsage>, JournalError>> {
        self.journal.usage(query)
    }
}

/// Whatever can be asked of it, the journal answers as a plain list of the same entries does.
pub(crate) async fn answers_as(journal: &dyn Journal, plain: &MemoryJournal, moments: &[Timestamp]) {
    assert_eq!(journal.balances().await.unwrap(), plain.balances().await.unwrap());
    let mut starts = moments.to_vec();
    starts.sort();
    assert_eq!(journal.spend_between(&starts).await.unwrap(), plain.spend_between(&starts).await.unwrap());
    for &from in moments {
        assert_eq!(
            journal.spend_since(from).await.unwrap(),
            plain.spend_since(from).await.unwrap(),
            "since {from:?}"
        );
        for (number, &to) in moments.iter().enumerate() {
            let by = GroupBy {
                day: number.is_multiple_of(2),
                key: number % 4 < 2,
                model: number.is_multiple_of(3),
            };
            let account = (number % 3 == 1).then(|| AccountId::new("org0"));
            let after =
                (number % 5 == 4).then(|| UsageGroup { key: "org0/team1".into(), ..UsageGroup::default() });
            let query = UsageQuery { account, from, to, by, after, limit: 2 + number };
            let (is, should) = (journal.usage(&query).await.unwrap(), plain.usage(&query).await.unwrap());
            assert_eq!(is, should, "{query:?}");
        }
    }
}

/// Runs the whole suite on an empty journal.
pub(crate) async fn conforms(journal: &dyn Journal) {
    an_empty_journal_has_nothing(journal).await;
    an_open_reservation_comes_back_as_it_was(journal).await;
    extensions_add_up_once_each(journal).await;
    the_first_resolution_stands(journal).await;
    a_batch_is_taken_whole_or_not_at_all(journal).await;
    sums_are_by_account_and_time_of_admission(journal).await;
    sums_tell_quarters_of_an_hour_apart(journal).await;
    sums_tell_models_users_and_tags_apart(journal).await;
    the_last_metering_counts(journal).await;
    a_step_comes_back_with_its_run_and_its_tool_calls(journal).await;
    what_other_models_took_is_booked_under_them(journal).await;
    a_large_batch_is_one_commit(journal).await;
}

pub(crate) fn amounts(money: u64, thinking: u64) -> Amounts {
    Amounts { money: Money(money), thinking: Tokens(thinking), ..Amounts::ZERO }
}

pub(crate) fn dispatched(account: &str, admitted: i64, held: Amounts) -> DispatchEntry {
    let price = |nanos| Price { per_million_tokens: Money(nanos) };
    DispatchEntry {
        id: RequestId::new(),
        account: AccountId::new(account),
        about: RequestScope { model: Some("reasoner".into()), ..RequestScope::default() },
        tools: ToolCounts { all: held.tool_calls, ..ToolCounts::default() },
        tools_cost: Money::ZERO,
        held: Amounts { requests: Count::ONE, ..held },
        prices: Some(Prices { input: price(150_000_000), output: price(600_000_000) }),
        if_abandoned: AbandonPolicy::PostWhole,
        rate: None,
        metered: None,
        metered_at: None,
        admitted: Timestamp(admitted),
        expires: Timestamp(admitted + 60_000),
    }
}

pub(crate) fn resolved(row: &DispatchEntry, how: ResolutionKind, spent: Amounts) -> ResolutionEntry {
    let detail = SettlementDetail {
        prompt: Tokens(40),
        overhead: Tokens(4),
        solution: Tokens(9),
        other: Tokens(1),
        tools: ToolCounts { all: spent.tool_calls, ..ToolCounts::default() },
        tools_cost: Money::ZERO,
        parts: SpendByModel::default(),
        outcome: "stop".into(),
    };
    let (id, account, about, admitted) = (row.id, row.account.clone(), row.about.clone(), row.admitted);
    let requests = if how == ResolutionKind::Voided { Count::ZERO } else { Count::ONE };
    let (at, overrun) = (Timestamp(admitted.0 + 1), spent.saturating_sub(row.held));
    ResolutionEntry {
        id,
        account,
        about,
        admitted,
        at,
        how,
        spent: Amounts { requests, ..spent },
        overrun,
        detail,
    }
}

async fn append(journal: &dyn Journal, entries: &[JournalEntry]) {
    journal.append(entries).await.unwrap();
}

async fn an_empty_journal_has_nothing(journal: &dyn Journal) {
    append(journal, &[]).await;
    assert_eq!(journal.unresolved().await.unwrap(), []);
    assert_eq!(journal.spend_since(Timestamp(0)).await.unwrap(), []);
    assert_eq!(journal.balances().await.unwrap(), []);
}

async fn an_open_reservation_comes_back_as_it_was(journal: &dyn Journal) {
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

async fn extensions_add_up_once_each(journal: &dyn Journal) {
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

async fn the_first_resolution_stands(journal: &dyn Journal) {
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

async fn a_batch_is_taken_whole_or_not_at_all(journal: &dyn Journal) {
    let (row, never) = (dispatched("whole", 1_000, amounts(1, 1)), dispatched("whole", 1_000, amounts(1, 1)));
    let dangling = JournalEntry::Resolved(resolved(&never, ResolutionKind::Settled, amounts(1, 1)));
    journal.append(&[JournalEntry::Dispatched(row), dangling]).await.unwrap_err();
    assert_eq!(journal.unresolved().await.unwrap(), []);
}

async fn sums_are_by_account_and_time_of_admission(journal: &dyn Journal) {
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

async fn sums_tell_quarters_of_an_hour_apart(journal: &dyn Journal) {
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

async fn sums_tell_models_users_and_tags_apart(journal: &dyn Journal) {
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

async fn the_last_metering_counts(journal: &dyn Journal) {
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

async fn a_step_comes_back_with_its_run_and_its_tool_calls(journal: &dyn Journal) {
    let run = |name: &str| -> EpisodeId { name.parse().unwrap() };
    let tools = |search, browse| {
        let mut tools = ToolCounts::default();
        tools.add(&"search".into(), Count(search));
        tools.add(&"br\"owse".into(), Count(browse));
        tools
    };
    let row = |name, calls: &ToolCounts| {
        let row = dispatched("runs", 1_000, Amounts { tool_calls: calls.all, ..amounts(50, 6) });
        let about = RequestScope { episode: Some(run(name)), ..row.about };
        DispatchEntry { about, tools: calls.clone(), tools_cost: Money(20), ..row }
    };
    let end = |row: &DispatchEntry, how, money, calls: &ToolCounts| {
        let mut ended = resolved(row, how, Amounts { tool_calls: calls.all, ..amounts(money, 1) });
        (ended.detail.tools, ended.detail.tools_cost) = (calls.clone(), Money(money.min(5)));
        JournalEntry::Resolved(ended)
    };
    let rows = ["one", "one", "one", "two"].map(|name| row(name, &tools(3, 4)));
    append(journal, &rows.clone().map(JournalEntry::Dispatched)).await;
    assert_eq!(journal.unresolved().await.unwrap(), rows);
    let none = ToolCounts::default();
    append(
        journal,
        &[
            end(&rows[0], ResolutionKind::Settled, 30, &tools(1, 0)),
            end(&rows[1], ResolutionKind::Voided, 0, &none),
        ],
    )
    .await;
    let used = async |name| journal.episode_usage(&AccountId::new("runs"), &run(name)).await.unwrap();
    let one = used("one").await;
    assert_eq!((one.cost, one.thinking, one.turns), (Money(30), Tokens(2), Count(1)));
    assert_eq!((one.tools.all, one.tools.of("search")), (Count(1), Count(1)));
    append(
        journal,
        &[
            end(&rows[2], ResolutionKind::Expired, 50, &tools(3, 4)),
            end(&rows[3], ResolutionKind::Settled, 1, &tools(0, 2)),
        ],
    )
    .await;
    let (one, two) = (used("one").await, used("two").await);
    assert_eq!((one.cost, one.turns, one.tools), (Money(80), Count(2), tools(4, 4)));
    assert_eq!((two.cost, two.tools.of("br\"owse"), two.tools.all), (Money(1), Count(2), Count(2)));
    assert_eq!(used("three").await, EpisodeUsage::default());
    let mut vectors = row("two", &none);
    vectors.about.beside_turns = true;
    append(journal, &[JournalEntry::Dispatched(vectors.clone())]).await;
    assert_eq!(journal.unresolved().await.unwrap(), [vectors.clone()]);
    append(journal, &[end(&vectors, ResolutionKind::Settled, 9, &none)]).await;
    assert_eq!((used("two").await.cost, used("two").await.turns), (Money(10), Count(1)), "no turn of it");
    let sums = balance(journal, "runs").await;
    assert_eq!(sums.len(), 1, "sums do not tell runs apart");
    assert_eq!((sums[0].spent.tool_calls, sums[0].about.episode.as_ref()), (Count(10), None));
}

async fn what_other_models_took_is_booked_under_them(journal: &dyn Journal) {
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

async fn a_large_batch_is_one_commit(journal: &dyn Journal) {
    let rows: Vec<DispatchEntry> = (0..3_000).map(|_| dispatched("large", 1, amounts(1, 1))).collect();
    append(journal, &rows.iter().cloned().map(JournalEntry::Dispatched).collect::<Vec<_>>()).await;
    assert_eq!(journal.unresolved().await.unwrap().len(), 3_000);
    let ends =
        rows.iter().map(|row| JournalEntry::Resolved(resolved(row, ResolutionKind::Settled, amounts(1, 1))));
    append(journal, &ends.collect::<Vec<_>>()).await;
    assert_eq!(journal.unresolved().await.unwrap(), []);
    assert_eq!(balance(journal, "large").await[0].settled, 3_000);
}

async fn balance(journal: &dyn Journal, account: &str) -> Vec<AccountSpend> {
    let balances = journal.balances().await.unwrap();
    balances.into_iter().filter(|spent| spent.account.as_str() == account).collect()
}
