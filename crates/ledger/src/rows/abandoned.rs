//! Resolves a dispatched reservation that nobody settled: charges what can have been used of it by then.

use std::time::Duration;

use stint_types::units::{Count, Timestamp};

use super::abandon_policy::AbandonPolicy;
use super::amounts::Amounts;
use super::entry::{DispatchEntry, JournalEntry, ResolutionEntry, ResolutionKind, SettlementDetail};

/// A request is metered for the first time before this has passed.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// What is charged at `now` for a dispatched reservation of `held` that nobody settled. Tool calls are not metered: the
/// caller may have seen all that were reserved.
pub(crate) fn abandoned_charge(
    row: &DispatchEntry,
    held: Amounts,
    metered: Option<(Amounts, Option<Timestamp>)>,
    now: Timestamp,
) -> Amounts {
    let since = |then: Timestamp| {
        Duration::from_millis(u64::try_from(now.0.saturating_sub(then.0)).unwrap_or_default())
    };
    let taken = match (row.if_abandoned, metered, row.rate) {
        // The last metering reaches half way to the next one, and the upstream stopped when we did.
        (AbandonPolicy::PostMetered, Some((spent, _)), _) => Some(spent),
        (AbandonPolicy::PostMetered, None, Some(rate)) => {
            let written = rate.max_in(since(row.admitted).min(FIRST_LOOK));
            Some(Amounts { money: rate.prompt_cost + written.money, ..written })
        }
        (AbandonPolicy::PostWhole, Some((spent, Some(at))), Some(rate)) => {
            let written = rate.max_in(since(at));
            let (money, thinking) = (spent.money + written.money, spent.thinking + written.thinking);
            Some(Amounts { money, thinking, ..spent })
        }
        (AbandonPolicy::PostWhole, None, Some(rate)) => {
            let written = rate.max_in(since(row.admitted));
            Some(Amounts { money: rate.prompt_cost + written.money, ..written })
        }
        (AbandonPolicy::PostWhole, Some((_, None)), _) | (_, _, None) => None,
    };
    let Some(taken) = taken else { return held };
    // With the price of all tool calls, but no more money than was held, unless more is known to be spent.
    let known = metered.map_or(Amounts::ZERO, |(spent, _)| spent);
    let money = (taken.money + row.tools_cost).min(held.money).max(known.money);
    let thinking = taken.thinking.min(held.thinking).max(known.thinking);
    Amounts { money, thinking, tool_calls: held.tool_calls, ..taken }
}

impl JournalEntry {
    /// The end of a dispatched reservation that nobody settled.
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

impl SettlementDetail {
    /// The detail of a reservation that nobody settled.
    pub(crate) fn abandoned(row: &DispatchEntry) -> SettlementDetail {
        let (tools, tools_cost) = (row.tools.clone(), row.tools_cost);
        SettlementDetail { tools, tools_cost, outcome: "abandoned".into(), ..SettlementDetail::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{amounts, dispatched};
    use crate::rows::SpendRate;
    use stint_types::catalog::WorstCase;
    use stint_types::units::{Money, Tokens};

    const RATE: SpendRate =
        SpendRate { prompt_cost: Money(5), per_second: WorstCase { money: Money(40), thinking: Tokens(10) } };

    /// Of 1,000 nano-dollars and 100 thinking tokens.
    fn check(if_abandoned: AbandonPolicy, metered: Option<(u64, i64)>, now: i64, expected: (u64, u64)) {
        let row =
            DispatchEntry { if_abandoned, rate: Some(RATE), ..dispatched("a", 1_000, amounts(1_000, 100)) };
        let metered = metered.map(|(nanos, at)| (amounts(nanos, 7), Some(Timestamp(at))));
        let charge = abandoned_charge(&row, row.held, metered, Timestamp(now));
        assert_eq!((charge.money.0, charge.thinking.0), expected);
    }

    #[test]
    fn no_more_is_posted_than_can_have_been_written_in_the_time_that_passed() {
        let (whole, metered) = (AbandonPolicy::PostWhole, AbandonPolicy::PostMetered);
        check(whole, None, 3_500, (5 + 100, 25));
        check(whole, None, 900_000, (1_000, 100));
        check(whole, Some((60, 3_000)), 3_500, (60 + 20, 12));
        check(metered, None, 1_500, (5 + 20, 5));
        check(metered, None, 900_000, (5 + 40, 10));
        check(metered, Some((60, 3_000)), 900_000, (60, 7));
    }

    #[test]
    fn what_was_written_down_before_rates_were_is_posted_as_it_was_then() {
        let row = dispatched("a", 1_000, amounts(1_000, 100));
        let now = Timestamp(2_000);
        assert_eq!(abandoned_charge(&row, row.held, Some((amounts(60, 7), None)), now), row.held);
        let row = DispatchEntry { if_abandoned: AbandonPolicy::PostMetered, ..row };
        assert_eq!(abandoned_charge(&row, row.held, None, now), row.held);
        let metered = abandoned_charge(&row, row.held, Some((amounts(60, 7), None)), now);
        assert_eq!(metered.money, Money(60));
    }
}
