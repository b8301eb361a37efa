//! A disk that is full, files that may not be written, and migrations that are broken off.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use sqlx::{ConnectOptions, Connection, Row, SqliteConnection};

use stint_ledger::conformance::{amounts, dispatched};
use stint_ledger::{DatabaseFault, Journal, JournalEntry, Ledger, LedgerError};
use stint_types::tasks::Tasks;
use stint_types::units::{Money, Timestamp, Tokens};

use super::super::sqlite::MIGRATIONS;
use super::super::{Database, Settings, Sqlite, SqliteArchive, SqliteJournal, StorageError, back_up};
use super::{detail, ledger, open, patiently, refusal, reserve, settings};

const PATIENCE: Duration = Duration::from_secs(30);

/// Lets the file grow to so many pages, as a disk with no more room would.
async fn room(database: &Sqlite, pages: i64) {
    let sql = format!("PRAGMA max_page_count = {pages}");
    sqlx::query(sqlx::AssertSqlSafe(sql))
        .fetch_all(&mut *database.lock_writer().await.unwrap())
        .await
        .unwrap();
}

/// Dispatches until the disk is full; returns how often that went well.
async fn fill(ledger: &Ledger) -> u64 {
    for dispatched in 0.. {
        let mut reservation = reserve(ledger, 10);
        match reservation.dispatch().await {
            Ok(()) => drop(reservation.settle(Money(3), Tokens(1), detail())),
            Err(LedgerError::Journal(error)) => {
                let cause = std::error::Error::source(&error).unwrap().to_string();
                assert!(cause.contains("full"), "{cause}");
                drop(reservation.void());
                return dispatched;
            }
            Err(LedgerError::Stalled) => {
                drop(reservation.void());
                return dispatched;
            }
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("a disk is full some time")
}

#[tokio::test]
async fn on_a_full_disk_nothing_new_is_dispatched_and_settlements_wait_for_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    let database = Arc::new(patiently(async || Sqlite::open(&settings(&path)).await).await);
    let tasks = Tasks::default();
    let ledger = ledger(&tasks, SqliteJournal::new(database.clone()), Timestamp::now()).await;
    let mut running = Vec::new();
    for _ in 0..100 {
        let mut reservation = reserve(&ledger, 10);
        reservation.dispatch().await.unwrap();
        running.push(reservation);
    }
    room(&database, 1).await;
    let before = fill(&ledger).await;
    let running = running.into_iter().map(|reservation| reservation.settle(Money(3), Tokens(1), detail()));
    let mut running: Vec<_> = running.collect();
    let late = running.pop().unwrap().wait_durable(Duration::from_millis(100)).await;
    assert!(!late.is_recorded(), "a running request gets an answer after a bounded time");
    assert!(ledger.stats().stalled && ledger.stats().failures > 0);
    assert_eq!(ledger.stats().outage.unwrap().fault, Some(DatabaseFault::DiskFull));
    assert_eq!(reserve(&ledger, 10).dispatch().await, Err(LedgerError::Stalled));
    room(&database, i64::from(u32::MAX) - 1).await;
    for settling in running {
        assert!(settling.wait_durable(PATIENCE).await.is_recorded());
    }
    let mut again = reserve(&ledger, 10);
    again.dispatch().await.unwrap();
    assert!(again.settle(Money(3), Tokens(1), detail()).wait_durable(PATIENCE).await.is_recorded());
    let settled = before + 101;
    assert_eq!(ledger.totals()[0].spent.money, Money(3 * settled));
    let journal = SqliteJournal::new(database);
    assert_eq!(journal.unresolved().await.unwrap(), []);
    assert_eq!(journal.balances().await.unwrap()[0].settled, settled);
    assert!(SqliteArchive::open(&path).await.unwrap().verify().await.unwrap().is_right());
}

#[tokio::test]
async fn while_its_file_is_deleted_or_replaced_nothing_is_dispatched_and_it_goes_on_when_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let (path, aside) = (folder.path().join("stint.db"), folder.path().join("aside.db"));
    let database = Arc::new(patiently(async || Sqlite::open(&settings(&path)).await).await);
    let tasks = Tasks::default();
    let ledger = ledger(&tasks, SqliteJournal::new(database), Timestamp::now()).await;
    let mut running = reserve(&ledger, 10);
    running.dispatch().await.unwrap();
    ledger.check_place();
    assert!(!ledger.stats().stalled);
    std::fs::rename(&path, &aside).unwrap();
    let mut refused = reserve(&ledger, 10);
    assert!(refused.dispatch().await.is_err(), "the first request finds it out");
    drop(refused.void());
    std::fs::write(&path, "").unwrap();
    ledger.check_place();
    let stats = ledger.stats();
    assert!(stats.stalled, "another file is not it");
    assert_eq!(stats.outage.unwrap().fault, Some(DatabaseFault::FileGone));
    let running = running.settle(Money(3), Tokens(1), detail());
    std::fs::rename(&aside, &path).unwrap();
    assert!(running.wait_durable(PATIENCE).await.is_recorded(), "what ran is written when it is back");
    ledger.check_place();
    assert!(!ledger.stats().stalled && ledger.stats().outage.is_none());
    let mut again = reserve(&ledger, 10);
    again.dispatch().await.unwrap();
    assert!(again.settle(Money(3), Tokens(1), detail()).wait_durable(PATIENCE).await.is_recorded());
}

#[tokio::test]
async fn a_file_that_goes_while_nobody_asks_is_missed_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    let tasks = Tasks::default();
    let ledger = ledger(&tasks, open(&path).await, Timestamp::now()).await;
    std::fs::remove_file(&path).unwrap();
    ledger.check_place();
    assert!(ledger.stats().stalled);
    assert_eq!(ledger.stats().outage.unwrap().fault, Some(DatabaseFault::FileGone));
}

/// CR-07: a file that is for reading only is refused at the start, not at the first request.
#[cfg(unix)]
#[tokio::test]
async fn a_file_that_may_not_be_written_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    drop(open(&path).await);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
    if std::fs::OpenOptions::new().write(true).open(&path).is_ok() {
        // The superuser may write whatever the mode; the next test asks as somebody else.
        return;
    }
    assert!(refusal(&path).await.contains("may not be written to"));
}

/// CR-07: so is a file of another user; asked by a process of `nobody`, where this one is the superuser's.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_file_that_is_owned_by_another_is_refused() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    let folder = tempfile::tempdir().unwrap();
    if folder.path().metadata().unwrap().uid() != 0 {
        return;
    }
    let path = folder.path().join("stint.db");
    drop(open(&path).await);
    std::fs::remove_file(folder.path().join("stint.db.lock")).unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let binary = folder.path().join("test-binary");
    std::fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
    std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755)).unwrap();
    let child = Command::new(binary)
        .args(["--exact", "tests::faults::the_process_that_opens", "--ignored", "--nocapture"])
        .current_dir(folder.path())
        .uid(65534)
        .gid(65534)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(said.contains("may not be written to: give it to the user that runs stint"), "{said}");
}

/// Opens the database in its folder, and says how that went.
#[tokio::test]
#[ignore = "run by tests here, in a process of its own"]
async fn the_process_that_opens() {
    let path = std::env::current_dir().unwrap().join("stint.db");
    let opened = Sqlite::open(&settings(&path)).await;
    let said = opened.map_or_else(|error| error.to_string(), |_| "opened".to_owned());
    writeln!(std::io::stdout(), "{said}").unwrap();
}

/// A database as the first version left it, with so many settled requests.
async fn old_database(path: &Path, rows: u32) {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path).create_if_missing(true);
    let mut connection = options.disable_statement_logging().connect().await.unwrap();
    let (_, _, first) = MIGRATIONS[0];
    // What sqlx itself would have noted.
    let noted = sqlx::migrate::Migration::new(
        1,
        "ledger".into(),
        sqlx::migrate::MigrationType::Simple,
        sqlx::SqlSafeStr::into_sql_str(first),
        false,
    );
    sqlx::migrate::Migrator::with_migrations(vec![noted])
        .run_direct(None, &mut connection, false)
        .await
        .unwrap();
    let sql = format!(
        "BEGIN; \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) \
         INSERT INTO reservations SELECT unhex(printf('%032x', i)), 'a', 10, 10, NULL, NULL, i, i FROM n; \
         INSERT INTO resolutions SELECT id, 'settled', account, admitted_at, admitted_at, 7, 7, 0, 0, 'm', 1, 1, 1, 1, 's' \
         FROM reservations; COMMIT"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

#[tokio::test]
async fn what_was_deleted_is_no_longer_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    let database = Sqlite::open(&settings(&path)).await.unwrap();
    let has_text = || {
        let bytes = std::fs::read(&path).unwrap();
        bytes.windows(13).any(|window| window == b"what was said")
    };
    {
        let mut writer = database.lock_writer().await.unwrap();
        let make = "CREATE TABLE notes (text TEXT); \
                    INSERT INTO notes SELECT replace(hex(zeroblob(9000)), '00', 'what was said')";
        sqlx::raw_sql(make).execute(&mut *writer).await.unwrap();
    }
    database.checkpoint().await.unwrap();
    assert!(has_text());
    {
        let mut writer = database.lock_writer().await.unwrap();
        sqlx::raw_sql("DELETE FROM notes").execute(&mut *writer).await.unwrap();
    }
    database.checkpoint().await.unwrap();
    assert!(!has_text(), "its pages are free, and empty");
}

/// Who only looks leaves an older server its tables. A copy can be made all the same.
#[tokio::test]
async fn only_a_server_brings_the_tables_of_an_older_version_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    old_database(&path, 3).await;
    let settings = Settings::Sqlite(settings(&path));
    let refused = Database::open_as_it_is(&settings).await.unwrap_err();
    assert!(matches!(&refused, StorageError::Older(of) if *of == path), "{refused}");
    let copy = folder.path().join("copy.db");
    assert_eq!(back_up(&settings, &copy).await.unwrap(), None, "its tables are not known here");
    assert_eq!((version(&path).await, version(&copy).await), (1, 1));
    drop(patiently(async || Database::open(&settings).await).await);
    drop(patiently(async || Database::open_as_it_is(&settings).await).await);
    let report = back_up(&settings, &folder.path().join("later.db")).await.unwrap();
    assert_eq!(report.map(|report| report.resolutions), Some(3));
    let fresh = super::settings(&folder.path().join("fresh.db"));
    Database::open_as_it_is(&Settings::Sqlite(fresh)).await.expect("one that is not there is made");
}

async fn version(path: &Path) -> i64 {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let mut connection: SqliteConnection = options.disable_statement_logging().connect().await.unwrap();
    let sql = "SELECT max(version) FROM _sqlx_migrations";
    let version = sqlx::query(sql).fetch_one(&mut connection).await.unwrap().get(0);
    connection.close().await.unwrap();
    version
}

/// CR-07: a migration that is killed midway leaves the file as it was or as it should be, and the next start goes on.
#[tokio::test]
async fn a_migration_that_is_killed_goes_on_at_the_next_start() {
    const ROWS: u32 = 60_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    old_database(&path, ROWS).await;
    let (mut killed, mut patience) = (0, Duration::from_millis(20));
    let newest = MIGRATIONS.last().unwrap().0;
    while version(&path).await < newest {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tests::faults::the_process_that_opens", "--ignored"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        tokio::time::sleep(patience).await;
        child.kill().unwrap();
        killed += u32::from(!child.wait().unwrap().success());
        patience += Duration::from_millis(30);
    }
    assert!(killed > 0, "at least one was killed");
    let journal = open(&path).await;
    assert_eq!(journal.balances().await.unwrap()[0].settled, u64::from(ROWS));
    assert_eq!(journal.unresolved().await.unwrap(), []);
    drop(journal);
    assert_eq!(
        SqliteArchive::open(&path).await.unwrap().verify().await.unwrap().differences,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn a_file_of_an_older_version_is_not_verified_before_it_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    old_database(&path, 1).await;
    let refused = SqliteArchive::open(&path).await.unwrap_err().to_string();
    assert!(refused.contains("written by an older stint"), "{refused}");
    // A backup of an older version is brought up to date where it is restored, and left as it is.
    let elsewhere = settings(&folder.path().join("elsewhere.db"));
    let (_, report) = super::super::sqlite::restore(&path, &elsewhere, false).await.unwrap();
    assert_eq!((report.resolutions, version(&path).await), (1, 1));
}

/// LB-24: after every start, sealed or not, what the ledger begins with is what all entries come to.
#[tokio::test]
async fn at_every_start_the_balances_are_what_all_entries_come_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    for start in 0..6_u64 {
        let database = Arc::new(patiently(async || Sqlite::open(&settings(&path)).await).await);
        let tasks = Tasks::default();
        let ledger = ledger(&tasks, SqliteJournal::new(database), Timestamp::now()).await;
        let report = SqliteArchive::open(&path).await.unwrap().verify().await.unwrap();
        assert_eq!(report.differences, Vec::<String>::new());
        assert_eq!(ledger.totals()[0].spent.money, report.spent, "at start {start}");
        for spent in 0..5 + start {
            let mut reservation = reserve(&ledger, 10);
            reservation.dispatch().await.unwrap();
            let settling = reservation.settle(Money(spent), Tokens(1), detail());
            assert!(settling.wait_durable(PATIENCE).await.is_recorded());
        }
        if start % 2 == 1 {
            assert_eq!(ledger.seal(Timestamp::now()).await.unwrap().len(), 1);
        }
        drop(ledger);
        assert!(tasks.drain(PATIENCE).await);
        // What a process leaves open when it dies is posted whole at the next start.
        let left = dispatched("anonymous", Timestamp::now().0, amounts(10, 10));
        open(&path).await.append(&[JournalEntry::Dispatched(left)]).await.unwrap();
    }
}
