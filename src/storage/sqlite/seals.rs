//! Making seals, and reading them back.

use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Row, SqliteConnection, Transaction};

use crate::ledger::{About, AccountId, Rollups, Seal, Sealing, Span, Sums};
use crate::units::Timestamp;

use super::Sqlite;
use super::records::records;
use super::rows::{amounts_i64, push_about, whole};

/// Rows in one statement: the database takes 32,766 values, and a rollup has 18.
const ROWS_MAX: usize = 1024;

/// Seals the oldest resolutions that are not sealed yet. What they come to is read and summed up beside the writer;
/// it is held for one short transaction, in which a seal that another made meanwhile is a conflict.
pub(super) async fn seal(database: &Sqlite, now: Timestamp) -> Result<Option<Seal>, sqlx::Error> {
    let (previous, newest) = {
        let mut reader = database.slow_reader().await;
        (last(&mut reader).await?, newest(&mut reader).await?)
    };
    let mut sealing = Sealing::after(previous.as_ref());
    while sealing.room() > 0 {
        // Others may read between the parts; what is sealed here does not change any more.
        let part =
            records(&mut *database.slow_reader().await, sealing.through(), newest, sealing.room()).await?;
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

async fn write(
    mut transaction: Transaction<'_, sqlx::Sqlite>,
    seal: &Seal,
    rollups: Rollups,
) -> Result<(), sqlx::Error> {
    let lines: Vec<_> = rollups.into_iter().enumerate().collect();
    sqlx::query("INSERT INTO seals (number, through, resolutions, sealed_at, hash) VALUES (?, ?, ?, ?, ?)")
        .bind(seal.number)
        .bind(seal.through)
        .bind(i64::try_from(seal.resolutions).unwrap_or(i64::MAX))
        .bind(seal.at.0)
        .bind(seal.hash.to_vec())
        .execute(&mut *transaction)
        .await?;
    for part in lines.chunks(ROWS_MAX) {
        insert_rollups(seal.number, part).build().persistent(false).execute(&mut *transaction).await?;
    }
    transaction.commit().await
}

type Line = (usize, ((Span, Timestamp, AccountId, About), Sums));

fn insert_rollups(seal: i64, lines: &[Line]) -> QueryBuilder<sqlx::Sqlite> {
    let mut statement = QueryBuilder::new(
        "INSERT INTO rollups \
         (seal, line, span, start, account, model, end_user, tag, money, thinking, tool_calls, requests, \
          overrun_money, settled, prompt, overhead, solution, other) ",
    );
    statement.push_values(lines, |mut values, (line, ((span, start, account, about), sums))| {
        values.push_bind(seal).push_bind(i64::try_from(*line).unwrap_or(i64::MAX));
        values.push_bind(span.length()).push_bind(start.0).push_bind(account.as_str().to_owned());
        push_about(&mut values, about);
        for amount in amounts_i64(sums.spent) {
            values.push_bind(amount);
        }
        values.push_bind(whole(sums.spent.requests.0)).push_bind(whole(sums.overrun.0));
        values.push_bind(whole(sums.settled));
        for tokens in [sums.prompt, sums.overhead, sums.solution, sums.other] {
            values.push_bind(whole(tokens.0));
        }
    });
    statement
}
