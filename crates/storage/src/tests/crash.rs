//! `kill -9` under load, for real: this test binary runs itself as the process to be killed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use sqlx::Row;

use stint_ledger::conformance::{amounts, dispatched};
use stint_ledger::{Journal, JournalEntry};
use stint_types::tasks::Tasks;
use stint_types::units::{Money, SeededRng, Timestamp, Tokens};

use super::super::{Sqlite, SqliteArchive, SqliteJournal, SqliteSettings, Synchronous};
use super::{detail, ledger, open, patiently, reserve, settings};

/// What a disk writes at once.
const SECTOR: usize = 512;

const CHILD: &str = "tests::crash::the_process_to_be_killed";
const PRICE: u64 = 3;
const HELD: u64 = 10;

fn start(folder: &std::path::Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", CHILD, "--ignored", "--nocapture", "--test-threads=1"])
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Settles without end, and says so on standard output once a settlement is journalled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by the test below, in a process of its own"]
async fn the_process_to_be_killed() {
    let tasks = Tasks::default();
    let path = std::env::current_dir().unwrap().join("stint.db");
    let ledger = ledger(&tasks, open(&path).await, Timestamp::now()).await;
    for _ in 0..32 {
        let ledger = ledger.clone();
        tasks.spawn(async move {
            loop {
                let mut reservation = reserve(&ledger, HELD);
                let id = reservation.id();
                reservation.dispatch().await.unwrap();
                tokio::task::yield_now().await;
                let settling = reservation.settle(Money(PRICE), Tokens(1), detail());
                if settling.wait_durable(Duration::from_secs(60)).await.is_recorded() {
                    writeln!(std::io::stdout(), "settled {id}").unwrap();
                }
            }
        });
    }
    tasks.drain(Duration::from_secs(60)).await;
}

#[tokio::test]
async fn after_kill_9_under_load_no_settlement_is_lost_and_nothing_stays_reserved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    let mut told = 0;
    for round in 1..=3 {
        told += settle_and_kill(folder.path(), 200 * round);
        let (tasks, now) = (Tasks::default(), Timestamp::now());
        let ledger = ledger(&tasks, open(&path).await, now).await;
        let totals = &ledger.totals()[0];
        assert_eq!(totals.reserved.money, Money::ZERO);
        assert!(totals.settled >= told, "{} settled of the {told} that were told", totals.settled);
        let posted_whole = (totals.spent.money.0 - totals.settled * PRICE) / HELD;
        assert_eq!(totals.spent.money.0, totals.settled * PRICE + posted_whole * HELD);
        assert!(posted_whole <= 32 * round, "at most one for each that was running");
        drop(ledger);
        assert!(tasks.drain(Duration::from_secs(10)).await);
        let journal = open(&path).await;
        assert_eq!(journal.unresolved().await.unwrap(), []);
    }
}

/// Kills the process when it has reported so many settlements; returns how many it had reported.
fn settle_and_kill(folder: &std::path::Path, settlements: u64) -> u64 {
    let mut child = start(folder);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut told = 0;
    for line in lines {
        // A line that was broken off by the kill was told as well, or was not; it is not counted.
        let Ok(line) = line else { break };
        told += u64::from(line.contains("settled req_"));
        if told == settlements {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(told >= settlements, "the process ended by itself after {told}");
    told
}

/// CR-06: at every byte of the last commit's frame heads, and at many of its pages.
#[tokio::test]
async fn a_log_that_was_cut_anywhere_in_its_last_commit_opens_with_all_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let (path, log) = (folder.path().join("stint.db"), folder.path().join("stint.db-wal"));
    let journal = open(&path).await;
    let length = || usize::try_from(log.metadata().unwrap().len()).unwrap();
    let mut lengths = Vec::new();
    for _ in 0..3 {
        journal.append(&[JournalEntry::Dispatched(dispatched("a", 1, amounts(1, 1)))]).await.unwrap();
        lengths.push(length());
    }
    let (database, log) = (std::fs::read(&path).unwrap(), std::fs::read(&log).unwrap());
    let (before, whole) = (lengths[1], lengths[2]);
    assert!(before < whole);
    // A frame is a head of 24 bytes and a page.
    let heads = (before..whole).step_by(24 + 4096).flat_map(|frame| frame..frame + 25);
    for cut in heads.chain((before..whole).step_by(509)).chain([whole - 1, whole]) {
        let copy = tempfile::tempdir().unwrap();
        std::fs::write(copy.path().join("stint.db"), &database).unwrap();
        std::fs::write(copy.path().join("stint.db-wal"), &log[..cut]).unwrap();
        let path = copy.path().join("stint.db");
        let journal = open(&path).await;
        let expected = if cut == whole { 3 } else { 2 };
        assert_eq!(journal.unresolved().await.unwrap().len(), expected, "cut at {cut} of {whole}");
        drop(journal);
        let report = SqliteArchive::open(&path).await.unwrap().verify().await.unwrap();
        assert_eq!(report.differences, Vec::<String>::new(), "cut at {cut} of {whole}");
    }
}

/// What a disk may have after the power failed: of what was not yet synced, any sectors and not others.
fn torn(synced: &[u8], written: &[u8], draw: &mut SeededRng) -> Vec<u8> {
    let mut disk = synced.to_vec();
    disk.resize(written.len(), 0);
    for (sector, new) in disk.chunks_mut(SECTOR).zip(written.chunks(SECTOR)) {
        if draw.next_u64().is_multiple_of(2) {
            sector.copy_from_slice(new);
        }
    }
    // The end of a file may be lost too, or not.
    let length = written.len() - synced.len().min(written.len());
    disk.truncate(synced.len() + usize::try_from(draw.next_u64()).unwrap() % (length + 1));
    disk
}

/// Opens what a disk had; returns how many dispatches are in it.
async fn survivors(database: &[u8], log: &[u8]) -> usize {
    let copy = tempfile::tempdir().unwrap();
    let path = copy.path().join("stint.db");
    std::fs::write(&path, database).unwrap();
    std::fs::write(copy.path().join("stint.db-wal"), log).unwrap();
    let journal = open(&path).await;
    let there = journal.unresolved().await.unwrap().len();
    drop(journal);
    let report = SqliteArchive::open(&path).await.unwrap().verify().await.unwrap();
    assert_eq!(report.differences, Vec::<String>::new());
    there
}

async fn synchronous(database: &Sqlite) -> i64 {
    let row = sqlx::query("PRAGMA synchronous").fetch_one(&mut *database.lock_writer().await.unwrap()).await;
    row.unwrap().get(0)
}

/// CR-15: what was answered under `full` is there after the power failed, whatever became of what came after. Under
/// `normal` the log is not synced at a commit, so its last commits are such: they may be gone, and the file is right.
#[tokio::test]
async fn what_was_answered_survives_the_loss_of_power() {
    let folder = tempfile::tempdir().unwrap();
    let (path, log) = (folder.path().join("stint.db"), folder.path().join("stint.db-wal"));
    let database = Arc::new(patiently(async || Sqlite::open(&settings(&path)).await).await);
    // 2 is FULL: SQLite syncs the log at every commit (https://sqlite.org/pragma.html#pragma_synchronous).
    assert_eq!(synchronous(&database).await, 2);
    let journal = SqliteJournal::new(database.clone());
    let append = async |count: i64| {
        let rows = (0..count).map(|at| JournalEntry::Dispatched(dispatched("a", at, amounts(1, 1))));
        journal.append(&rows.collect::<Vec<_>>()).await.unwrap();
    };
    let mut draw = SeededRng::new(15);
    for answered in 1..=12 {
        append(1).await;
        let (kept, synced) = (std::fs::read(&path).unwrap(), std::fs::read(&log).unwrap());
        let more = i64::try_from(answered % 3 * 20).unwrap();
        append(more).await;
        let written = std::fs::read(&log).unwrap();
        let before = 1 + (1..answered).map(|n| 1 + n % 3 * 20).sum::<usize>();
        for _ in 0..4 {
            let there = survivors(&kept, &torn(&synced, &written, &mut draw)).await;
            let whole = before + usize::try_from(more).unwrap();
            assert!(there == before || there == whole, "{there}, of which {before} were answered");
        }
    }
    // A checkpoint syncs the log, and writes to the file what is in it: the log makes good what was torn.
    let (old, log) = (std::fs::read(&path).unwrap(), std::fs::read(&log).unwrap());
    sqlx::query("PRAGMA wal_checkpoint(PASSIVE)")
        .fetch_all(&mut *database.lock_writer().await.unwrap())
        .await
        .unwrap();
    let (new, all) = (std::fs::read(&path).unwrap(), journal.unresolved().await.unwrap().len());
    for _ in 0..8 {
        assert_eq!(survivors(&torn(&old, &new, &mut draw), &log).await, all);
    }
}

#[tokio::test]
async fn a_file_is_synced_as_it_is_configured() {
    let folder = tempfile::tempdir().unwrap();
    let normal = SqliteSettings { synchronous: Synchronous::Normal, ..settings(&folder.path().join("n.db")) };
    assert_eq!(synchronous(&Sqlite::open(&normal).await.unwrap()).await, 1);
}
