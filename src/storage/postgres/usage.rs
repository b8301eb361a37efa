//! What was used, for those who pay.

use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row};

use crate::ledger::{Usage, UsageGroup, UsageQuery};
use crate::storage::usage::sums;
use crate::units::Timestamp;

/// Of the account $3 and all below it, by day ($4), account ($5) and model ($6), after the group ($8, $9, $10).
const USAGE: &str = "\
    SELECT day, key, model, \
           sum(money)::bigint AS money, sum(thinking)::bigint AS thinking, sum(tool_calls)::bigint AS tool_calls, \
           count(*) FILTER (WHERE how <> 'voided') AS requests, sum(overrun_money)::bigint AS overrun, \
           count(*) FILTER (WHERE how = 'settled') AS settled, sum(prompt)::bigint AS prompt, \
           sum(overhead)::bigint AS overhead, sum(solution)::bigint AS solution, sum(other)::bigint AS other \
    FROM (SELECT CASE WHEN $4 THEN admitted_at - admitted_at % 86400000 ELSE 0 END AS day, \
                 CASE WHEN $5 THEN account ELSE '' END AS key, \
                 CASE WHEN $6 THEN coalesce(model, '') ELSE '' END AS model, \
                 money, thinking, tool_calls, how, overrun_money, prompt, overhead, solution, other \
          FROM resolutions \
          WHERE admitted_at >= $1 AND admitted_at < $2 \
            AND ($3::text IS NULL OR account = $3 OR starts_with(account, $3 || '/'))) AS r \
    WHERE NOT $7 OR (day, key COLLATE \"C\", model COLLATE \"C\") > ($8, $9, $10) \
    GROUP BY 1, 2, 3 ORDER BY day, key COLLATE \"C\", model COLLATE \"C\" LIMIT $11";

pub(super) async fn usage(pool: &PgPool, query: &UsageQuery) -> Result<Vec<Usage>, sqlx::Error> {
    let after = query.after.clone().unwrap_or_default();
    let rows = sqlx::query(USAGE)
        .bind(query.from.0)
        .bind(query.to.0)
        .bind(query.account.as_ref().map(|account| account.as_str().to_owned()))
        .bind(query.by.day)
        .bind(query.by.key)
        .bind(query.by.model)
        .bind(query.after.is_some())
        .bind(after.day.0)
        .bind(after.key.to_string())
        .bind(after.model.to_string())
        .bind(i64::try_from(query.limit).unwrap_or(i64::MAX));
    rows.fetch_all(pool).await?.iter().map(used).collect()
}

fn used(row: &PgRow) -> Result<Usage, sqlx::Error> {
    let day = Timestamp(row.try_get("day")?);
    let (key, model) = (row.try_get::<&str, _>("key")?, row.try_get::<&str, _>("model")?);
    let group = UsageGroup { day, key: key.into(), model: model.into() };
    Ok(Usage { group, sums: sums(|column| row.try_get(column))? })
}
