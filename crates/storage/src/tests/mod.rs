//! The journal on disk.

mod audit;
mod cancel;
#[path = "../../../../tests/postgres/cluster.rs"]
mod cluster;
mod conversations;
mod crash;
mod faults;
mod hot;
mod keys;
mod postgres;
mod replicas;
mod restart;
mod stories;

use std::future::poll_fn;
use std::path::Path;
use std::sync::Arc;
use std::task::Poll;

use futures_util::FutureExt;
use proptest::prelude::*;
use sqlx::{ConnectOptions, Connection, Executor};

use stint_ledger::conformance::model;
use stint_ledger::conformance::{Sealed, amounts, conforms, dispatched, resolved};
use stint_ledger::{
    AbandonPolicy, AccountId, Journal, JournalEntry, Ledger, RequestScope, Reservation, ReservationRequest,
    ResolutionKind, Settings as LedgerSettings, SettlementDetail,
};
use stint_sessions::agent;
use stint_sessions::history;
use stint_sessions::idempotency;
use stint_types::catalog::WorstCase;
use stint_types::tasks::Tasks;
use stint_types::tenant::AccountTerms;
use stint_types::units::{Money, RequestId, Timestamp, Tokens};

use super::episodes::SqlEpisodeStore;
use super::history::SqlHistoryStore;
use super::idempotency::SqlIdempotencyStore;
use super::responses::SqlResponseStore;
use super::sqlite::MIGRATIONS;
use super::{Database, Settings, Sqlite, SqliteJournal, SqliteSettings, StorageError, Synchronous};

fn settings(path: &Path) -> SqliteSettings {
    SqliteSettings { path: path.to_owned(), synchronous: Synchronous::Full }
}

async fn open(path: &Path) -> SqliteJournal {
    SqliteJournal::new(Arc::new(patiently(async || Sqlite::open(&settings(path)).await).await))
}

/// Opens what was closed a moment ago. Another test may start a process at that moment, and until that has become another
/// program it holds all files that were open here, locks and all.
async fn patiently<T>(open: impl AsyncFn() -> Result<T, StorageError>) -> T {
    let began = std::time::Instant::now();
    loop {
        match open().await {
            Err(StorageError::InUse(_)) if began.elapsed() < std::time::Duration::from_secs(60) => {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            opened => return opened.unwrap(),
        }
    }
}

async fn refusal(path: &Path) -> String {
    Sqlite::open(&settings(path)).await.unwrap_err().to_string()
}

/// A ledger with one tenant without limits.
async fn ledger(tasks: &Tasks, journal: SqliteJournal, now: Timestamp) -> Ledger {
    let (journal, observer) = (Arc::new(journal), Arc::new(()));
    let terms = [AccountTerms::unlimited(AccountId::new("anonymous"))];
    Ledger::open(tasks, journal, observer, LedgerSettings::default(), &terms, now).await.unwrap()
}

fn reserve(ledger: &Ledger, nanos: u64) -> Reservation {
    let now = Timestamp::now();
    let worst = WorstCase { money: Money(nanos), thinking: Tokens(10) };
    let (account, id, expires) =
        (AccountId::new("anonymous"), RequestId::new(), now + std::time::Duration::from_secs(60));
    let (about, if_abandoned) = (RequestScope::default(), AbandonPolicy::PostWhole);
    ledger
        .reserve(ReservationRequest {
            account,
            id,
            about,
            worst,
            step: None,
            prices: None,
            if_abandoned,
            rate: None,
            now,
            expires,
        })
        .unwrap()
}

fn detail() -> SettlementDetail {
    SettlementDetail { outcome: "stop".into(), ..SettlementDetail::default() }
}

#[tokio::test]
async fn the_journal_in_sqlite_conforms() {
    let folder = tempfile::tempdir().unwrap();
    conforms(&open(&folder.path().join("stint.db")).await).await;
}

#[tokio::test]
async fn the_records_of_idempotency_keys_in_sqlite_conform() {
    let folder = tempfile::tempdir().unwrap();
    let database = Sqlite::open(&settings(&folder.path().join("stint.db"))).await.unwrap();
    idempotency::conformance::conforms(&SqlIdempotencyStore::new(Arc::new(database))).await;
}

#[tokio::test]
async fn stories_in_sqlite_conform() {
    let folder = tempfile::tempdir().unwrap();
    let database = Sqlite::open(&settings(&folder.path().join("stint.db"))).await.unwrap();
    history::conformance::conforms(&SqlHistoryStore::new(Arc::new(database))).await;
}

#[tokio::test]
async fn responses_in_sqlite_conform() {
    let folder = tempfile::tempdir().unwrap();
    let database = Sqlite::open(&settings(&folder.path().join("stint.db"))).await.unwrap();
    agent::stored::conformance::conforms(&SqlResponseStore::new(Arc::new(database))).await;
}

#[tokio::test]
async fn runs_in_sqlite_conform() {
    let folder = tempfile::tempdir().unwrap();
    let database = Sqlite::open(&settings(&folder.path().join("stint.db"))).await.unwrap();
    agent::conformance::conforms(&SqlEpisodeStore::new(Arc::new(database))).await;
}

#[tokio::test]
async fn the_journal_in_sqlite_conforms_whenever_it_is_sealed() {
    let folder = tempfile::tempdir().unwrap();
    for every in 1..=3 {
        let journal = open(&folder.path().join(format!("{every}.db"))).await;
        conforms(&Sealed::every(every, journal)).await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn hundreds_of_accounts_in_sqlite_agree_with_a_plain_list(ops in model::ops()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            model::run(&ops, Arc::new(open(&folder.path().join("stint.db")).await)).await;
        });
    }
}

#[tokio::test]
async fn a_journal_may_be_opened_in_a_task() {
    let folder = tempfile::tempdir().unwrap();
    let (tasks, settings) = (Tasks::default(), Settings::Sqlite(settings(&folder.path().join("stint.db"))));
    tasks.spawn(async move { drop(Database::open(&settings).await.unwrap()) });
    assert!(tasks.drain(std::time::Duration::from_secs(60)).await);
}

#[tokio::test]
async fn what_was_appended_is_there_after_opening_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/folder/stint.db");
    let (open_row, ended) = (dispatched("a", 1, amounts(5, 6)), dispatched("b", 2, amounts(7, 8)));
    let end = JournalEntry::Resolved(resolved(&ended, ResolutionKind::Settled, amounts(3, 4)));
    let journal = open(&path).await;
    journal
        .append(&[JournalEntry::Dispatched(open_row.clone()), JournalEntry::Dispatched(ended), end])
        .await
        .unwrap();
    drop(journal);
    let journal = open(&path).await;
    assert_eq!(journal.unresolved().await.unwrap(), [open_row]);
    let balances = journal.balances().await.unwrap();
    assert_eq!((balances[0].spent.money, balances[0].settled), (Money(3), 1));
}

/// Drops the future when it has been polled that often; returns whether it ended before.
async fn ends_within<T>(mut future: impl Future<Output = T> + Unpin, polls_max: usize) -> bool {
    let mut polls = 0;
    poll_fn(move |context| {
        if polls == polls_max {
            return Poll::Ready(false);
        }
        polls += 1;
        future.poll_unpin(context).map(|_| true)
    })
    .await
}

/// CR-13, for one commit.
#[tokio::test]
async fn a_commit_that_is_broken_off_leaves_nothing_and_the_next_one_works() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder.path().join("stint.db")).await;
    // Every poll is a place at which the future may be dropped; how many there are depends on the threads.
    for round in 1..=10 {
        let entries = [JournalEntry::Dispatched(dispatched("a", 1, amounts(5, 6)))];
        let mut polls_max = 0;
        while !ends_within(journal.append(&entries), polls_max).await {
            polls_max += 1;
            assert!(journal.unresolved().await.unwrap().len() <= round);
        }
        assert_eq!(journal.unresolved().await.unwrap().len(), round);
    }
}

/// CR-08
#[tokio::test]
async fn a_second_process_on_the_same_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    let journal = open(&path).await;
    let expected = format!("another stint process uses {}", path.display());
    assert!(refusal(&path).await.starts_with(&expected));
    #[cfg(unix)]
    {
        let alias = folder.path().join("alias.db");
        std::os::unix::fs::symlink(&path, &alias).unwrap();
        assert!(refusal(&alias).await.starts_with("another stint process"));
    }
    drop(journal);
    open(&path).await;
}

/// CR-07: a newer schema.
#[tokio::test]
async fn a_database_of_a_newer_version_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    drop(open(&path).await);
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path);
    let mut connection = options.connect().await.unwrap();
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
                 VALUES (99, 'later', TRUE, x'00', 0)";
    connection.execute(newer).await.unwrap();
    connection.close().await.unwrap();
    assert!(refusal(&path).await.contains("written by a newer stint (its migration 99"));
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    std::fs::write(&path, "something else entirely, and long enough to have had a header of its own")
        .unwrap();
    let refused = Sqlite::open(&settings(&path)).await.unwrap_err();
    assert!(matches!(refused, StorageError::Open { .. }), "{refused:?}");
    let no_file = folder.path().join("folder");
    std::fs::create_dir(&no_file).unwrap();
    assert!(refusal(&no_file).await.starts_with("cannot open"));
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_may_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder.path().join("stint.db")).await;
    journal.append(&[JournalEntry::Dispatched(dispatched("a", 1, amounts(1, 1)))]).await.unwrap();
    let files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap());
    let modes: Vec<u32> = files.map(|file| file.metadata().unwrap().permissions().mode() & 0o777).collect();
    assert_eq!(modes, [0o600; 4], "database, lock, WAL and its index");
}

#[test]
fn every_migration_in_the_folder_is_embedded() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("migrations/sqlite");
    let files =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<String> = files.collect();
    files.sort();
    let embedded: Vec<String> =
        MIGRATIONS.iter().map(|(version, name, _)| format!("{version:04}_{name}.sql")).collect();
    assert_eq!(files, embedded);
}
