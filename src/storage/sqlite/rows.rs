//! Between entries and rows.

use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Row, Sqlite};

use crate::catalog::{Prices, WorstCase};
use crate::chat::ToolCounts;
use crate::ledger::{
    AbandonPolicy, AccountId, Amounts, DispatchEntry, ExtensionEntry, MeterEntry, RequestScope,
    ResolutionEntry, SpendRate,
};
use crate::storage::books::ModelSpendRow;
use crate::storage::calls;
use crate::units::{Count, EpisodeId, Money, Price, RequestId, Timestamp, Tokens};

/// Rows in one statement: the database takes 32,766 values, and a resolution has 23.
const ROWS_MAX: usize = 1024;

type InsertBuilder = QueryBuilder<Sqlite>;

/// The statements that insert these rows, where they are not there yet.
pub(super) fn inserts<T>(
    rows: &[T],
    insert: fn(&[T]) -> InsertBuilder,
) -> impl Iterator<Item = InsertBuilder> {
    rows.chunks(ROWS_MAX).map(insert)
}

pub(super) fn insert_dispatched(rows: &[&DispatchEntry]) -> InsertBuilder {
    let mut statement = InsertBuilder::new(
        "INSERT INTO reservations \
         (id, account, model, end_user, tag, money, thinking, tool_calls, price_input, price_output, \
          if_abandoned, admitted_at, expires_at, episode, tools, tools_cost, turns, rate_read, rate_money, \
          rate_thinking) ",
    );
    statement.push_values(rows, |mut values, row| {
        values.push_bind(row.id.as_bytes().to_vec());
        values.push_bind(row.account.as_str().to_owned());
        push_about(&mut values, &row.about);
        push_amounts(&mut values, row.held);
        values.push_bind(row.prices.map(|prices| whole(prices.input.per_million_tokens.0)));
        values.push_bind(row.prices.map(|prices| whole(prices.output.per_million_tokens.0)));
        values.push_bind(row.if_abandoned.as_str());
        values.push_bind(row.admitted.0);
        values.push_bind(row.expires.0);
        push_step(&mut values, &row.about, &row.tools, row.tools_cost);
        values.push_bind(row.rate.map(|rate| whole(rate.prompt_cost.0)));
        values.push_bind(row.rate.map(|rate| whole(rate.per_second.money.0)));
        values.push_bind(row.rate.map(|rate| whole(rate.per_second.thinking.0)));
    });
    statement.push(" ON CONFLICT DO NOTHING");
    statement
}

pub(super) fn insert_extended(rows: &[&ExtensionEntry]) -> InsertBuilder {
    let mut statement =
        InsertBuilder::new("INSERT INTO extensions (reservation, step, model, money, thinking, tool_calls) ");
    statement.push_values(rows, |mut values, row| {
        values.push_bind(row.id.as_bytes().to_vec());
        values.push_bind(i64::from(row.step));
        values.push_bind(row.model.as_deref().map(str::to_owned));
        push_amounts(&mut values, row.more);
    });
    statement.push(" ON CONFLICT DO NOTHING");
    statement
}

pub(super) fn insert_metered(rows: &[&MeterEntry]) -> InsertBuilder {
    let mut statement = InsertBuilder::new(
        "INSERT INTO meterings (reservation, step, money, thinking, tool_calls, metered_at) ",
    );
    statement.push_values(rows, |mut values, row| {
        values.push_bind(row.id.as_bytes().to_vec());
        values.push_bind(i64::from(row.step));
        push_amounts(&mut values, row.spent);
        values.push_bind(row.at.map(|at| at.0));
    });
    statement.push(" ON CONFLICT DO NOTHING");
    statement
}

pub(super) fn insert_resolved(rows: &[&ResolutionEntry]) -> InsertBuilder {
    let mut statement = InsertBuilder::new(
        "INSERT INTO resolutions \
         (reservation, how, account, model, end_user, tag, admitted_at, resolved_at, money, thinking, tool_calls, \
          overrun_money, overrun_thinking, overrun_tool_calls, prompt, overhead, solution, other, outcome, \
          episode, tools, tools_cost, turns) ",
    );
    statement.push_values(rows, |mut values, row| {
        values.push_bind(row.id.as_bytes().to_vec());
        values.push_bind(row.how.as_str());
        values.push_bind(row.account.as_str().to_owned());
        push_about(&mut values, &row.about);
        values.push_bind(row.admitted.0);
        values.push_bind(row.at.0);
        push_amounts(&mut values, row.spent);
        push_amounts(&mut values, row.overrun);
        values.push_bind(whole(row.detail.prompt.0));
        values.push_bind(whole(row.detail.overhead.0));
        values.push_bind(whole(row.detail.solution.0));
        values.push_bind(whole(row.detail.other.0));
        values.push_bind(row.detail.outcome.to_string());
        push_step(&mut values, &row.about, &row.detail.tools, row.detail.tools_cost);
    });
    statement.push(" ON CONFLICT DO NOTHING");
    statement
}

/// Of ends that are not there yet; they go first.
pub(super) fn insert_parts(rows: &[ModelSpendRow<'_>]) -> InsertBuilder {
    let mut statement = InsertBuilder::new(
        "INSERT INTO resolution_parts \
         (reservation, model, money, thinking, prompt, overhead, solution, other) SELECT p.* FROM (",
    );
    statement.push_values(rows, |mut values, ModelSpendRow { id, model, part }| {
        values.push_bind(id.as_bytes().to_vec());
        values.push_bind(model.to_string());
        values.push_bind(whole(part.money.0));
        for tokens in [part.thinking, part.prompt, part.overhead, part.solution, part.other] {
            values.push_bind(whole(tokens.0));
        }
    });
    statement.push(
        ") AS p WHERE NOT EXISTS (SELECT 1 FROM resolutions WHERE reservation = p.column1) \
         ON CONFLICT DO NOTHING",
    );
    statement
}

type RowValues<'s, 'q> = sqlx::query_builder::Separated<'q, Sqlite, &'s str>;

pub(super) fn push_about(values: &mut RowValues<'_, '_>, about: &RequestScope) {
    for name in [&about.model, &about.user, &about.tag] {
        values.push_bind(name.as_deref().map(str::to_owned));
    }
}

fn push_step(values: &mut RowValues<'_, '_>, about: &RequestScope, tools: &ToolCounts, tools_cost: Money) {
    values.push_bind(about.episode.as_ref().map(ToString::to_string));
    values.push_bind(calls::to_json(tools));
    values.push_bind(whole(tools_cost.0)).push_bind(i64::from(!about.beside_turns));
}

fn push_amounts(values: &mut RowValues<'_, '_>, amounts: Amounts) {
    for amount in amounts_i64(amounts) {
        values.push_bind(amount);
    }
}

/// Money, thinking tokens and tool calls.
pub(super) fn amounts_i64(amounts: Amounts) -> [i64; 3] {
    [whole(amounts.money.0), whole(amounts.thinking.0), whole(amounts.tool_calls.0)]
}

pub(super) const UNRESOLVED: &str = "\
    SELECT r.id, r.account, r.end_user, r.tag, r.price_input, r.price_output, r.if_abandoned, \
           r.admitted_at, r.expires_at, r.episode, r.tools, r.tools_cost, r.turns, \
           r.rate_read, r.rate_money, r.rate_thinking, m.metered_at, \
           coalesce((SELECT model FROM extensions WHERE reservation = r.id ORDER BY step DESC LIMIT 1), r.model) \
               AS model, \
           r.money + coalesce(sum(e.money), 0) AS money, \
           r.thinking + coalesce(sum(e.thinking), 0) AS thinking, \
           r.tool_calls + coalesce(sum(e.tool_calls), 0) AS tool_calls, \
           m.money AS metered_money, m.thinking AS metered_thinking, m.tool_calls AS metered_tool_calls \
    FROM open_reservations o CROSS JOIN reservations r ON r.id = o.reservation \
    LEFT JOIN extensions e ON e.reservation = r.id \
    LEFT JOIN meterings m ON m.reservation = r.id \
        AND m.step = (SELECT max(step) FROM meterings WHERE reservation = r.id) \
    GROUP BY r.id ORDER BY r.id";

pub(super) fn dispatched(row: &SqliteRow) -> Result<DispatchEntry, sqlx::Error> {
    let (input, output): (Option<i64>, Option<i64>) =
        (row.try_get("price_input")?, row.try_get("price_output")?);
    let prices = |(input, output)| Prices { input: price(input), output: price(output) };
    let held = Amounts { requests: Count::ONE, ..amounts(row)? };
    Ok(DispatchEntry {
        id: RequestId::from_bytes(id_bytes(row)?),
        account: AccountId::new(row.try_get::<&str, _>("account")?),
        about: about(row)?,
        tools: calls::read(held.tool_calls, row.try_get("tools")?)?,
        tools_cost: Money(count(row.try_get("tools_cost")?)),
        held,
        prices: input.zip(output).map(prices),
        if_abandoned: AbandonPolicy::parse(row.try_get("if_abandoned")?),
        rate: rate(row)?,
        metered: metered(row)?,
        metered_at: row.try_get::<Option<i64>, _>("metered_at")?.map(Timestamp),
        admitted: Timestamp(row.try_get("admitted_at")?),
        expires: Timestamp(row.try_get("expires_at")?),
    })
}

pub(super) fn about(row: &SqliteRow) -> Result<RequestScope, sqlx::Error> {
    let name = |column| row.try_get::<Option<&str>, _>(column).map(|name| name.map(Into::into));
    let beside_turns = row.try_get::<i64, _>("turns")? == 0;
    let (model, user, tag) = (name("model")?, name("end_user")?, name("tag")?);
    Ok(RequestScope { model, user, tag, episode: episode(row)?, beside_turns })
}

pub(super) fn amounts(row: &SqliteRow) -> Result<Amounts, sqlx::Error> {
    let (money, thinking, tool_calls) =
        (row.try_get("money")?, row.try_get("thinking")?, row.try_get("tool_calls")?);
    Ok(Amounts {
        money: Money(count(money)),
        thinking: Tokens(count(thinking)),
        tool_calls: Count(count(tool_calls)),
        requests: Count::ZERO,
    })
}

/// Rows from before there were rates have none.
fn rate(row: &SqliteRow) -> Result<Option<SpendRate>, sqlx::Error> {
    let Some(read) = row.try_get::<Option<i64>, _>("rate_read")? else { return Ok(None) };
    let (money, thinking) = (row.try_get("rate_money")?, row.try_get("rate_thinking")?);
    let second = WorstCase { money: Money(count(money)), thinking: Tokens(count(thinking)) };
    Ok(Some(SpendRate { prompt_cost: Money(count(read)), per_second: second }))
}

fn metered(row: &SqliteRow) -> Result<Option<Amounts>, sqlx::Error> {
    let Some(money) = row.try_get::<Option<i64>, _>("metered_money")? else { return Ok(None) };
    let (thinking, tool_calls) = (row.try_get("metered_thinking")?, row.try_get("metered_tool_calls")?);
    Ok(Some(Amounts {
        money: Money(count(money)),
        thinking: Tokens(count(thinking)),
        tool_calls: Count(count(tool_calls)),
        requests: Count::ZERO,
    }))
}

fn episode(row: &SqliteRow) -> Result<Option<EpisodeId>, sqlx::Error> {
    let name = row.try_get::<Option<&str>, _>("episode")?.map(str::parse).transpose();
    name.map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

fn id_bytes(row: &SqliteRow) -> Result<[u8; 16], sqlx::Error> {
    let bytes: &[u8] = row.try_get("id")?;
    bytes.try_into().map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// The ledger keeps amounts far below this bound; a price above it is beyond any model's.
pub(super) fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn price(per_million: i64) -> Price {
    Price { per_million_tokens: Money(count(per_million)) }
}

/// The tables hold nothing below zero.
pub(super) fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
