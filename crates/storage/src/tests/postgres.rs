//! The same journal in PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use stint_ledger::conformance::model;
use stint_ledger::conformance::{Sealed, amounts, conforms, dispatched, resolved};
use stint_ledger::{
    AccountId, ChangeNotice, DispatchEntry, Journal, JournalEntry, ReplicaEpoch, RequestScope, ResolutionKind,
};
use stint_sessions::agent;
use stint_sessions::history;
use stint_sessions::idempotency;
use stint_types::tenant;
use stint_types::tenant::KeyStore;

use super::super::episodes::SqlEpisodeStore;
use super::super::history::SqlHistoryStore;
use super::super::idempotency::SqlIdempotencyStore;
use super::super::keys::SqlKeyStore;
use super::super::postgres::MIGRATIONS;
use super::super::responses::SqlResponseStore;
use super::super::{DatabaseUrl, Postgres, PostgresJournal, PostgresSettings, StorageError};
use super::cluster::cluster;

fn settings(url: &str, lease: Duration) -> PostgresSettings {
    PostgresSettings { url: DatabaseUrl::new(url), lease }
}

pub(super) async fn connect(url: &str) -> Arc<Postgres> {
    connect_for(url, Duration::from_secs(10)).await
}

pub(super) async fn connect_for(url: &str, lease: Duration) -> Arc<Postgres> {
    Arc::new(Postgres::open(&settings(url, lease)).await.unwrap())
}

async fn journal(url: &str) -> PostgresJournal {
    PostgresJournal::new(connect(url).await)
}

#[tokio::test]
async fn the_journal_in_postgres_conforms() {
    conforms(&journal(&cluster().database()).await).await;
}

#[tokio::test]
async fn the_journal_in_postgres_conforms_whenever_it_is_sealed() {
    for every in 1..=3 {
        conforms(&Sealed::every(every, journal(&cluster().database()).await)).await;
    }
}

#[tokio::test]
async fn the_keys_in_postgres_conform() {
    tenant::conformance::conforms(&SqlKeyStore::new(connect(&cluster().database()).await)).await;
}

/// AU-13: listeners are notified at once.
#[tokio::test]
async fn a_change_of_keys_reaches_all_replicas() {
    let url = cluster().database();
    let (one, other) = (SqlKeyStore::new(connect(&url).await), connect(&url).await);
    let mut changes = other.listen();
    assert_eq!(changes.next().await, ChangeNotice::Unknown, "everything before may have been missed");
    let account = tenant::AccountTerms::unlimited(AccountId::new("acme"));
    one.apply(tenant::StoreVersion(0), &[tenant::KeyStoreChange::PutTerms(account)], &[]).await.unwrap();
    let told = tokio::time::timeout(Duration::from_secs(60), changes.next()).await;
    assert_eq!(told.unwrap(), ChangeNotice::Keys);
    assert_eq!(SqlKeyStore::new(other).version().await.unwrap(), tenant::StoreVersion(1));
}

#[tokio::test]
async fn the_records_of_idempotency_keys_in_postgres_conform() {
    idempotency::conformance::conforms(&SqlIdempotencyStore::new(connect(&cluster().database()).await)).await;
}

#[tokio::test]
async fn responses_in_postgres_conform() {
    let store = SqlResponseStore::new(connect(&cluster().database()).await);
    agent::stored::conformance::conforms(&store).await;
}

/// Replicas that store responses of several accounts at once lock the accounts' sums in the order of their bytes. Whoever deletes old ones
/// locks them in the column's order, which is the database's own for texts unless it is stated: `a` before `B`.
#[tokio::test]
async fn the_sums_of_responses_are_locked_in_the_same_order_by_all() {
    let url = cluster().database();
    let _database = connect(&url).await;
    let collation = "SELECT collation_name FROM information_schema.columns \
                     WHERE table_name = 'response_bytes' AND column_name = 'account'";
    assert_eq!(cluster().ask(&url, collation), "C");
}

#[tokio::test]
async fn stories_in_postgres_conform() {
    history::conformance::conforms(&SqlHistoryStore::new(connect(&cluster().database()).await)).await;
}

#[tokio::test]
async fn runs_in_postgres_conform() {
    agent::conformance::conforms(&SqlEpisodeStore::new(connect(&cluster().database()).await)).await;
}

/// Of two that begin with the same and go on at one moment, each is its own run.
#[tokio::test]
async fn twins_that_are_asked_for_at_once_are_handed_out_once_each() {
    let url = cluster().database();
    let (one, other) = (SqlEpisodeStore::new(connect(&url).await), SqlEpisodeStore::new(connect(&url).await));
    agent::conformance::twins_at_once(&one, &other).await;
}

/// LB-25, for this database.
#[test]
fn hundreds_of_accounts_in_postgres_agree_with_a_plain_list() {
    let config = ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(ops in model::ops())| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            model::run(&ops, Arc::new(journal(&cluster().database()).await)).await;
        });
    });
}

#[tokio::test]
async fn a_zero_in_a_callers_name_stops_nobody() {
    let journal = journal(&cluster().database()).await;
    let about = RequestScope { user: Some("a\0b".into()), ..RequestScope::default() };
    let row = DispatchEntry { about, ..dispatched("a", 1, amounts(1, 1)) };
    let end = JournalEntry::Resolved(resolved(&row, ResolutionKind::Settled, amounts(1, 1)));
    journal.append(&[JournalEntry::Dispatched(row), end]).await.unwrap();
    assert_eq!(journal.balances().await.unwrap()[0].about.user.as_deref(), Some("a\u{FFFD}b"));
}

/// CR-09: whatever happens to the connection, entries are appended once.
#[tokio::test]
async fn a_killed_connection_fails_one_append_and_the_next_one_works() {
    let url = cluster().database();
    let journal = journal(&url).await;
    let row = dispatched("a", 1, amounts(1, 1));
    let entries = [
        JournalEntry::Dispatched(row.clone()),
        JournalEntry::Resolved(resolved(&row, ResolutionKind::Settled, amounts(1, 1))),
    ];
    journal.append(&entries).await.unwrap();
    cluster().kill(&url);
    let mut failures = 0;
    while journal.append(&entries).await.is_err() {
        failures += 1;
        assert!(failures < 10);
    }
    assert_eq!(journal.balances().await.unwrap()[0].settled, 1);
}

#[tokio::test]
async fn an_address_that_is_wrong_is_refused_with_what_to_do() {
    let refusal =
        async |url: &str| Postgres::open(&settings(url, Duration::from_secs(10))).await.unwrap_err();
    let nobody = refusal("postgres://alice:secret@127.0.0.1:1/stint").await;
    assert!(matches!(nobody, StorageError::Connect { .. }));
    assert!(nobody.to_string().starts_with("cannot connect to PostgreSQL at 127.0.0.1:1/stint"));
    assert!(!format!("{nobody:?}").contains("secret"));
    assert!(matches!(refusal("mysql://alice@127.0.0.1/stint").await, StorageError::Url));
}

#[tokio::test]
async fn replicas_that_start_at_once_make_the_tables_once() {
    let url = cluster().database();
    let all = futures_util::future::join_all((0..4).map(|_| connect(&url))).await;
    assert_eq!(all.len(), 4);
}

#[tokio::test]
async fn a_listener_is_notified_of_every_change_and_of_missed_ones() {
    let url = cluster().database();
    let (one, other) = (connect(&url).await, connect(&url).await);
    let mut changes = one.listen();
    assert_eq!(changes.next().await, ChangeNotice::Unknown, "what was before is unknown");
    let all = [
        ChangeNotice::Terms,
        ChangeNotice::Keys,
        ChangeNotice::Recall { account: AccountId::new("a team/a key"), by: ReplicaEpoch(3) },
    ];
    for change in &all {
        other.notify(change).await.unwrap();
    }
    for change in all {
        assert_eq!(changes.next().await, change);
    }
    cluster().kill(&url);
    assert_eq!(changes.next().await, ChangeNotice::Unknown);
}

#[test]
fn every_migration_of_postgres_is_embedded() {
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations/postgres")).unwrap();
    let mut files: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    let embedded: Vec<String> =
        MIGRATIONS.iter().map(|(version, name, _)| format!("{version:04}_{name}.sql")).collect();
    assert_eq!(files, embedded);
}
