//! Sums of what was spent and used: of a seal's rows from its rollups, of the others from the rows themselves.

use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Row, SqliteConnection};

use crate::ledger::{AccountId, Amounts, Spent, Sums, Usage, UsageGroup, UsageQuery, quarter};
use crate::units::{Count, Money, Timestamp, Tokens};

use super::rows::{about, amounts, count};

type Query = sqlx::query::Query<'static, sqlx::Sqlite, SqliteArguments>;

/// What was charged for requests admitted from ?1 until before ?4. Between ?2 and ?3, where quarters of an hour begin,
/// a sealed request counts in its rollup; before and after, and where it is not sealed yet, it counts itself. The plus
/// keeps the planner from walking the index of all admissions for the few rows that are not sealed.
macro_rules! charged {
    () => {
        "SELECT account, model, end_user, tag, quarter, money, thinking, tool_calls, requests, overrun_money, \
                settled, prompt, overhead, solution, other \
         FROM rollups WHERE quarter >= ?2 AND quarter < ?3 \
         UNION ALL \
         SELECT account, model, end_user, tag, admitted_at - admitted_at % 900000, money, thinking, tool_calls, \
                how <> 'voided', overrun_money, how = 'settled', prompt, overhead, solution, other \
         FROM resolutions WHERE admitted_at >= ?1 AND admitted_at < ?2 \
                            AND number <= (SELECT coalesce(max(through), 0) FROM seals) \
         UNION ALL \
         SELECT account, model, end_user, tag, admitted_at - admitted_at % 900000, money, thinking, tool_calls, \
                how <> 'voided', overrun_money, how = 'settled', prompt, overhead, solution, other \
         FROM resolutions WHERE admitted_at >= ?3 AND admitted_at < ?4 \
                            AND number <= (SELECT coalesce(max(through), 0) FROM seals) \
         UNION ALL \
         SELECT account, model, end_user, tag, admitted_at - admitted_at % 900000, money, thinking, tool_calls, \
                how <> 'voided', overrun_money, how = 'settled', prompt, overhead, solution, other \
         FROM resolutions WHERE number > (SELECT coalesce(max(through), 0) FROM seals) \
                            AND +admitted_at >= ?1 AND admitted_at < ?4"
    };
}

/// By the quarter of an hour in which a request was admitted, but no earlier than asked for.
pub(super) const SPENT: &str = concat!(
    "SELECT account, model, end_user, tag, max(?1, quarter) AS since, \
            sum(money) AS money, sum(thinking) AS thinking, sum(tool_calls) AS tool_calls, \
            sum(requests) AS requests, sum(overrun_money) AS overrun, sum(settled) AS settled FROM (",
    charged!(),
    ") GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5"
);

/// Over all time.
pub(super) const BALANCES: &str = "\
    SELECT account, model, end_user, tag, -9223372036854775808 AS since, \
           sum(money) AS money, sum(thinking) AS thinking, sum(tool_calls) AS tool_calls, \
           sum(requests) AS requests, sum(overrun_money) AS overrun, sum(settled) AS settled \
    FROM (SELECT account, model, end_user, tag, money, thinking, tool_calls, requests, overrun_money, settled \
          FROM balances \
          UNION ALL \
          SELECT account, model, end_user, tag, money, thinking, tool_calls, how <> 'voided', overrun_money, \
                 how = 'settled' \
          FROM resolutions WHERE number > (SELECT coalesce(max(through), 0) FROM seals)) \
    GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4";

/// Of the account ?5 and all below it, by day (?6), account (?7) and model (?8), after the group (?9, ?10, ?11).
const USAGE: &str = concat!(
    "SELECT day, key, model, \
            sum(money) AS money, sum(thinking) AS thinking, sum(tool_calls) AS tool_calls, \
            sum(requests) AS requests, sum(overrun_money) AS overrun, sum(settled) AS settled, \
            sum(prompt) AS prompt, sum(overhead) AS overhead, sum(solution) AS solution, sum(other) AS other \
     FROM (SELECT CASE WHEN ?6 THEN quarter - quarter % 86400000 ELSE 0 END AS day, \
                  CASE WHEN ?7 THEN account ELSE '' END AS key, \
                  CASE WHEN ?8 THEN coalesce(model, '') ELSE '' END AS model, \
                  money, thinking, tool_calls, requests, overrun_money, settled, prompt, overhead, solution, other \
           FROM (",
    charged!(),
    ") WHERE ?5 IS NULL OR account = ?5 OR substr(account, 1, length(?5) + 1) = ?5 || '/') \
     WHERE NOT ?12 OR (day, key, model) > (?9, ?10, ?11) \
     GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 LIMIT ?13"
);

/// From when until when to look, and between when quarters of an hour are whole.
fn bind(sql: &'static str, from: Timestamp, to: Timestamp) -> Query {
    let first = quarter(from);
    let next = if first < from { Timestamp(first.0.saturating_add(crate::ledger::QUARTER)) } else { from };
    let whole_from = next.min(to);
    let whole_to = quarter(to).max(whole_from);
    sqlx::query(sql).bind(from.0).bind(whole_from.0).bind(whole_to.0).bind(to.0)
}

pub(super) async fn since(
    connection: &mut SqliteConnection,
    since: Timestamp,
) -> Result<Vec<Spent>, sqlx::Error> {
    let rows = bind(SPENT, since, Timestamp(i64::MAX)).fetch_all(connection).await?;
    rows.iter().map(spent).collect()
}

pub(super) async fn balances(connection: &mut SqliteConnection) -> Result<Vec<Spent>, sqlx::Error> {
    sqlx::query(BALANCES).fetch_all(connection).await?.iter().map(spent).collect()
}

pub(super) async fn usage(
    connection: &mut SqliteConnection,
    query: &UsageQuery,
) -> Result<Vec<Usage>, sqlx::Error> {
    let after = query.after.clone().unwrap_or_default();
    let rows = bind(USAGE, query.from, query.to)
        .bind(query.account.as_ref().map(|account| account.as_str().to_owned()))
        .bind(query.by.day)
        .bind(query.by.key)
        .bind(query.by.model)
        .bind(after.day.0)
        .bind(after.key.to_string())
        .bind(after.model.to_string())
        .bind(query.after.is_some())
        .bind(i64::try_from(query.limit).unwrap_or(i64::MAX));
    rows.fetch_all(connection).await?.iter().map(used).collect()
}

fn spent(row: &SqliteRow) -> Result<Spent, sqlx::Error> {
    let requests = Count(count(row.try_get("requests")?));
    Ok(Spent {
        account: AccountId::new(row.try_get::<&str, _>("account")?),
        about: about(row)?,
        since: Timestamp(row.try_get("since")?),
        spent: Amounts { requests, ..amounts(row)? },
        overrun: Money(count(row.try_get("overrun")?)),
        settled: count(row.try_get("settled")?),
    })
}

fn used(row: &SqliteRow) -> Result<Usage, sqlx::Error> {
    let number = |column| row.try_get::<i64, _>(column).map(count);
    let day = Timestamp(row.try_get("day")?);
    let (key, model) = (row.try_get::<&str, _>("key")?, row.try_get::<&str, _>("model")?);
    Ok(Usage {
        group: UsageGroup { day, key: key.into(), model: model.into() },
        sums: Sums {
            spent: Amounts { requests: Count(number("requests")?), ..amounts(row)? },
            overrun: Money(number("overrun")?),
            settled: number("settled")?,
            prompt: Tokens(number("prompt")?),
            overhead: Tokens(number("overhead")?),
            solution: Tokens(number("solution")?),
            other: Tokens(number("other")?),
        },
    })
}
