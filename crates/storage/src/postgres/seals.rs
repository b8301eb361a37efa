//! Making seals in PostgreSQL while replicas write.

use std::time::Duration;

use sqlx::{Connection, PgConnection, Postgres};
use tokio::time::{Instant, sleep};

use crate::journal::{last_seal, newest_resolution, read_records, write_seal};
use crate::sql::sql;
use stint_ledger::{Seal, SealBuilder};
use stint_types::units::Timestamp;

/// The replica that seals holds this lock of the database's. The others wait for it, and find it done.
const LOCK: i64 = i64::from_be_bytes(*b"stintsea");

/// Longer than any of our transactions may take: their statements have a limit, and so has their silence.
const WRITERS_MAX: Duration = Duration::from_secs(15);

/// How long to wait before looking again who writes: less at first.
const POLL_MAX: Duration = Duration::from_millis(100);

/// What is committed while it is looked at is seen by the next statement, whatever the server's default is.
const BEGIN_READ_COMMITTED: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// Transactions that may have been given numbers that nobody else can see yet.
const WRITERS: &str = "\
    FROM pg_locks \
    WHERE locktype = 'relation' AND relation = 'resolutions'::regclass AND mode = 'RowExclusiveLock' AND granted \
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// Seals the oldest resolutions that are not sealed yet. Nothing, where another did so while this one waited for it.
pub(super) async fn seal(connection: &mut PgConnection, now: Timestamp) -> Result<Option<Seal>, sqlx::Error> {
    let known = last_seal(connection).await?;
    let mut transaction = connection.begin_with(BEGIN_READ_COMMITTED).await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(LOCK).execute(&mut *transaction).await?;
    let previous = last_seal(&mut *transaction).await?;
    if previous != known {
        return Ok(None);
    }
    let newest = newest_resolution(&mut *transaction).await?;
    if previous.as_ref().is_some_and(|seal| newest <= seal.through) {
        return Ok(None);
    }
    await_writers(&mut transaction).await?;
    let mut sealing = SealBuilder::after(previous.as_ref());
    while sealing.remaining() > 0 {
        let part = read_records(sealing.through(), newest, sealing.remaining(), &mut *transaction).await?;
        if part.is_empty() {
            break;
        }
        part.iter().for_each(|record| sealing.add(record));
    }
    let Some((seal, rollups)) = sealing.finish(now) else { return Ok(None) };
    write_seal(&seal, rollups, &mut *transaction).await?;
    transaction.commit().await?;
    Ok(Some(seal))
}

/// Waits until every transaction has ended that has written resolutions and may not be seen yet. Numbers are handed out
/// in order: a transaction that was given a lower one than can be seen now holds its lock now, and until what it wrote is
/// seen.
async fn await_writers(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let writers = sql("SELECT DISTINCT virtualtransaction {}", &[&WRITERS]);
    let writers = sqlx::query_scalar(writers.into_driver::<Postgres>());
    let writers: Vec<String> = writers.fetch_all(&mut *connection).await?;
    let still = sql("SELECT count(*) {} AND virtualtransaction = ANY($1)", &[&WRITERS]);
    let (began, mut pause) = (Instant::now(), Duration::from_millis(1));
    while !writers.is_empty() {
        let still = sqlx::query_scalar::<_, i64>(still.clone().into_driver::<Postgres>()).bind(&writers);
        if still.fetch_one(&mut *connection).await? == 0 {
            break;
        }
        if began.elapsed() > WRITERS_MAX {
            return Err(writers_timeout());
        }
        sleep(pause).await;
        pause = (pause * 2).min(POLL_MAX);
    }
    Ok(())
}

fn writers_timeout() -> sqlx::Error {
    let message = "a transaction that writes to the table resolutions does not end, and nothing can be sealed beside it: \
                pg_locks and pg_stat_activity show it";
    sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, message))
}
