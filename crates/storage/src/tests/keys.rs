//! The keys on disk.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use stint_ledger::conformance::{amounts, dispatched};
use stint_ledger::{Journal, JournalEntry};
use stint_types::tenant::conformance::{conforms, record};
use stint_types::tenant::{
    AccountTerms, DeclaredTenants, Directory, ImportSummary, KeyStore, KeyStoreChange, StoreVersion, Tenant,
    TenantLimit, hash_key,
};
use stint_types::units::{AccountId, Amount, Money, Window};

use super::super::keys::SqlKeyStore;
use super::super::{Sqlite, SqliteJournal};
use super::{patiently, settings};

#[tokio::test]
async fn the_keys_in_sqlite_conform() {
    let folder = tempfile::tempdir().unwrap();
    let database = Sqlite::open(&settings(&folder.path().join("stint.db"))).await.unwrap();
    conforms(&SqlKeyStore::new(Arc::new(database))).await;
}

/// AU-12: what a thief of the database gets is no secret, nor anything that is taken for one.
#[tokio::test]
async fn the_database_holds_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stint.db");
    let secret = "sk-stint-a-secret-that-is-nowhere";
    let store = SqlKeyStore::new(Arc::new(patiently(async || Sqlite::open(&settings(&path)).await).await));
    store.apply(StoreVersion(0), &[KeyStoreChange::PutKey(record("acme/alice", secret))], &[]).await.unwrap();
    assert_eq!(store.load().await.unwrap().keys.len(), 1);
    drop(store);
    assert!(!std::fs::read(&path).unwrap().is_empty());
    for file in std::fs::read_dir(folder.path()).unwrap() {
        // Its log may vanish meanwhile, when the last connection has closed.
        let Ok(bytes) = std::fs::read(file.unwrap().path()) else { continue };
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()));
    }
}

/// So many keys in so many teams, each with a limit.
fn many(count: usize) -> DeclaredTenants {
    let account = |at: usize| AccountId::new(format!("org/team{}/key{at}", at % 100));
    let limit = TenantLimit::new(Window::Month, Amount::Money(Money(5_000_000_000)));
    let tenants = (0..count).map(|at| Tenant::new(account(at), hash_key(&format!("sk-{at}"))));
    let terms = (0..count)
        .map(|at| AccountTerms { limits: vec![limit.clone()], ..AccountTerms::unlimited(account(at)) });
    DeclaredTenants { tenants: tenants.collect(), terms: terms.collect(), ..DeclaredTenants::default() }
}

/// Imports, with commits to the journal beside it: how long the import took, and the longest commit.
async fn import(
    directory: &Directory,
    wanted: &DeclaredTenants,
    journal: &SqliteJournal,
) -> (ImportSummary, [Duration; 2]) {
    let (began, is_done) = (Instant::now(), AtomicBool::new(false));
    let imported = async {
        let imported = directory.by("test").import(wanted).await.unwrap();
        is_done.store(true, Ordering::SeqCst);
        (imported, began.elapsed())
    };
    let commits = async {
        let mut longest = Duration::ZERO;
        while !is_done.load(Ordering::SeqCst) {
            let began = Instant::now();
            let row = dispatched("a", 1, amounts(1, 1));
            journal.append(&[JournalEntry::Dispatched(row)]).await.unwrap();
            longest = longest.max(began.elapsed());
        }
        longest
    };
    let ((imported, took), longest) = futures_util::join!(imported, commits);
    (imported, [took, longest])
}

#[tokio::test]
#[ignore = "measures"]
async fn ten_thousand_keys_are_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let database = Arc::new(Sqlite::open(&settings(&folder.path().join("stint.db"))).await.unwrap());
    let store = Arc::new(SqlKeyStore::new(database.clone()));
    let directory = Directory::open(store, DeclaredTenants::default(), true).await.unwrap();
    let journal = SqliteJournal::new(database);
    let wanted = many(10_000);
    for told in ["new", "as they are"] {
        let (count, [took, longest]) = import(&directory, &wanted, &journal).await;
        writeln!(
            std::io::stdout(),
            "{told}: {count:?} in {took:?}; the longest commit beside it {longest:?}"
        )
        .unwrap();
    }
}
