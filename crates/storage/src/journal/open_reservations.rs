//! Reservations that are not resolved yet, with all that was extended and metered since.

use crate::sql::{SqlRow, from_column};
use stint_ledger::{AbandonPolicy, Amounts, DispatchEntry, RequestScope, SpendRate};
use stint_types::catalog::{Prices, WorstCase};
use stint_types::units::{Count, Money, Price, Timestamp};

use super::tool_counts;

/// Columns of the reservation `r` and its last metering `m`. What was set aside for it, with all extensions, is not among them:
/// each database sums up `money`, `thinking` and `tool_calls` in its own way.
pub(crate) const OPEN_COLUMNS: &str = "\
    r.id, r.account, r.end_user, r.tag, r.price_input, r.price_output, r.if_abandoned, \
    r.admitted_at, r.expires_at, r.episode, r.tools, r.tools_cost, r.turns, \
    r.rate_read, r.rate_money, r.rate_thinking, m.metered_at, \
    coalesce((SELECT model FROM extensions WHERE reservation = r.id ORDER BY step DESC LIMIT 1), r.model) AS model, \
    m.money AS metered_money, m.thinking AS metered_thinking, m.tool_calls AS metered_tool_calls";

/// Reads these columns and the sums.
pub(crate) fn dispatch_entry(row: &SqlRow) -> Result<DispatchEntry, sqlx::Error> {
    let price = |column| -> Result<Option<Price>, sqlx::Error> {
        let per_million = row.get::<Option<i64>>(column)?;
        Ok(per_million.map(|value| Price { per_million_tokens: Money(from_column(value)) }))
    };
    let held = Amounts {
        money: row.money("money")?,
        thinking: row.tokens("thinking")?,
        requests: Count::ONE,
        tool_calls: row.count("tool_calls")?,
    };
    Ok(DispatchEntry {
        id: row.request("id")?,
        account: row.account("account")?,
        about: scope(row)?,
        tools: tool_counts::from_json(held.tool_calls, row.get("tools")?)?,
        tools_cost: row.money("tools_cost")?,
        held,
        prices: price("price_input")?
            .zip(price("price_output")?)
            .map(|(input, output)| Prices { input, output }),
        if_abandoned: AbandonPolicy::parse(row.get("if_abandoned")?),
        rate: rate(row)?,
        metered: metered(row)?,
        metered_at: row.get::<Option<i64>>("metered_at")?.map(Timestamp),
        admitted: row.time("admitted_at")?,
        expires: row.time("expires_at")?,
    })
}

fn scope(row: &SqlRow) -> Result<RequestScope, sqlx::Error> {
    let name = |column| row.get::<Option<&str>>(column).map(|name| name.map(Into::into));
    Ok(RequestScope {
        model: name("model")?,
        user: name("end_user")?,
        tag: name("tag")?,
        episode: row.parsed_or_null("episode")?,
        beside_turns: row.get::<i64>("turns")? == 0,
    })
}

/// Rows from before there were rates have none.
fn rate(row: &SqlRow) -> Result<Option<SpendRate>, sqlx::Error> {
    let Some(prompt_cost) = row.get::<Option<i64>>("rate_read")? else { return Ok(None) };
    let per_second = WorstCase { money: row.money("rate_money")?, thinking: row.tokens("rate_thinking")? };
    Ok(Some(SpendRate { prompt_cost: Money(from_column(prompt_cost)), per_second }))
}

fn metered(row: &SqlRow) -> Result<Option<Amounts>, sqlx::Error> {
    let Some(money) = row.get::<Option<i64>>("metered_money")? else { return Ok(None) };
    Ok(Some(Amounts {
        money: Money(from_column(money)),
        thinking: row.tokens("metered_thinking")?,
        requests: Count::ZERO,
        tool_calls: row.count("metered_tool_calls")?,
    }))
}
