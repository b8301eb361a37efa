//! Seals and their rollups, as rows.

use std::sync::Arc;

use crate::sql::{SqlConnection, SqlRow, SqlValue, Statement, ToSqlValue, sql};
use stint_ledger::{Amounts, RequestScope, RollupSpan, Rollups, Seal, UsageSums};
use stint_types::units::{AccountId, Timestamp};

use super::usage_sums::usage_sums;

/// How many rollups are inserted by one statement.
const INSERT_MAX: usize = 1024;

const SEAL_COLUMNS: &str = "number, through, resolutions, sealed_at, hash";

const ROLLUP_COLUMNS: &str = "\
    seal, line, span, start, account, model, end_user, tag, part_of, money, thinking, tool_calls, requests, \
    overrun_money, settled, prompt, overhead, solution, other";

const ROLLUP_WIDTH: usize = 19;

/// What a rollup is of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RollupKey {
    /// How long its time is, in milliseconds.
    pub(crate) length: i64,
    pub(crate) start: Timestamp,
    pub(crate) account: AccountId,
    pub(crate) about: RequestScope,
    /// The model that answered, where the rollup is of what others took of it.
    pub(crate) part_of: Option<Arc<str>>,
}

impl RollupKey {
    /// The key of a rollup that was just summed up.
    pub(crate) fn of(key: &(RollupSpan, Timestamp, AccountId, RequestScope, Option<Arc<str>>)) -> RollupKey {
        let (span, start, account, about, part_of) = key.clone();
        RollupKey { length: span.length(), start, account, about, part_of }
    }
}

/// The last seal.
pub(crate) async fn last_seal(connection: &mut dyn SqlConnection) -> Result<Option<Seal>, sqlx::Error> {
    let find = Statement::new(sql("SELECT {} FROM seals ORDER BY number DESC LIMIT 1", &[&SEAL_COLUMNS]));
    connection.fetch_optional(find).await?.as_ref().map(seal).transpose()
}

/// All seals, the oldest first.
pub(crate) async fn read_seals(connection: &mut dyn SqlConnection) -> Result<Vec<Seal>, sqlx::Error> {
    let find = Statement::new(sql("SELECT {} FROM seals ORDER BY number", &[&SEAL_COLUMNS]));
    connection.fetch_all(find).await?.iter().map(seal).collect()
}

/// The number of the last resolution; 0 where there is none.
pub(crate) async fn newest_resolution(connection: &mut dyn SqlConnection) -> Result<i64, sqlx::Error> {
    let find = Statement::new("SELECT coalesce(max(number), 0) FROM resolutions");
    connection.fetch_one(find).await?.get(0)
}

/// The rollups of one seal, in their order.
pub(crate) async fn read_rollups(
    seal: i64,
    connection: &mut dyn SqlConnection,
) -> Result<Vec<(RollupKey, UsageSums)>, sqlx::Error> {
    let sql = sql(
        "SELECT {}, overrun_money AS overrun FROM rollups WHERE seal = $1 ORDER BY line",
        &[&ROLLUP_COLUMNS],
    );
    connection.fetch_all(Statement::new(sql).bind(seal)).await?.iter().map(rollup).collect()
}

/// Writes a seal and its rollups, in a transaction. Where another made the same seal meanwhile, this is a conflict.
pub(crate) async fn write_seal(
    seal: &Seal,
    rollups: Rollups,
    connection: &mut dyn SqlConnection,
) -> Result<(), sqlx::Error> {
    let into = sql("INSERT INTO seals ({}) VALUES ($1, $2, $3, $4, $5)", &[&SEAL_COLUMNS]);
    let insert = Statement::new(into).bind(seal.number).bind(seal.through);
    let insert = insert.bind(seal.resolutions).bind(seal.at).bind(&seal.hash[..]);
    connection.execute(insert).await?;
    let lines: Vec<(usize, (RollupKey, UsageSums))> =
        rollups.iter().map(|(key, sums)| (RollupKey::of(key), *sums)).enumerate().collect();
    for part in lines.chunks(INSERT_MAX) {
        let mut values = Vec::with_capacity(ROLLUP_WIDTH * part.len());
        for (line, (key, sums)) in part {
            values.extend([seal.number.to_sql(), line.to_sql()]);
            values.extend(rollup_values(key, sums));
        }
        let into = sql("INSERT INTO rollups ({}) VALUES ", &[&ROLLUP_COLUMNS]);
        let insert = Statement::with_rows(connection.dialect(), into, ROLLUP_WIDTH, values, "");
        connection.execute(insert).await?;
    }
    Ok(())
}

fn rollup_values(key: &RollupKey, sums: &UsageSums) -> [SqlValue; 17] {
    let RollupKey { length, start, account, about, part_of } = key;
    let Amounts { money, thinking, requests, tool_calls } = sums.spent;
    [
        length.to_sql(),
        start.to_sql(),
        account.to_sql(),
        about.model.as_deref().to_sql(),
        about.user.as_deref().to_sql(),
        about.tag.as_deref().to_sql(),
        part_of.as_deref().to_sql(),
        money.to_sql(),
        thinking.to_sql(),
        tool_calls.to_sql(),
        requests.to_sql(),
        sums.overrun.to_sql(),
        sums.settled.to_sql(),
        sums.prompt.to_sql(),
        sums.overhead.to_sql(),
        sums.solution.to_sql(),
        sums.other.to_sql(),
    ]
}

fn seal(row: &SqlRow) -> Result<Seal, sqlx::Error> {
    Ok(Seal {
        number: row.get("number")?,
        through: row.get("through")?,
        resolutions: usize::try_from(row.get::<i64>("resolutions")?).unwrap_or(0),
        at: row.time("sealed_at")?,
        hash: row.bytes("hash")?,
    })
}

fn rollup(row: &SqlRow) -> Result<(RollupKey, UsageSums), sqlx::Error> {
    let name = |column| row.get::<Option<&str>>(column).map(|name| name.map(Into::into));
    let (model, user, tag) = (name("model")?, name("end_user")?, name("tag")?);
    let key = RollupKey {
        length: row.get("span")?,
        start: row.time("start")?,
        account: row.account("account")?,
        about: RequestScope { model, user, tag, ..RequestScope::default() },
        part_of: name("part_of")?,
    };
    Ok((key, usage_sums(row)?))
}
