//! Seals in PostgreSQL while others write.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use crate::tests::cluster::cluster;
use crate::tests::postgres::connect;
use crate::{Archive, DatabaseUrl, PostgresJournal, PostgresSettings, Settings, VerifyReport};
use stint_ledger::conformance::{amounts, dispatched, resolved};
use stint_ledger::{Journal, JournalEntry, ResolutionKind};
use stint_types::units::Timestamp;

async fn verify(url: &str) -> VerifyReport {
    let (url, lease) = (DatabaseUrl::new(url), Duration::from_secs(10));
    let settings = Settings::Postgres(PostgresSettings { url, lease });
    Archive::open(&settings).await.unwrap().verify().await.unwrap()
}

/// A transaction that has an id, and has written nothing yet.
async fn begin(url: &str) -> PgConnection {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::raw_sql("BEGIN; SELECT pg_current_xact_id()").execute(&mut connection).await.unwrap();
    connection
}

async fn resolve(connection: &mut PgConnection, number: u64) {
    let id = format!("decode('{number:032x}', 'hex')");
    let sql = format!(
        "INSERT INTO reservations (id, account, money, thinking, tool_calls, if_abandoned, admitted_at, expires_at) \
         VALUES ({id}, 'a', 9, 0, 0, 'whole', 1, 2); \
         INSERT INTO resolutions (reservation, how, account, admitted_at, resolved_at, money, thinking, tool_calls, \
             overrun_money, overrun_thinking, overrun_tool_calls, prompt, overhead, solution, other, outcome) \
         VALUES ({id}, 'settled', 'a', 1, 2, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 'stop')"
    );
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await.unwrap();
}

/// The older transaction takes the higher number and is committed first: all that is older than any transaction that
/// runs can be seen then, and still a lower number is missing.
#[tokio::test]
async fn a_seal_waits_for_lower_numbers_that_cannot_be_seen_yet() {
    let url = cluster().database();
    let journal = PostgresJournal::new(connect(&url).await);
    let mut older = begin(&url).await;
    let mut younger = begin(&url).await;
    resolve(&mut younger, 1).await;
    resolve(&mut older, 2).await;
    sqlx::raw_sql("COMMIT").execute(&mut older).await.unwrap();
    let mut sealing = journal.seal(Timestamp(0));
    let early = tokio::time::timeout(Duration::from_millis(300), &mut sealing).await;
    assert!(early.is_err(), "it would miss the first");
    // What begins now does not hold it up.
    let mut third = begin(&url).await;
    resolve(&mut third, 3).await;
    sqlx::raw_sql("COMMIT").execute(&mut younger).await.unwrap();
    let seal = sealing.await.unwrap().unwrap();
    assert_eq!((seal.resolutions, seal.through), (2, 2));
    sqlx::raw_sql("ROLLBACK").execute(&mut third).await.unwrap();
    assert_eq!(verify(&url).await.differences, Vec::<String>::new());
}

async fn write(url: &str, writer: u64, batches: u64) {
    let journal = PostgresJournal::new(connect(url).await);
    for batch in 0..batches {
        let rows: Vec<_> = (0..1 + (batch * 7 + writer) % 5)
            .map(|number| dispatched("a", i64::try_from(batch * 400_000 + number).unwrap(), amounts(9, 9)))
            .collect();
        let ends = rows
            .iter()
            .map(|row| JournalEntry::Resolved(resolved(row, ResolutionKind::Settled, amounts(5, 3))));
        let entries: Vec<JournalEntry> =
            rows.iter().cloned().map(JournalEntry::Dispatched).chain(ends).collect();
        journal.append(&entries).await.unwrap();
        // Whatever is there already takes a number, too.
        journal.append(&entries).await.unwrap();
    }
}

/// Of transactions that take their time between the number and the commit.
async fn dawdle(url: &str, writer: u64, batches: u64) {
    for batch in 0..batches {
        let mut connection = begin(url).await;
        resolve(&mut connection, 1 + writer * 1_000 + batch).await;
        tokio::time::sleep(Duration::from_millis(batch * 13 % 20)).await;
        sqlx::raw_sql("COMMIT").execute(&mut connection).await.unwrap();
    }
}

/// Seals until all is written and sealed; returns how many seals it made.
async fn seal(url: &str, is_over: &AtomicBool) -> usize {
    let (journal, mut seals) = (PostgresJournal::new(connect(url).await), 0);
    loop {
        let is_last = is_over.load(Ordering::SeqCst);
        match journal.seal(Timestamp(0)).await.unwrap() {
            Some(_) => seals += 1,
            None if is_last => return seals,
            None => tokio::task::yield_now().await,
        }
    }
}

#[tokio::test]
async fn seals_beside_three_writers_miss_no_entry() {
    let url = &cluster().database();
    drop(connect(url).await);
    let is_over = AtomicBool::new(false);
    let writers = async {
        let all = |writer| async move { tokio::join!(write(url, writer, 80), dawdle(url, writer, 40)) };
        join_all((0..3).map(all)).await;
        is_over.store(true, Ordering::SeqCst);
    };
    let (_, one, other) = tokio::join!(writers, seal(url, &is_over), seal(url, &is_over));
    let seals = one + other + seal(url, &is_over).await;
    let written: u64 = (0..3).flat_map(|w| (0..80).map(move |batch| 1 + (batch * 7 + w) % 5)).sum();
    let expected = written + 3 * 40;
    let report = verify(url).await;
    assert_eq!(report.differences, Vec::<String>::new());
    assert_eq!((report.resolutions, report.sealed), (expected, expected));
    assert_eq!(report.seals, seals);
    assert!(seals > 5, "they were made meanwhile: {seals}");
}

#[tokio::test]
async fn of_replicas_that_seal_at_once_one_does() {
    let url = cluster().database();
    write(&url, 0, 10).await;
    let journals = join_all((0..5).map(|_| connect(&url))).await;
    let sealed = join_all(
        journals
            .into_iter()
            .map(|database| async { PostgresJournal::new(database).seal(Timestamp(0)).await.unwrap() }),
    )
    .await;
    assert_eq!(sealed.iter().flatten().count(), 1);
    let report = verify(&url).await;
    assert_eq!((report.seals, report.sealed, report.is_right()), (1, report.resolutions, true));
}

#[tokio::test]
async fn a_seal_that_is_broken_off_leaves_nothing() {
    let url = cluster().database();
    write(&url, 0, 10).await;
    let mut holder = begin(&url).await;
    resolve(&mut holder, 1).await;
    write(&url, 1, 1).await;
    let journal = PostgresJournal::new(connect(&url).await);
    let late = tokio::time::timeout(Duration::from_millis(200), journal.seal(Timestamp(0))).await;
    assert!(late.is_err(), "it waits");
    sqlx::raw_sql("COMMIT").execute(&mut holder).await.unwrap();
    assert_eq!(journal.last_seal().await.unwrap(), None);
    journal.seal(Timestamp(0)).await.unwrap().expect("the next caller seals");
    let report = verify(&url).await;
    assert_eq!((report.is_right(), report.sealed), (true, report.resolutions));
}
