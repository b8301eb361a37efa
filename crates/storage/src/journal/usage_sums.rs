//! Sums of usage, as a row has them.

use crate::sql::SqlRow;
use stint_ledger::{Amounts, UsageSums};

/// Reads them by the names of their columns.
pub(super) fn usage_sums(row: &SqlRow) -> Result<UsageSums, sqlx::Error> {
    Ok(UsageSums {
        spent: spent(row)?,
        overrun: row.money("overrun")?,
        settled: row.number("settled")?,
        prompt: row.tokens("prompt")?,
        overhead: row.tokens("overhead")?,
        solution: row.tokens("solution")?,
        other: row.tokens("other")?,
    })
}

/// The amounts alone.
pub(super) fn spent(row: &SqlRow) -> Result<Amounts, sqlx::Error> {
    Ok(Amounts {
        money: row.money("money")?,
        thinking: row.tokens("thinking")?,
        requests: row.count("requests")?,
        tool_calls: row.count("tool_calls")?,
    })
}
