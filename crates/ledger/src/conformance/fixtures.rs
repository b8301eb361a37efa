//! Test rows, and short functions to write and read them.

use crate::{
    AbandonPolicy, AccountId, AccountSpend, Amounts, DispatchEntry, Journal, JournalEntry, RequestScope,
    ResolutionEntry, ResolutionKind, SettlementDetail, SpendByModel,
};
use stint_types::catalog::{Prices, WorstCase};
use stint_types::chat::ToolCounts;
use stint_types::tenant::TenantLimit;
use stint_types::units::{Amount, Count, Money, Price, RequestId, Timestamp, Tokens, Window};

/// So much money and thought.
pub fn amounts(money: u64, thinking: u64) -> Amounts {
    Amounts { money: Money(money), thinking: Tokens(thinking), ..Amounts::ZERO }
}

/// A reservation of this account that was dispatched.
pub fn dispatched(account: &str, admitted: i64, held: Amounts) -> DispatchEntry {
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

/// How it ended, a millisecond later.
pub fn resolved(row: &DispatchEntry, how: ResolutionKind, spent: Amounts) -> ResolutionEntry {
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

pub(super) async fn append(journal: &dyn Journal, entries: &[JournalEntry]) {
    journal.append(entries).await.unwrap();
}

pub(super) async fn balance(journal: &dyn Journal, account: &str) -> Vec<AccountSpend> {
    let balances = journal.balances().await.unwrap();
    balances.into_iter().filter(|spent| spent.account.as_str() == account).collect()
}

/// 2026-11-20T20:36:40Z.
pub(crate) const NOW: Timestamp = Timestamp(1_795_207_000_000);

pub(crate) fn money(window: Window, nanos: u64) -> TenantLimit {
    TenantLimit::new(window, Amount::Money(Money(nanos)))
}

pub(crate) fn thinking(window: Window, tokens: u64) -> TenantLimit {
    TenantLimit::new(window, Amount::Thinking(Tokens(tokens)))
}

pub(crate) fn worst(nanos: u64, tokens: u64) -> WorstCase {
    WorstCase { money: Money(nanos), thinking: Tokens(tokens) }
}

pub(crate) fn detail() -> SettlementDetail {
    SettlementDetail { outcome: "stop".into(), ..SettlementDetail::default() }
}
