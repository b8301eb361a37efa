//! How long a start takes with a million entries; run with
//! `cargo test --release storage::tests::restart -- --ignored --nocapture`.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::{Connection, Row, SqliteConnection};

use stint_ledger::{AccountId, Journal, Ledger, RollupSpan, Settings};
use stint_types::tasks::Tasks;
use stint_types::tenant::AccountTerms;
use stint_types::units::Timestamp;

use super::super::SqliteArchive;
use super::super::journal::{BALANCES, BETWEEN, EPISODE_USAGE};
use super::super::sqlite::UNRESOLVED;
use super::open;

const ENTRIES: i64 = 1_000_000;
/// 2026-11-20T20:36:40Z.
const NOW: i64 = 1_795_207_000_000;
const DAY: i64 = 24 * 3600 * 1000;

/// So many settled requests of 100 keys and 3 models, evenly over so many days until now.
async fn fill(path: &Path, entries: i64, days: i64) {
    drop(open(path).await);
    let url = format!("sqlite://{}", path.display());
    let mut connection = SqliteConnection::connect(&url).await.unwrap();
    for sql in [
        "PRAGMA synchronous = OFF".to_owned(),
        format!(
            "CREATE TEMP TABLE n AS \
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {entries}) SELECT i FROM n"
        ),
        format!(
            "INSERT INTO reservations (id, account, money, thinking, price_input, price_output, admitted_at, \
                                       expires_at, model) \
             SELECT unhex(printf('%032x', i)), 'org/team' || (i % 10) || '/key' || (i * 7919 % 100), 900, 90, 1, 2, \
                    {NOW} - ({entries} - i) * {span} / {entries}, {NOW}, 'model' || (i % 3) FROM n",
            span = days * DAY
        ),
        "INSERT INTO resolutions (reservation, how, account, model, admitted_at, resolved_at, money, thinking, \
             tool_calls, overrun_money, overrun_thinking, overrun_tool_calls, prompt, overhead, solution, other, outcome) \
         SELECT id, 'settled', account, model, admitted_at, admitted_at + 500, 700, 70, 0, 0, 0, 0, 40, 5, 20, 0, 'stop' \
         FROM reservations ORDER BY id"
            .to_owned(),
    ] {
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
}

/// The last day is not over yet. Of 30 days it has some 33,000 entries, of 365 fewer.
async fn seal_all_but_the_last_day(path: &Path) {
    let journal = open(path).await;
    let (began, mut seals, mut slowest) = (Instant::now(), 0, 0);
    loop {
        let one = Instant::now();
        let Some(seal) = journal.seal(Timestamp(NOW)).await.unwrap() else { break };
        (seals, slowest) = (seals + 1, slowest.max(one.elapsed().as_millis()));
        if !seal.is_full() || seal.through >= ENTRIES - 33_000 {
            break;
        }
    }
    tell(&format!("  {seals} seals in {:?}, the slowest {slowest} ms", began.elapsed()));
}

fn tell(text: &str) {
    writeln!(std::io::stdout(), "{text}").unwrap();
}

async fn time(path: &Path, told: &str) {
    let began = Instant::now();
    let journal = open(path).await;
    let file = began.elapsed();
    let key = |i: i64| AccountId::new(format!("org/team{}/key{}", i % 10, i * 7919 % 100));
    let terms: Vec<AccountTerms> = (0..100).map(|i| AccountTerms::unlimited(key(i))).collect();
    let (tasks, journal) = (Tasks::default(), Arc::new(journal));
    let ledger =
        Ledger::open(&tasks, journal.clone(), Arc::new(()), Settings::default(), &terms, Timestamp(NOW))
            .await
            .unwrap();
    tell(&format!("  {told}: {:?} to ready, {file:?} of it the file", began.elapsed()));
    let totals = ledger.totals();
    let root = totals.iter().find(|totals| totals.account.as_str() == "org").unwrap();
    assert_eq!(root.spent.money.0, 1_000_000 * 700);
    for (what, since) in [("33 days", NOW - 33 * DAY), ("a minute", NOW - 60_000)] {
        let began = Instant::now();
        let rows = journal.spend_since(Timestamp(since)).await.unwrap().len();
        tell(&format!("    spent since {what}: {:?}, {rows} sums", began.elapsed()));
    }
    let began = Instant::now();
    journal.balances().await.unwrap();
    tell(&format!("    balances: {:?}", began.elapsed()));
    let began = Instant::now();
    assert_eq!(journal.unresolved().await.unwrap(), []);
    tell(&format!("    unresolved: {:?}", began.elapsed()));
    assert!(
        RollupSpan::Quarter.start(Timestamp(NOW)) < Timestamp(NOW),
        "the minute lies within a quarter of an hour"
    );
    drop(ledger);
    assert!(tasks.drain(Duration::from_secs(10)).await);
}

#[tokio::test]
#[ignore = "a measurement"]
async fn a_start_with_a_million_entries() {
    for days in [365, 60, 30] {
        let folder = tempfile::tempdir_in(".").unwrap();
        let path = folder.path().join("stint.db");
        tell(&format!("a million entries of {days} days"));
        fill(&path, ENTRIES, days).await;
        time(&path, "without seals").await;
        seal_all_but_the_last_day(&path).await;
        time(&path, "with seals").await;
        let began = Instant::now();
        assert!(SqliteArchive::open(&path).await.unwrap().verify().await.unwrap().is_right());
        tell(&format!("    verified in {:?}", began.elapsed()));
        tell(&format!("    {} MB", path.metadata().unwrap().len() / 1_000_000));
    }
}

#[tokio::test]
async fn a_busy_day_has_several_seals_and_each_has_its_bound() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    fill(&path, 10_500, 1).await;
    let journal = open(&path).await;
    let (first, second) =
        (journal.seal(Timestamp(NOW)).await.unwrap(), journal.seal(Timestamp(NOW)).await.unwrap());
    assert_eq!(first.map(|seal| (seal.is_full(), seal.through)), Some((true, 10_000)));
    assert_eq!(second.map(|seal| (seal.is_full(), seal.resolutions)), Some((false, 500)));
    assert_eq!(journal.seal(Timestamp(NOW)).await.unwrap(), None);
    assert_eq!(
        SqliteArchive::open(&path).await.unwrap().verify().await.unwrap().differences,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn a_start_walks_no_table_that_grows_with_all_that_was_ever_settled() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    drop(open(&path).await);
    let mut connection = SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    let read_at_start = [UNRESOLVED.as_str(), BETWEEN.as_str(), BALANCES.as_str(), EPISODE_USAGE];
    for sql in read_at_start {
        let explain = format!("EXPLAIN QUERY PLAN {sql}");
        let plan = sqlx::query(sqlx::AssertSqlSafe(explain)).fetch_all(&mut connection).await.unwrap();
        let steps: Vec<String> = plan.iter().map(|row| row.get::<String, _>("detail")).collect();
        for step in &steps {
            let walks = step.starts_with("SCAN")
                && ["reservations", "resolutions", "rollups"].iter().any(|table| {
                    step.split(' ').any(|word| word == *table || (word.len() == 1 && word != "o"))
                });
            assert!(!walks, "{step} of {steps:#?}");
        }
    }
}
