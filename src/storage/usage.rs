//! The sums of what was used, from a row of either database.

use crate::ledger::{Amounts, UsageSums};
use crate::units::{Count, Money, Tokens};

/// Reads them by the names of their columns. The tables hold nothing below zero.
pub(super) fn sums<E>(column: impl Fn(&'static str) -> Result<i64, E>) -> Result<UsageSums, E> {
    let number = |name| column(name).map(|value| u64::try_from(value).unwrap_or(0));
    Ok(UsageSums {
        spent: Amounts {
            money: Money(number("money")?),
            thinking: Tokens(number("thinking")?),
            requests: Count(number("requests")?),
            tool_calls: Count(number("tool_calls")?),
        },
        overrun: Money(number("overrun")?),
        settled: number("settled")?,
        prompt: Tokens(number("prompt")?),
        overhead: Tokens(number("overhead")?),
        solution: Tokens(number("solution")?),
        other: Tokens(number("other")?),
    })
}
