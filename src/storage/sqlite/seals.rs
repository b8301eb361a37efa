//! Making seals, and reading them back.

use std::collections::BTreeMap;

use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Row, SqliteConnection, Transaction};

use crate::ledger::{About, AccountId, Rollups, Seal, Sealing, Sums};
use crate::units::Timestamp;

use super::Sqlite;
use super::records::records;
use super::rows::{amounts_i64, push_about, whole};

/// Rows in one statement: the database takes 32,766 values, and a rollup has 17.
const ROWS_MAX: usize = 1024;

/// Sums over all time, by account and by what the requests were about.
pub(super) type Balances = BTreeMap<(AccountId, About), Sums>;

/// Seals the oldest resolutions that are not sealed yet. What they come to is read and summed up beside the writer;
/// it is held for one short transaction, in which a seal that another made meanwhile is a conflict.
pub(super) async fn seal(database: &Sqlite, now: Timestamp) -> Result<Option<Seal>, sqlx::Error> {
    let (previous, newest) = {
        let mut reader = database.reader().await;
        (last(&mut reader).await?, newest(&mut reader).await?)
    };
    let mut sealing = Sealing::after(previous.as_ref());
    while sealing.room() > 0 {
        // Others may read between the parts; what is sealed here does not change any more.
        let part = records(&mut *database.reader().await, sealing.through(), newest, sealing.room()).await?;
        if part.is_empty() {
            break;
        }
        part.iter().for_each(|record| sealing.add(record));
    }
    let Some((seal, rollups)) = sealing.finish(now) else { return Ok(None) };
    let mut writer = database.writer().await?;
    write(database.begin(&mut writer).await?, &seal, rollups).await?;
    Ok(Some(seal))
}

/// The last seal.
pub(super) async fn last(connection: &mut SqliteConnection) -> Result<Option<Seal>, sqlx::Error> {
    let sql = "SELECT number, through, resolutions, sealed_at, hash FROM seals ORDER BY number DESC LIMIT 1";
    sqlx::query(sql).fetch_optional(connection).await?.as_ref().map(read).transpose()
}

/// All seals, the oldest first.
pub(super) async fn all(connection: &mut SqliteConnection) -> Result<Vec<Seal>, sqlx::Error> {
    let sql = "SELECT number, through, resolutions, sealed_at, hash FROM seals ORDER BY number";
    sqlx::query(sql).fetch_all(connection).await?.iter().map(read).collect()
}

/// The number of the last resolution; 0 where there is none.
pub(super) async fn newest(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT coalesce(max(number), 0) FROM resolutions").fetch_one(connection).await
}

fn read(row: &SqliteRow) -> Result<Seal, sqlx::Error> {
    let hash: &[u8] = row.try_get("hash")?;
    Ok(Seal {
        number: row.try_get("number")?,
        through: row.try_get("through")?,
        resolutions: usize::try_from(row.try_get::<i64, _>("resolutions")?).unwrap_or(0),
        at: Timestamp(row.try_get("sealed_at")?),
        hash: hash.try_into().map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
    })
}

/// What a seal's rollups come to over all time.
pub(super) fn balances(rollups: &Rollups) -> Balances {
    let mut balances = Balances::new();
    for ((_, account, about), sums) in rollups {
        *balances.entry((account.clone(), about.clone())).or_default() += *sums;
    }
    balances
}

async fn write(
    mut transaction: Transaction<'_, sqlx::Sqlite>,
    seal: &Seal,
    rollups: Rollups,
) -> Result<(), sqlx::Error> {
    let balances: Vec<_> = balances(&rollups).into_iter().enumerate().collect();
    let rollups: Vec<_> = rollups.into_iter().enumerate().collect();
    sqlx::query("INSERT INTO seals (number, through, resolutions, sealed_at, hash) VALUES (?, ?, ?, ?, ?)")
        .bind(seal.number)
        .bind(seal.through)
        .bind(i64::try_from(seal.resolutions).unwrap_or(i64::MAX))
        .bind(seal.at.0)
        .bind(seal.hash.to_vec())
        .execute(&mut *transaction)
        .await?;
    for part in rollups.chunks(ROWS_MAX) {
        insert_rollups(seal.number, part).build().persistent(false).execute(&mut *transaction).await?;
    }
    for part in balances.chunks(ROWS_MAX) {
        insert_balances(seal.number, part).build().persistent(false).execute(&mut *transaction).await?;
    }
    transaction.commit().await
}

type Line<K> = (usize, (K, Sums));

fn insert_rollups(seal: i64, lines: &[Line<(Timestamp, AccountId, About)>]) -> QueryBuilder<sqlx::Sqlite> {
    let mut statement = QueryBuilder::new(
        "INSERT INTO rollups \
         (seal, line, quarter, account, model, end_user, tag, money, thinking, tool_calls, requests, \
          overrun_money, settled, prompt, overhead, solution, other) ",
    );
    statement.push_values(lines, |mut values, (line, ((quarter, account, about), sums))| {
        values.push_bind(seal).push_bind(i64::try_from(*line).unwrap_or(i64::MAX)).push_bind(quarter.0);
        values.push_bind(account.as_str().to_owned());
        push_about(&mut values, about);
        for number in charged(sums) {
            values.push_bind(number);
        }
        for tokens in [sums.prompt, sums.overhead, sums.solution, sums.other] {
            values.push_bind(whole(tokens.0));
        }
    });
    statement
}

fn insert_balances(seal: i64, lines: &[Line<(AccountId, About)>]) -> QueryBuilder<sqlx::Sqlite> {
    let mut statement = QueryBuilder::new(
        "INSERT INTO balances \
         (seal, line, account, model, end_user, tag, money, thinking, tool_calls, requests, overrun_money, settled) ",
    );
    statement.push_values(lines, |mut values, (line, ((account, about), sums))| {
        values.push_bind(seal).push_bind(i64::try_from(*line).unwrap_or(i64::MAX));
        values.push_bind(account.as_str().to_owned());
        push_about(&mut values, about);
        for number in charged(sums) {
            values.push_bind(number);
        }
    });
    statement
}

/// Money, thinking tokens, tool calls, requests, overrun and settled ones.
fn charged(sums: &Sums) -> [i64; 6] {
    let [money, thinking, tool_calls] = amounts_i64(sums.spent);
    [money, thinking, tool_calls, whole(sums.spent.requests.0), whole(sums.overrun.0), whole(sums.settled)]
}
