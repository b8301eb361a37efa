//! Sums of what was spent and used: of a seal's rows from its rollups, of the others from the rows themselves; in
//! statements that both databases take.

use crate::ledger::RollupSpan;
use crate::units::Timestamp;

/// What was charged for requests admitted from $1 until before $6. Between $3 and $4, where days of UTC begin, a sealed
/// request counts in the rollup of its day; on both sides, until $2 and $5, where quarters of an hour begin, in that of
/// its quarter; and at both ends, and where it is not sealed yet, it counts itself. The plus keeps the planner from
/// walking all that is not sealed, which is everything before the first seal.
macro_rules! charged {
    () => {
        "SELECT account, model, end_user, tag, start, money, thinking, tool_calls, requests, overrun_money, \
                settled, prompt, overhead, solution, other \
         FROM rollups WHERE part_of IS NULL AND span = 86400000 AND start >= $3 AND start < $4 \
         UNION ALL \
         SELECT account, model, end_user, tag, start, money, thinking, tool_calls, requests, overrun_money, \
                settled, prompt, overhead, solution, other \
         FROM rollups WHERE part_of IS NULL AND span = 900000 AND start >= $2 AND start < $3 \
         UNION ALL \
         SELECT account, model, end_user, tag, start, money, thinking, tool_calls, requests, overrun_money, \
                settled, prompt, overhead, solution, other \
         FROM rollups WHERE part_of IS NULL AND span = 900000 AND start >= $4 AND start < $5 \
         UNION ALL \
         SELECT account, model, end_user, tag, admitted_at - admitted_at % 900000, money, thinking, tool_calls, \
                CASE WHEN how = 'voided' THEN 0 ELSE 1 END, overrun_money, \
                CASE WHEN how = 'settled' THEN 1 ELSE 0 END, prompt, overhead, solution, other \
         FROM resolutions WHERE admitted_at >= $1 AND admitted_at < $2 \
                            AND +number <= (SELECT coalesce(max(through), 0) FROM seals) \
         UNION ALL \
         SELECT account, model, end_user, tag, admitted_at - admitted_at % 900000, money, thinking, tool_calls, \
                CASE WHEN how = 'voided' THEN 0 ELSE 1 END, overrun_money, \
                CASE WHEN how = 'settled' THEN 1 ELSE 0 END, prompt, overhead, solution, other \
         FROM resolutions WHERE admitted_at >= $5 AND admitted_at < $6 \
                            AND +number <= (SELECT coalesce(max(through), 0) FROM seals) \
         UNION ALL \
         SELECT account, model, end_user, tag, admitted_at - admitted_at % 900000, money, thinking, tool_calls, \
                CASE WHEN how = 'voided' THEN 0 ELSE 1 END, overrun_money, \
                CASE WHEN how = 'settled' THEN 1 ELSE 0 END, prompt, overhead, solution, other \
         FROM resolutions WHERE admitted_at >= $1 AND admitted_at < $6 \
                            AND +number > (SELECT coalesce(max(through), 0) FROM seals)"
    };
}

/// What of that other models took than the one that answered, by the same times; nothing, unless it is told apart by model ($10).
macro_rules! parts {
    () => {
        "SELECT account, model, part_of, start, money, thinking, prompt, overhead, solution, other \
         FROM rollups WHERE $10 AND part_of IS NOT NULL AND span = 86400000 AND start >= $3 AND start < $4 \
         UNION ALL \
         SELECT account, model, part_of, start, money, thinking, prompt, overhead, solution, other \
         FROM rollups WHERE $10 AND part_of IS NOT NULL AND span = 900000 AND start >= $2 AND start < $3 \
         UNION ALL \
         SELECT account, model, part_of, start, money, thinking, prompt, overhead, solution, other \
         FROM rollups WHERE $10 AND part_of IS NOT NULL AND span = 900000 AND start >= $4 AND start < $5 \
         UNION ALL \
         SELECT r.account, p.model, coalesce(r.model, ''), r.admitted_at - r.admitted_at % 900000, \
                p.money, p.thinking, p.prompt, p.overhead, p.solution, p.other \
         FROM resolutions r JOIN resolution_parts p ON p.reservation = r.reservation \
         WHERE $10 AND r.admitted_at >= $1 AND r.admitted_at < $6 \
           AND (r.admitted_at < $2 OR r.admitted_at >= $5 \
                OR +r.number > (SELECT coalesce(max(through), 0) FROM seals))"
    };
}

macro_rules! summed {
    () => {
        "CAST(sum(money) AS BIGINT) AS money, CAST(sum(thinking) AS BIGINT) AS thinking, \
         CAST(sum(tool_calls) AS BIGINT) AS tool_calls, CAST(sum(requests) AS BIGINT) AS requests, \
         CAST(sum(overrun_money) AS BIGINT) AS overrun, CAST(sum(settled) AS BIGINT) AS settled"
    };
}

/// By the quarter of an hour in which a request was admitted, but no earlier than asked for.
pub(in crate::storage) const SPENT: &str = concat!(
    "SELECT account, model, end_user, tag, CASE WHEN start < $1 THEN $1 ELSE start END AS since, ",
    summed!(),
    " FROM (",
    charged!(),
    ") AS charged GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2 NULLS FIRST, 3 NULLS FIRST, 4 NULLS FIRST, 5"
);

/// All at once.
pub(in crate::storage) const BETWEEN: &str = concat!(
    "SELECT account, model, end_user, tag, CAST($1 AS BIGINT) AS since, ",
    summed!(),
    " FROM (",
    charged!(),
    ") AS charged GROUP BY 1, 2, 3, 4 ORDER BY 1, 2 NULLS FIRST, 3 NULLS FIRST, 4 NULLS FIRST"
);

/// Over all time.
pub(in crate::storage) const BALANCES: &str = concat!(
    "SELECT account, model, end_user, tag, CAST(-9223372036854775808 AS BIGINT) AS since, ",
    summed!(),
    " FROM (SELECT account, model, end_user, tag, money, thinking, tool_calls, requests, overrun_money, settled \
            FROM rollups WHERE part_of IS NULL AND span = 0 \
            UNION ALL \
            SELECT account, model, end_user, tag, money, thinking, tool_calls, \
                   CASE WHEN how = 'voided' THEN 0 ELSE 1 END, overrun_money, \
                   CASE WHEN how = 'settled' THEN 1 ELSE 0 END \
            FROM resolutions WHERE number > (SELECT coalesce(max(through), 0) FROM seals)) AS charged \
     GROUP BY 1, 2, 3, 4 ORDER BY 1, 2 NULLS FIRST, 3 NULLS FIRST, 4 NULLS FIRST"
);

/// Of the account $7 and all below it, by day ($8), account ($9) and model ($10), after the group ($11, $12, $13). By model, a
/// part counts for the model that took it, and no longer for the one that answered.
pub(in crate::storage) const USAGE: &str = concat!(
    "WITH parts AS (",
    parts!(),
    ") SELECT day, key, model, CAST(sum(prompt) AS BIGINT) AS prompt, CAST(sum(overhead) AS BIGINT) AS overhead, \
            CAST(sum(solution) AS BIGINT) AS solution, CAST(sum(other) AS BIGINT) AS other, ",
    summed!(),
    " FROM (SELECT CASE WHEN $8 THEN start - start % 86400000 ELSE 0 END AS day, \
                   CASE WHEN $9 THEN account ELSE '' END AS key, \
                   CASE WHEN $10 THEN coalesce(model, '') ELSE '' END AS model, \
                   money, thinking, tool_calls, requests, overrun_money, settled, prompt, overhead, solution, other \
            FROM (",
    charged!(),
    " UNION ALL \
      SELECT account, model, NULL, NULL, start, money, thinking, 0, 0, 0, 0, prompt, overhead, solution, other FROM parts \
      UNION ALL \
      SELECT account, part_of, NULL, NULL, start, -money, -thinking, 0, 0, 0, 0, -prompt, -overhead, -solution, -other \
      FROM parts) AS charged WHERE CAST($7 AS TEXT) IS NULL OR account = $7 OR substr(account, 1, length($7) + 1) = $7 || '/') AS grouped \
     WHERE NOT $14 OR (day, key, model) > ($11, $12, $13) \
     GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 LIMIT $15"
);

/// What the steps of the run $2 of the account $1 took that are resolved.
pub(in crate::storage) const STEPS: &str = "\
    SELECT how, money, thinking, tool_calls, tools, turns FROM resolutions WHERE account = $1 AND episode = $2";

/// The whole spans between two moments, the first one's start and the last one's end.
pub(in crate::storage) fn whole(span: RollupSpan, from: Timestamp, to: Timestamp) -> (Timestamp, Timestamp) {
    let first = span.next(from).min(to);
    (first, span.start(to).max(first))
}

/// The functions that read them, for one database. `$one_moment` begins a transaction that sees what was committed at
/// one moment.
macro_rules! sum_statements {
    ($database:ty, $arguments:ty, $connection:ty, $row:ty, $one_moment:expr) => {
        use sqlx::{Connection, Row};

        use crate::ledger::{
            AccountId, AccountSpend, Amounts, EpisodeUsage, GroupUsage, RequestScope, RollupSpan, UsageGroup,
            UsageQuery,
        };
        use crate::storage::books::{BALANCES, BETWEEN, SPENT, STEPS, USAGE, whole};
        use crate::storage::calls;
        use crate::storage::usage::sums;
        use crate::units::{Count, EpisodeId, Money, Timestamp, Tokens};

        type SumStatement = sqlx::query::Query<'static, $database, $arguments>;

        /// From when until when to look, and between when quarters of an hour, and days where they will do, are whole.
        fn bind(sql: &'static str, from: Timestamp, to: Timestamp, by_day: bool) -> SumStatement {
            let quarters = whole(RollupSpan::Quarter, from, to);
            let days = if by_day {
                whole(RollupSpan::Day, quarters.0, quarters.1)
            } else {
                (quarters.1, quarters.1)
            };
            let bounds = [from, quarters.0, days.0, days.1, quarters.1, to];
            bounds.into_iter().fold(sqlx::query(sql), |query, bound| query.bind(bound.0))
        }

        pub(super) async fn since(
            connection: &mut $connection,
            since: Timestamp,
        ) -> Result<Vec<AccountSpend>, sqlx::Error> {
            let rows = bind(SPENT, since, Timestamp(i64::MAX), false).fetch_all(connection).await?;
            rows.iter().map(spent).collect()
        }

        /// Between each of these moments and the next, in one snapshot.
        pub(super) async fn between(
            connection: &mut $connection,
            moments: &[Timestamp],
        ) -> Result<Vec<AccountSpend>, sqlx::Error> {
            let mut snapshot = connection.begin_with($one_moment).await?;
            let mut all = Vec::new();
            for (place, &from) in moments.iter().enumerate() {
                let to = moments.get(place + 1).copied().unwrap_or(Timestamp(i64::MAX));
                let rows = bind(BETWEEN, from, to, true).fetch_all(&mut *snapshot).await?;
                for row in &rows {
                    all.push(spent(row)?);
                }
            }
            all.retain(AccountSpend::is_nonzero);
            snapshot.commit().await?;
            Ok(all)
        }

        /// What the steps of one run took.
        pub(super) async fn episode(
            connection: &mut $connection,
            account: &AccountId,
            episode: &EpisodeId,
        ) -> Result<EpisodeUsage, sqlx::Error> {
            let steps =
                sqlx::query(STEPS).bind(account.as_str().to_owned()).bind(episode.as_str().to_owned());
            let mut used = EpisodeUsage::default();
            for row in &steps.fetch_all(connection).await? {
                // The tables hold nothing below zero.
                let number =
                    |column| row.try_get::<i64, _>(column).map(|value| u64::try_from(value).unwrap_or(0));
                let spent = Amounts {
                    money: Money(number("money")?),
                    thinking: Tokens(number("thinking")?),
                    requests: Count(if row.try_get::<&str, _>("how")? == "voided" {
                        0
                    } else {
                        number("turns")?
                    }),
                    tool_calls: Count(number("tool_calls")?),
                };
                used.add(spent, &calls::read(spent.tool_calls, row.try_get("tools")?)?);
            }
            Ok(used)
        }

        pub(super) async fn balances(connection: &mut $connection) -> Result<Vec<AccountSpend>, sqlx::Error> {
            sqlx::query(BALANCES).fetch_all(connection).await?.iter().map(spent).collect()
        }

        pub(super) async fn usage(
            connection: &mut $connection,
            query: &UsageQuery,
        ) -> Result<Vec<GroupUsage>, sqlx::Error> {
            let after = query.after.clone().unwrap_or_default();
            let rows = bind(USAGE, query.from, query.to, true)
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

        fn spent(row: &$row) -> Result<AccountSpend, sqlx::Error> {
            let name = |column| row.try_get::<Option<&str>, _>(column).map(|name| name.map(Into::into));
            // The tables hold nothing below zero.
            let number =
                |column| row.try_get::<i64, _>(column).map(|value| u64::try_from(value).unwrap_or(0));
            let spent = Amounts {
                money: Money(number("money")?),
                thinking: Tokens(number("thinking")?),
                requests: Count(number("requests")?),
                tool_calls: Count(number("tool_calls")?),
            };
            Ok(AccountSpend {
                account: AccountId::new(row.try_get::<&str, _>("account")?),
                about: RequestScope {
                    model: name("model")?,
                    user: name("end_user")?,
                    tag: name("tag")?,
                    ..RequestScope::default()
                },
                since: Timestamp(row.try_get("since")?),
                spent,
                overrun: Money(number("overrun")?),
                settled: number("settled")?,
            })
        }

        fn used(row: &$row) -> Result<GroupUsage, sqlx::Error> {
            let day = Timestamp(row.try_get("day")?);
            let (key, model) = (row.try_get::<&str, _>("key")?, row.try_get::<&str, _>("model")?);
            let group = UsageGroup { day, key: key.into(), model: model.into() };
            Ok(GroupUsage { group, sums: sums(|column| row.try_get(column))? })
        }
    };
}

pub(in crate::storage) use sum_statements;
