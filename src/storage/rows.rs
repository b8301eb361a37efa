//! Between entries and rows.

use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Row, Sqlite};

use crate::catalog::Prices;
use crate::ledger::{AccountId, Amounts, Dispatched, Extended, Resolved, Total};
use crate::units::{Money, Price, RequestId, Timestamp, Tokens};

/// Rows in one statement: the database takes 32,766 values, and a resolution has 15.
const ROWS_MAX: usize = 1024;

type Statement = QueryBuilder<Sqlite>;

/// The statements that insert these rows, where they are not there yet.
pub(super) fn inserts<T>(rows: &[T], insert: fn(&[T]) -> Statement) -> impl Iterator<Item = Statement> {
    rows.chunks(ROWS_MAX).map(insert)
}

pub(super) fn insert_dispatched(rows: &[&Dispatched]) -> Statement {
    let mut statement = Statement::new(
        "INSERT INTO reservations \
         (id, account, money, thinking, price_input, price_output, admitted_at, expires_at) ",
    );
    statement.push_values(rows, |mut values, row| {
        values.push_bind(row.id.as_bytes().to_vec());
        values.push_bind(row.account.as_str().to_owned());
        values.push_bind(money(row.held.money));
        values.push_bind(tokens(row.held.thinking));
        values.push_bind(row.prices.map(|prices| money(prices.input.per_million_tokens)));
        values.push_bind(row.prices.map(|prices| money(prices.output.per_million_tokens)));
        values.push_bind(row.admitted.0);
        values.push_bind(row.expires.0);
    });
    statement.push(" ON CONFLICT DO NOTHING");
    statement
}

pub(super) fn insert_extended(rows: &[&Extended]) -> Statement {
    let mut statement = Statement::new("INSERT INTO extensions (reservation, step, money, thinking) ");
    statement.push_values(rows, |mut values, row| {
        values.push_bind(row.id.as_bytes().to_vec());
        values.push_bind(i64::from(row.step));
        values.push_bind(money(row.more.money));
        values.push_bind(tokens(row.more.thinking));
    });
    statement.push(" ON CONFLICT DO NOTHING");
    statement
}

pub(super) fn insert_resolved(rows: &[&Resolved]) -> Statement {
    let mut statement = Statement::new(
        "INSERT INTO resolutions \
         (reservation, how, account, admitted_at, resolved_at, money, thinking, \
          overrun_money, overrun_thinking, model, prompt, overhead, solution, other, outcome) ",
    );
    statement.push_values(rows, |mut values, row| {
        values.push_bind(row.id.as_bytes().to_vec());
        values.push_bind(row.how.word());
        values.push_bind(row.account.as_str().to_owned());
        values.push_bind(row.admitted.0);
        values.push_bind(row.at.0);
        values.push_bind(money(row.spent.money));
        values.push_bind(tokens(row.spent.thinking));
        values.push_bind(money(row.overrun.money));
        values.push_bind(tokens(row.overrun.thinking));
        values.push_bind(row.detail.model.as_deref().map(str::to_owned));
        values.push_bind(tokens(row.detail.prompt));
        values.push_bind(tokens(row.detail.overhead));
        values.push_bind(tokens(row.detail.solution));
        values.push_bind(tokens(row.detail.other));
        values.push_bind(row.detail.outcome.to_string());
    });
    statement.push(" ON CONFLICT DO NOTHING");
    statement
}

pub(super) const UNRESOLVED: &str = "\
    SELECT id, account, price_input, price_output, admitted_at, expires_at, \
           r.money + coalesce(sum(e.money), 0) AS money, \
           r.thinking + coalesce(sum(e.thinking), 0) AS thinking \
    FROM reservations r LEFT JOIN extensions e ON e.reservation = r.id \
    WHERE NOT EXISTS (SELECT 1 FROM resolutions WHERE reservation = r.id) \
    GROUP BY r.id ORDER BY r.id";

pub(super) fn dispatched(row: &SqliteRow) -> Result<Dispatched, sqlx::Error> {
    let (input, output): (Option<i64>, Option<i64>) =
        (row.try_get("price_input")?, row.try_get("price_output")?);
    let prices = |(input, output)| Prices { input: price(input), output: price(output) };
    Ok(Dispatched {
        id: RequestId::from_bytes(id_bytes(row)?),
        account: AccountId::new(row.try_get::<&str, _>("account")?),
        held: amounts(row)?,
        prices: input.zip(output).map(prices),
        admitted: Timestamp(row.try_get("admitted_at")?),
        expires: Timestamp(row.try_get("expires_at")?),
    })
}

pub(super) const SPENT: &str = "\
    SELECT account, sum(money) AS money, sum(thinking) AS thinking, \
           sum(overrun_money) AS overrun, sum(how = 'settled') AS settled \
    FROM resolutions WHERE admitted_at >= ? GROUP BY account ORDER BY account";

pub(super) fn total(row: &SqliteRow) -> Result<Total, sqlx::Error> {
    Ok(Total {
        account: AccountId::new(row.try_get::<&str, _>("account")?),
        spent: amounts(row)?,
        overrun: Money(count(row.try_get("overrun")?)),
        settled: count(row.try_get("settled")?),
    })
}

fn amounts(row: &SqliteRow) -> Result<Amounts, sqlx::Error> {
    let (money, thinking) = (row.try_get("money")?, row.try_get("thinking")?);
    Ok(Amounts { money: Money(count(money)), thinking: Tokens(count(thinking)) })
}

fn id_bytes(row: &SqliteRow) -> Result<[u8; 16], sqlx::Error> {
    let bytes: &[u8] = row.try_get("id")?;
    bytes.try_into().map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// The ledger keeps amounts far below this bound; a price above it is beyond any model's.
fn money(money: Money) -> i64 {
    i64::try_from(money.0).unwrap_or(i64::MAX)
}

fn tokens(tokens: Tokens) -> i64 {
    i64::try_from(tokens.0).unwrap_or(i64::MAX)
}

fn price(per_million: i64) -> Price {
    Price { per_million_tokens: Money(count(per_million)) }
}

/// The tables hold nothing below zero.
fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
