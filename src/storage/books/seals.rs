//! Seals and their sums as rows, in statements that both databases take.

/// The functions that read and write them, for one database.
macro_rules! seal_statements {
    ($database:ty, $connection:ty, $row:ty) => {
        use std::sync::Arc;

        use sqlx::{QueryBuilder, Row};

        use crate::ledger::{RequestScope, AccountId, Amounts, Rollups, Seal, RollupSpan, UsageSums};
        use crate::storage::books::RollupRow;
        use crate::storage::usage::sums;
        use crate::units::Timestamp;

        /// Rows in one statement: a database takes 32,766 values or more, and a rollup has 19.
        const ROWS_MAX: usize = 1024;

        /// The last seal.
        pub(super) async fn last(connection: &mut $connection) -> Result<Option<Seal>, sqlx::Error> {
            let sql =
                "SELECT number, through, resolutions, sealed_at, hash FROM seals ORDER BY number DESC LIMIT 1";
            sqlx::query(sql).fetch_optional(connection).await?.as_ref().map(read).transpose()
        }

        /// All seals, the oldest first.
        pub(super) async fn all(connection: &mut $connection) -> Result<Vec<Seal>, sqlx::Error> {
            let sql = "SELECT number, through, resolutions, sealed_at, hash FROM seals ORDER BY number";
            sqlx::query(sql).fetch_all(connection).await?.iter().map(read).collect()
        }

        /// The number of the last resolution; 0 where there is none.
        pub(super) async fn newest(connection: &mut $connection) -> Result<i64, sqlx::Error> {
            sqlx::query_scalar("SELECT coalesce(max(number), 0) FROM resolutions").fetch_one(connection).await
        }

        /// The sums of one seal, in their order.
        pub(super) async fn rollups(
            connection: &mut $connection,
            seal: i64,
        ) -> Result<Vec<RollupRow>, sqlx::Error> {
            let sql = "\
                SELECT span, start, account, model, end_user, tag, part_of, money, thinking, tool_calls, requests, \
                       overrun_money AS overrun, settled, prompt, overhead, solution, other \
                FROM rollups WHERE seal = $1 ORDER BY line";
            sqlx::query(sql).bind(seal).fetch_all(connection).await?.iter().map(rollup).collect()
        }

        fn read(row: &$row) -> Result<Seal, sqlx::Error> {
            let hash: &[u8] = row.try_get("hash")?;
            Ok(Seal {
                number: row.try_get("number")?,
                through: row.try_get("through")?,
                resolutions: usize::try_from(row.try_get::<i64, _>("resolutions")?).unwrap_or(0),
                at: Timestamp(row.try_get("sealed_at")?),
                hash: hash.try_into().map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
            })
        }

        fn rollup(row: &$row) -> Result<RollupRow, sqlx::Error> {
            let name = |column| row.try_get::<Option<&str>, _>(column).map(|name| name.map(Into::into));
            let about = RequestScope { model: name("model")?, user: name("end_user")?, tag: name("tag")?, ..RequestScope::default() };
            let account = AccountId::new(row.try_get::<&str, _>("account")?);
            let key = (Timestamp(row.try_get("start")?), account, about, name("part_of")?);
            Ok((row.try_get("span")?, key, sums(|column| row.try_get(column))?))
        }

        /// Writes a seal and its sums, in a transaction; that another made the same meanwhile is a conflict.
        async fn write(
            connection: &mut $connection,
            seal: &Seal,
            rollups: Rollups,
        ) -> Result<(), sqlx::Error> {
            let sql =
                "INSERT INTO seals (number, through, resolutions, sealed_at, hash) VALUES ($1, $2, $3, $4, $5)";
            sqlx::query(sql)
                .bind(seal.number)
                .bind(seal.through)
                .bind(i64::try_from(seal.resolutions).unwrap_or(i64::MAX))
                .bind(seal.at.0)
                .bind(seal.hash.to_vec())
                .execute(&mut *connection)
                .await?;
            let lines: Vec<_> = rollups.into_iter().enumerate().collect();
            for part in lines.chunks(ROWS_MAX) {
                insert_rollups(seal.number, part).build().persistent(false).execute(&mut *connection).await?;
            }
            Ok(())
        }

        type RollupLine = (usize, ((RollupSpan, Timestamp, AccountId, RequestScope, Option<Arc<str>>), UsageSums));

        fn insert_rollups(seal: i64, lines: &[RollupLine]) -> QueryBuilder<$database> {
            let mut statement = QueryBuilder::new(
                "INSERT INTO rollups \
                 (seal, line, span, start, account, model, end_user, tag, part_of, money, thinking, tool_calls, requests, \
                  overrun_money, settled, prompt, overhead, solution, other) ",
            );
            statement.push_values(lines, |mut values, (line, ((span, start, account, about, part_of), sums))| {
                values.push_bind(seal).push_bind(i64::try_from(*line).unwrap_or(i64::MAX));
                values.push_bind(span.length()).push_bind(start.0).push_bind(account.as_str().to_owned());
                for name in [&about.model, &about.user, &about.tag, part_of] {
                    values.push_bind(name.as_deref().map(str::to_owned));
                }
                let Amounts { money, thinking, requests, tool_calls } = sums.spent;
                for amount in [money.0, thinking.0, tool_calls.0, requests.0, sums.overrun.0, sums.settled] {
                    values.push_bind(whole(amount));
                }
                for tokens in [sums.prompt, sums.overhead, sums.solution, sums.other] {
                    values.push_bind(whole(tokens.0));
                }
            });
            statement
        }

        /// The ledger keeps amounts far below this bound.
        fn whole(number: u64) -> i64 {
            i64::try_from(number).unwrap_or(i64::MAX)
        }
    };
}

pub(in crate::storage) use seal_statements;
