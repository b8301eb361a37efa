//! Between entries and rows. Each kind of row goes in with one statement, its columns as arrays.

use std::sync::Arc;

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

use crate::catalog::{Prices, WorstCase};
use crate::ledger::{
    AbandonPolicy, AccountId, Amounts, DispatchEntry, ExtensionEntry, MeterEntry, RequestScope,
    ResolutionEntry, SpendRate,
};
use crate::storage::books::ModelSpendRow;
use crate::storage::calls;
use crate::units::{Count, EpisodeId, Money, Price, RequestId, Timestamp, Tokens};

pub(super) async fn insert_dispatched(
    connection: &mut PgConnection,
    epoch: Option<i64>,
    rows: &[&DispatchEntry],
) -> Result<(), sqlx::Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let statement = sqlx::query(
        "INSERT INTO reservations \
         (epoch, id, account, model, end_user, tag, money, thinking, tool_calls, price_input, price_output, \
          if_abandoned, admitted_at, expires_at, episode, tools, tools_cost, turns, rate_read, rate_money, \
          rate_thinking) \
         SELECT $1, * FROM UNNEST($2::bytea[], $3::text[], $4::text[], $5::text[], $6::text[], \
          $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::text[], $13::bigint[], \
          $14::bigint[], $15::text[], $16::text[], $17::bigint[], $18::bigint[], \
          $19::bigint[], $20::bigint[], $21::bigint[]) \
         ON CONFLICT DO NOTHING",
    );
    let price = |side: fn(&Prices) -> Price| {
        column(rows, |row| row.prices.map(|prices| size(side(&prices).per_million_tokens.0)))
    };
    let statement = statement
        .bind(epoch)
        .bind(column(rows, |row| row.id.as_bytes().to_vec()))
        .bind(column(rows, |row| clean(row.account.as_str())))
        .bind(column(rows, |row| name(row.about.model.as_ref())))
        .bind(column(rows, |row| name(row.about.user.as_ref())))
        .bind(column(rows, |row| name(row.about.tag.as_ref())))
        .bind(column(rows, |row| size(row.held.money.0)))
        .bind(column(rows, |row| size(row.held.thinking.0)))
        .bind(column(rows, |row| size(row.held.tool_calls.0)))
        .bind(price(|prices| prices.input))
        .bind(price(|prices| prices.output))
        .bind(column(rows, |row| row.if_abandoned.as_str()))
        .bind(column(rows, |row| row.admitted.0))
        .bind(column(rows, |row| row.expires.0))
        .bind(column(rows, |row| row.about.episode.as_ref().map(ToString::to_string)))
        .bind(column(rows, |row| calls::to_json(&row.tools)))
        .bind(column(rows, |row| size(row.tools_cost.0)))
        .bind(column(rows, |row| i64::from(!row.about.beside_turns)))
        .bind(column(rows, |row| row.rate.map(|rate| size(rate.prompt_cost.0))))
        .bind(column(rows, |row| row.rate.map(|rate| size(rate.per_second.money.0))))
        .bind(column(rows, |row| row.rate.map(|rate| size(rate.per_second.thinking.0))));
    statement.execute(connection).await.map(drop)
}

pub(super) async fn insert_extended(
    connection: &mut PgConnection,
    rows: &[&ExtensionEntry],
) -> Result<(), sqlx::Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let statement = sqlx::query(
        "INSERT INTO extensions (reservation, step, model, money, thinking, tool_calls) \
         SELECT * FROM UNNEST($1::bytea[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[]) \
         ON CONFLICT DO NOTHING",
    );
    let statement = statement
        .bind(column(rows, |row| row.id.as_bytes().to_vec()))
        .bind(column(rows, |row| i64::from(row.step)))
        .bind(column(rows, |row| name(row.model.as_ref())))
        .bind(column(rows, |row| size(row.more.money.0)))
        .bind(column(rows, |row| size(row.more.thinking.0)))
        .bind(column(rows, |row| size(row.more.tool_calls.0)));
    statement.execute(connection).await.map(drop)
}

pub(super) async fn insert_metered(
    connection: &mut PgConnection,
    rows: &[&MeterEntry],
) -> Result<(), sqlx::Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let statement = sqlx::query(
        "INSERT INTO meterings (reservation, step, money, thinking, tool_calls, metered_at) \
         SELECT * FROM UNNEST($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[]) \
         ON CONFLICT DO NOTHING",
    );
    let statement = statement
        .bind(column(rows, |row| row.id.as_bytes().to_vec()))
        .bind(column(rows, |row| i64::from(row.step)))
        .bind(column(rows, |row| size(row.spent.money.0)))
        .bind(column(rows, |row| size(row.spent.thinking.0)))
        .bind(column(rows, |row| size(row.spent.tool_calls.0)))
        .bind(column(rows, |row| row.at.map(|at| at.0)));
    statement.execute(connection).await.map(drop)
}

pub(super) async fn insert_resolved(
    connection: &mut PgConnection,
    rows: &[&ResolutionEntry],
) -> Result<(), sqlx::Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let statement = sqlx::query(
        "INSERT INTO resolutions \
         (reservation, how, account, model, end_user, tag, admitted_at, resolved_at, money, thinking, tool_calls, \
          overrun_money, overrun_thinking, overrun_tool_calls, prompt, overhead, solution, other, outcome, \
          episode, tools, tools_cost, turns) \
         SELECT * FROM UNNEST($1::bytea[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], \
          $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], \
          $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::text[], \
          $20::text[], $21::text[], $22::bigint[], $23::bigint[]) \
         ON CONFLICT DO NOTHING",
    );
    let statement = statement
        .bind(column(rows, |row| row.id.as_bytes().to_vec()))
        .bind(column(rows, |row| row.how.as_str()))
        .bind(column(rows, |row| clean(row.account.as_str())))
        .bind(column(rows, |row| name(row.about.model.as_ref())))
        .bind(column(rows, |row| name(row.about.user.as_ref())))
        .bind(column(rows, |row| name(row.about.tag.as_ref())))
        .bind(column(rows, |row| row.admitted.0))
        .bind(column(rows, |row| row.at.0))
        .bind(column(rows, |row| size(row.spent.money.0)))
        .bind(column(rows, |row| size(row.spent.thinking.0)))
        .bind(column(rows, |row| size(row.spent.tool_calls.0)))
        .bind(column(rows, |row| size(row.overrun.money.0)))
        .bind(column(rows, |row| size(row.overrun.thinking.0)))
        .bind(column(rows, |row| size(row.overrun.tool_calls.0)))
        .bind(column(rows, |row| size(row.detail.prompt.0)))
        .bind(column(rows, |row| size(row.detail.overhead.0)))
        .bind(column(rows, |row| size(row.detail.solution.0)))
        .bind(column(rows, |row| size(row.detail.other.0)))
        .bind(column(rows, |row| clean(&row.detail.outcome)))
        .bind(column(rows, |row| row.about.episode.as_ref().map(ToString::to_string)))
        .bind(column(rows, |row| calls::to_json(&row.detail.tools)))
        .bind(column(rows, |row| size(row.detail.tools_cost.0)))
        .bind(column(rows, |row| i64::from(!row.about.beside_turns)));
    statement.execute(connection).await.map(drop)
}

/// Of ends that are not there yet; they go first.
pub(super) async fn insert_parts(
    connection: &mut PgConnection,
    rows: &[ModelSpendRow<'_>],
) -> Result<(), sqlx::Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let statement = sqlx::query(
        "INSERT INTO resolution_parts \
         (reservation, model, money, thinking, prompt, overhead, solution, other) \
         SELECT p.* FROM UNNEST($1::bytea[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], \
          $7::bigint[], $8::bigint[]) AS p (reservation) \
         WHERE NOT EXISTS (SELECT 1 FROM resolutions r WHERE r.reservation = p.reservation) \
         ON CONFLICT DO NOTHING",
    );
    let rows: Vec<&ModelSpendRow<'_>> = rows.iter().collect();
    let rows = rows.as_slice();
    let statement = statement
        .bind(column(rows, |row| row.id.as_bytes().to_vec()))
        .bind(column(rows, |row| clean(row.model)))
        .bind(column(rows, |row| size(row.part.money.0)))
        .bind(column(rows, |row| size(row.part.thinking.0)))
        .bind(column(rows, |row| size(row.part.prompt.0)))
        .bind(column(rows, |row| size(row.part.overhead.0)))
        .bind(column(rows, |row| size(row.part.solution.0)))
        .bind(column(rows, |row| size(row.part.other.0)));
    statement.execute(connection).await.map(drop)
}

fn column<R, T>(rows: &[&R], cell: impl Fn(&R) -> T) -> Vec<T> {
    rows.iter().map(|row| cell(row)).collect()
}

fn name(name: Option<&Arc<str>>) -> Option<String> {
    name.map(|name| clean(name))
}

/// PostgreSQL's texts have no zeros, and a caller's name that has one must not stop everybody's entries.
pub(super) fn clean(text: &str) -> String {
    text.replace('\0', "\u{FFFD}")
}

macro_rules! unresolved {
    ($of:literal) => {
        concat!("\
    SELECT r.id, r.account, r.end_user, r.tag, r.price_input, r.price_output, r.if_abandoned, \
           r.admitted_at, r.expires_at, r.episode, r.tools, r.tools_cost, r.turns, \
           r.rate_read, r.rate_money, r.rate_thinking, m.metered_at, \
           coalesce((SELECT model FROM extensions WHERE reservation = r.id ORDER BY step DESC LIMIT 1), r.model) \
               AS model, \
           (r.money + coalesce(e.money, 0))::bigint AS money, \
           (r.thinking + coalesce(e.thinking, 0))::bigint AS thinking, \
           (r.tool_calls + coalesce(e.tool_calls, 0))::bigint AS tool_calls, \
           m.money AS metered_money, m.thinking AS metered_thinking, m.tool_calls AS metered_tool_calls \
    FROM reservations r \
    LEFT JOIN LATERAL (SELECT sum(money) AS money, sum(thinking) AS thinking, sum(tool_calls) AS tool_calls \
                       FROM extensions WHERE reservation = r.id) e ON TRUE \
    LEFT JOIN LATERAL (SELECT * FROM meterings WHERE reservation = r.id ORDER BY step DESC LIMIT 1) m ON TRUE \
    WHERE ", $of, " \
      AND NOT EXISTS (SELECT 1 FROM resolutions WHERE reservation = r.id) \
    ORDER BY r.id")
    };
}

/// Of one replica, or of those who share with nobody.
pub(super) const UNRESOLVED: &str = unresolved!("r.epoch IS NOT DISTINCT FROM $1");

/// Of everybody.
pub(super) const UNRESOLVED_OF_ALL: &str = unresolved!("TRUE");

pub(super) fn dispatched(row: &PgRow) -> Result<DispatchEntry, sqlx::Error> {
    let (input, output): (Option<i64>, Option<i64>) =
        (row.try_get("price_input")?, row.try_get("price_output")?);
    let price = |per_million| Price { per_million_tokens: Money(count(per_million)) };
    let held = Amounts { requests: Count::ONE, ..amounts(row, "")?.unwrap_or_default() };
    Ok(DispatchEntry {
        id: RequestId::from_bytes(id_bytes(row)?),
        account: AccountId::new(row.try_get::<&str, _>("account")?),
        about: about(row)?,
        tools: calls::read(held.tool_calls, row.try_get("tools")?)?,
        tools_cost: Money(count(row.try_get("tools_cost")?)),
        held,
        prices: input
            .zip(output)
            .map(|(input, output)| Prices { input: price(input), output: price(output) }),
        if_abandoned: AbandonPolicy::parse(row.try_get("if_abandoned")?),
        rate: rate(row)?,
        metered: amounts(row, "metered_")?,
        metered_at: row.try_get::<Option<i64>, _>("metered_at")?.map(Timestamp),
        admitted: Timestamp(row.try_get("admitted_at")?),
        expires: Timestamp(row.try_get("expires_at")?),
    })
}

/// Rows from before there were rates have none.
fn rate(row: &PgRow) -> Result<Option<SpendRate>, sqlx::Error> {
    let Some(read) = row.try_get::<Option<i64>, _>("rate_read")? else { return Ok(None) };
    let (money, thinking) = (row.try_get("rate_money")?, row.try_get("rate_thinking")?);
    let second = WorstCase { money: Money(count(money)), thinking: Tokens(count(thinking)) };
    Ok(Some(SpendRate { prompt_cost: Money(count(read)), per_second: second }))
}

fn about(row: &PgRow) -> Result<RequestScope, sqlx::Error> {
    let name = |column| row.try_get::<Option<&str>, _>(column).map(|name| name.map(Into::into));
    let beside_turns = row.try_get::<i64, _>("turns")? == 0;
    let (model, user, tag) = (name("model")?, name("end_user")?, name("tag")?);
    Ok(RequestScope { model, user, tag, episode: episode(row)?, beside_turns })
}

fn episode(row: &PgRow) -> Result<Option<EpisodeId>, sqlx::Error> {
    let name = row.try_get::<Option<&str>, _>("episode")?.map(str::parse).transpose();
    name.map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// Columns of these names with that in front; nothing, where they are null.
fn amounts(row: &PgRow, prefix: &str) -> Result<Option<Amounts>, sqlx::Error> {
    let get = |unit: &str| row.try_get::<Option<i64>, _>(format!("{prefix}{unit}").as_str());
    let (Some(money), thinking, tool_calls) = (get("money")?, get("thinking")?, get("tool_calls")?) else {
        return Ok(None);
    };
    Ok(Some(Amounts {
        money: Money(count(money)),
        thinking: Tokens(count(thinking.unwrap_or(0))),
        tool_calls: Count(count(tool_calls.unwrap_or(0))),
        requests: Count::ZERO,
    }))
}

fn id_bytes(row: &PgRow) -> Result<[u8; 16], sqlx::Error> {
    let bytes: &[u8] = row.try_get("id")?;
    bytes.try_into().map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// The ledger keeps amounts far below this bound; a price above it is beyond any model's.
pub(super) fn size(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// The tables hold nothing below zero.
pub(super) fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
