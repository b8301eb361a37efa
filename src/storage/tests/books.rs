//! Verifying, backing up and restoring.

use std::path::Path;

use sqlx::{ConnectOptions, Connection, SqliteConnection};

use crate::ledger::conformance::{amounts, dispatched, resolved};
use crate::ledger::{Entry, Extended, How, Journal, Metered, Sums, UsageQuery};
use crate::tasks::Tasks;
use crate::units::{Money, Timestamp, Tokens};

use super::super::{Report, SqliteArchive, restore};
use super::{detail, ledger, open, reserve, settings};

/// Two sealed days of two requests, one request that is not sealed, and one that is open; each with an extension and
/// a metering.
async fn keep_books(path: &Path) {
    let journal = open(path).await;
    for day in 0..3 {
        for number in 0..2 {
            let row = dispatched("acme/alice", 1_000_000 * (day + 1) + number, amounts(50, 60));
            let more = amounts(7, 0);
            let extended = Entry::Extended(Extended { id: row.id, step: 1, more, model: None });
            let metered = Entry::Metered(Metered { id: row.id, step: 1, spent: amounts(3, 3) });
            let end = Entry::Resolved(resolved(&row, How::Settled, amounts(20, 10)));
            let begun = [Entry::Dispatched(row), extended, metered];
            journal.append(&begun).await.unwrap();
            if (day, number) != (2, 1) {
                journal.append(&[end]).await.unwrap();
            }
        }
        if day < 2 {
            journal.seal(Timestamp(day)).await.unwrap();
        }
    }
}

async fn connect(path: &Path) -> SqliteConnection {
    sqlx::sqlite::SqliteConnectOptions::new().filename(path).foreign_keys(false).connect().await.unwrap()
}

async fn verify(path: &Path) -> Report {
    SqliteArchive::open(path).await.unwrap().verify().await.unwrap()
}

/// Changes the books behind the ledger's back.
async fn tamper(path: &Path, sql: &'static str) {
    let mut connection = connect(path).await;
    for table in ["reservations", "extensions", "meterings", "resolutions", "seals"] {
        for trigger in ["kept", "fixed"] {
            let drop = format!("DROP TRIGGER IF EXISTS {table}_{trigger}");
            sqlx::raw_sql(sqlx::AssertSqlSafe(drop)).execute(&mut connection).await.unwrap();
        }
    }
    let unchecked = "PRAGMA ignore_check_constraints = ON";
    sqlx::raw_sql(unchecked).execute(&mut connection).await.unwrap();
    sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// Whatever is changed, a difference tells of it.
async fn check_found(sql: &'static str, told: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    keep_books(&path).await;
    tamper(&path, sql).await;
    let report = verify(&path).await;
    let is_told = report.differences.iter().any(|difference| difference.contains(told));
    assert!(is_told, "{told:?} is not among {:#?} after {sql}", report.differences);
}

/// LB-24: what is read at a start is what all entries come to.
#[tokio::test]
async fn books_that_were_kept_are_right() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    keep_books(&path).await;
    let report = verify(&path).await;
    assert_eq!(report.differences, Vec::<String>::new());
    assert_eq!((report.resolutions, report.sealed, report.seals, report.open), (5, 4, 2, 1));
    assert_eq!(report.spent, Money(100));
}

#[tokio::test]
async fn the_books_are_sealed_once_a_day() {
    const DAY: i64 = 24 * 3600 * 1000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    let (tasks, now) = (Tasks::default(), Timestamp(500 * DAY - 1));
    let ledger = ledger(&tasks, open(&path).await, now).await;
    assert_eq!(ledger.seal_daily(now).await.unwrap(), [], "nothing is not sealed");
    for (now, seals) in [(now, 1), (now, 0), (Timestamp(500 * DAY), 1), (Timestamp(501 * DAY - 1), 0)] {
        let mut reservation = reserve(&ledger, 10);
        reservation.dispatch().await.unwrap();
        let settling = reservation.settle(Money(3), Tokens(1), detail());
        assert!(settling.journalled(std::time::Duration::from_secs(60)).await.journalled);
        assert_eq!(ledger.seal_daily(now).await.unwrap().len(), seals, "{now}");
    }
    assert!(verify(&path).await.is_right());
}

#[tokio::test]
async fn a_change_to_a_row_of_any_kind_is_found() {
    check_found("UPDATE reservations SET price_output = 1 WHERE admitted_at = 1000000", "the hash of seal 1")
        .await;
    check_found("UPDATE reservations SET end_user = 'x' WHERE admitted_at = 2000001", "the hash of seal 2")
        .await;
    check_found("UPDATE reservations SET account = 'acme/bob' WHERE admitted_at = 3000000", "the account of")
        .await;
    check_found("UPDATE extensions SET model = 'x'", "the hash of seal 1").await;
    check_found("UPDATE meterings SET thinking = 9", "the hash of seal 2").await;
    check_found("UPDATE resolutions SET outcome = 'x' WHERE number = 2", "the hash of seal 1").await;
    check_found("UPDATE resolutions SET money = 21 WHERE number = 3", "a rollup of seal 2").await;
    check_found("UPDATE resolutions SET money = 21 WHERE number = 3", "a balance").await;
    check_found("UPDATE resolutions SET money = 90 WHERE number = 5", "the overrun of resolution 5").await;
    check_found(
        "UPDATE resolutions SET how = 'voided' WHERE number = 5",
        "the voided charge of resolution 5",
    )
    .await;
    check_found("UPDATE resolutions SET how = 'x' WHERE number = 5", "a row cannot be read").await;
    check_found("UPDATE seals SET hash = zeroblob(32) WHERE number = 1", "the hash of seal 2").await;
    check_found("UPDATE seals SET sealed_at = 9 WHERE number = 2", "the hash of seal 2").await;
    check_found("UPDATE rollups SET money = money + 1 WHERE seal = 1", "a rollup of seal 1").await;
    check_found("UPDATE rollups SET solution = 0 WHERE seal = 2", "a rollup of seal 2").await;
    check_found("UPDATE rollups SET thinking = 1 WHERE seal = 2 AND span = 0", "a balance:").await;
}

#[tokio::test]
async fn a_row_that_is_missing_or_there_twice_is_found() {
    check_found("DELETE FROM reservations WHERE admitted_at = 3000000", "has no reservation").await;
    check_found(
        "DELETE FROM reservations WHERE admitted_at = 3000001",
        "is among the open reservations and is none",
    )
    .await;
    check_found("DELETE FROM extensions", "the hash of seal 1").await;
    check_found("DELETE FROM meterings", "the hash of seal 1").await;
    check_found("DELETE FROM resolutions WHERE number = 2", "the number of resolutions of seal 1: 2").await;
    check_found("DELETE FROM resolutions WHERE number = 5", "neither a resolution nor a place").await;
    check_found("DELETE FROM seals WHERE number = 1", "the number of seal 2").await;
    check_found("DELETE FROM rollups WHERE seal = 2", "a rollup of seal 2").await;
    check_found("DELETE FROM rollups WHERE seal = 1 AND span = 86400000", "a rollup of seal 1").await;
    check_found("DELETE FROM open_reservations", "neither a resolution nor a place").await;
    check_found(
        "INSERT INTO open_reservations SELECT reservation FROM resolutions LIMIT 1",
        "is among the open reservations and is resolved",
    )
    .await;
    check_found(
        "CREATE TABLE copy AS SELECT * FROM resolutions; \
         INSERT INTO copy SELECT number + 5, reservation, how, account, model, end_user, tag, admitted_at, resolved_at, \
             money, thinking, tool_calls, overrun_money, overrun_thinking, overrun_tool_calls, prompt, overhead, \
             solution, other, outcome FROM copy WHERE number = 5; \
         DROP TABLE resolutions; ALTER TABLE copy RENAME TO resolutions; \
         CREATE INDEX resolutions_by_admission ON resolutions (admitted_at)",
        "is resolved more than once",
    )
    .await;
}

#[tokio::test]
async fn a_negative_amount_is_found() {
    check_found("UPDATE reservations SET money = -1 WHERE admitted_at = 3000001", "has a negative amount")
        .await;
    check_found("UPDATE extensions SET thinking = -1", "an extension of").await;
    check_found("UPDATE meterings SET money = -1", "a metering of").await;
    check_found("UPDATE resolutions SET prompt = -1 WHERE number = 5", "the resolution of").await;
}

#[tokio::test]
async fn entries_and_seals_are_not_changed_by_accident() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    keep_books(&path).await;
    let mut connection = connect(&path).await;
    for table in ["reservations", "extensions", "meterings", "resolutions", "seals"] {
        let column = if table == "seals" { "sealed_at" } else { "money" };
        for sql in [format!("DELETE FROM {table}"), format!("UPDATE {table} SET {column} = 1")] {
            let refused = sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await.unwrap_err();
            assert!(refused.to_string().contains("immutable"), "{table}: {refused}");
        }
    }
}

#[tokio::test]
async fn the_books_can_be_read_and_copied_beside_who_writes_them() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("stint.db"), folder.path().join("copy.db"));
    keep_books(&path).await;
    let journal = open(&path).await;
    let mut archive = SqliteArchive::open(&path).await.unwrap();
    assert!(archive.verify().await.unwrap().is_right());
    let row = dispatched("acme/alice", 9_000_000, amounts(50, 60));
    journal.append(&[Entry::Dispatched(row)]).await.unwrap();
    assert_eq!(archive.verify().await.unwrap().open, 2, "it sees what is committed meanwhile");
    archive.back_up(&copy).await.unwrap();
    assert_eq!(verify(&copy).await, archive.verify().await.unwrap());
    let refused = archive.back_up(&copy).await.unwrap_err();
    assert!(refused.to_string().contains("there is no such file"), "{refused}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn a_backup_is_restored_where_nothing_stands_or_it_is_moved_aside() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("stint.db"), folder.path().join("copy.db"));
    keep_books(&path).await;
    SqliteArchive::open(&path).await.unwrap().back_up(&copy).await.unwrap();
    let (elsewhere, here) = (settings(&folder.path().join("new/place.db")), settings(&path));
    let (aside, report) = restore(&copy, &elsewhere, false).await.unwrap();
    assert_eq!((aside, report.resolutions), (None, 5));
    assert_eq!(open(&elsewhere.path).await.balances().await.unwrap()[0].spent.money, Money(100));

    let journal = open(&path).await;
    let refused = restore(&copy, &here, true).await.unwrap_err().to_string();
    assert!(refused.starts_with("another stint process"), "{refused}");
    journal.append(&[Entry::Dispatched(dispatched("later", 1, amounts(1, 1)))]).await.unwrap();
    drop(journal);
    let refused = restore(&copy, &here, false).await.unwrap_err().to_string();
    assert!(refused.contains("is there already"), "{refused}");
    let (aside, _) = restore(&copy, &here, true).await.unwrap();
    assert_eq!(open(&aside.unwrap()).await.unresolved().await.unwrap().len(), 2);
    assert_eq!(open(&path).await.unresolved().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_backup_that_is_wrong_is_not_restored() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("stint.db"), folder.path().join("copy.db"));
    keep_books(&path).await;
    SqliteArchive::open(&path).await.unwrap().back_up(&copy).await.unwrap();
    tamper(&copy, "UPDATE resolutions SET money = 1 WHERE number = 1").await;
    let refused = restore(&copy, &settings(&path), true).await.unwrap_err().to_string();
    assert!(refused.contains("its books are wrong"), "{refused}");
    let nowhere = settings(&folder.path().join("nowhere.db"));
    restore(&copy, &nowhere, false).await.unwrap_err();
    assert!(!nowhere.path.exists(), "nothing is left of an attempt");
    assert!(verify(&path).await.is_right(), "what stood there stands");
    let no_file = folder.path().join("missing.db");
    assert!(SqliteArchive::open(&no_file).await.unwrap_err().to_string().starts_with("cannot open"));
}

#[tokio::test]
async fn an_export_shows_every_resolution_and_comes_to_the_balances() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    keep_books(&path).await;
    let (mut sums, mut numbers) = (Sums::default(), Vec::new());
    let mut archive = SqliteArchive::open(&path).await.unwrap();
    let shown = archive.each(|record| {
        sums.add(&record.resolved);
        numbers.push(record.number);
        assert_eq!(record.held().money, Money(57));
        Ok(())
    });
    shown.await.unwrap();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    let query = UsageQuery {
        account: None,
        from: Timestamp(i64::MIN),
        to: Timestamp(i64::MAX),
        by: Default::default(),
        after: None,
        limit: 10,
    };
    assert_eq!(archive.usage(&query).await.unwrap()[0].sums, sums);
}
