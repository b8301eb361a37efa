//! Keys and accounts as those who manage them see them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use crate::units::{AccountId, Amount, Money, Timestamp, Window};

use super::conformance::record;
use super::{
    AccountTerms, AdminRole, AuditEntry, AuditRecord, DeclaredTenants, Directory, DirectorySnapshot,
    EditorAuthority, FeedbackTrust, ImportSummary, KeyAccess, KeyChangeError, KeyId, KeyLookup, KeyPatch,
    KeyStore, KeyStoreChange, KeyStoreError, KeyStoreState, MemoryKeyStore, Percent, StoreVersion, Tenant,
    TenantLimit, TermsChange, TermsPatch, TokenAccount, TokenAccountError, TokenOrder, hash_key, to_toml,
};

fn account(path: &str) -> AccountId {
    AccountId::new(path)
}

async fn directory(store: &Arc<MemoryKeyStore>, declared: DeclaredTenants) -> Directory {
    Directory::open(store.clone(), declared, false).await.unwrap()
}

fn declared(names: &[&str]) -> DeclaredTenants {
    let tenants = names.iter().map(|name| Tenant::new(account(name), hash_key(&format!("sk-{name}"))));
    DeclaredTenants { tenants: tenants.collect(), ..DeclaredTenants::default() }
}

fn whose(keys: &KeyLookup, secret: &str) -> Option<String> {
    whose_at(keys, secret, Timestamp::now())
}

fn whose_at(keys: &KeyLookup, secret: &str, now: Timestamp) -> Option<String> {
    keys.find(Some(secret), now).map(|tenant| tenant.account.to_string())
}

/// The first request of a new key finds its account, the last one of an old key too.
#[tokio::test]
async fn at_no_moment_is_a_key_let_in_whose_account_is_not_announced() {
    let store = Arc::new(MemoryKeyStore::default());
    let directory = directory(&store, DeclaredTenants::default()).await;
    let (keys, told) = (directory.keys(), Arc::new(Mutex::new(Vec::new())));
    let heard = told.clone();
    let directory = directory.with_listener(Box::new(move |change| {
        let TermsChange::All(terms) = change else { panic!("{change:?}") };
        let is_announced = terms.iter().any(|terms| terms.account == account("alice"));
        let is_let_in = whose(&keys, "sk-alice").as_deref() == Some("alice");
        heard.lock().unwrap().push((is_announced, is_let_in));
        Box::pin(std::future::ready(()))
    }));
    directory.by("test").import(&declared(&["alice"])).await.unwrap();
    let key = directory.snapshot().keys().into_iter().next().unwrap();
    assert_eq!(whose(&directory.keys(), "sk-alice").as_deref(), Some("alice"));
    directory.by("test").revoke(key.id).await.unwrap();
    assert_eq!(whose(&directory.keys(), "sk-alice"), None);
    let told = told.lock().unwrap().clone();
    assert_eq!(told[0], (true, false));
    assert!(!told.contains(&(false, true)), "{told:?}");
}

/// AU-13, on one replica.
#[tokio::test]
async fn a_key_is_taken_from_the_moment_it_is_made_to_the_moment_it_is_revoked() {
    let store = Arc::new(MemoryKeyStore::default());
    let directory = directory(&store, declared(&["boss"])).await;
    let (key, secret) =
        directory.by("test").create(&account("acme/alice"), &KeyPatch::default()).await.unwrap();
    let secret = secret.reveal();
    assert_eq!(whose(&directory.keys(), &secret).as_deref(), Some("acme/alice"));
    assert_eq!(whose(&directory.keys(), "sk-boss").as_deref(), Some("boss"));
    let revoked = directory.by("test").revoke(key.id).await.unwrap();
    assert_eq!(revoked.state(Timestamp::now()), "revoked");
    assert_eq!(whose(&directory.keys(), &secret), None);
    assert_eq!(directory.by("test").revoke(key.id).await.unwrap(), revoked, "once is enough");
    let again = directory.by("test").rotate(key.id, Duration::ZERO).await.unwrap_err();
    assert!(matches!(again, KeyChangeError::Revoked(_)), "{again}");
    directory.by("test").create(&account("acme/alice"), &KeyPatch::default()).await.unwrap();
}

/// AU-13: what one replica changes, the others know when they have looked, which they do twice in a second.
#[tokio::test]
async fn replicas_learn_of_each_others_changes() {
    let store = Arc::new(MemoryKeyStore::default());
    let (one, other) = (directory(&store, declared(&["x"])).await, directory(&store, declared(&["x"])).await);
    let (key, secret) = one.by("test").create(&account("alice"), &KeyPatch::default()).await.unwrap();
    let secret = secret.reveal();
    assert_eq!(whose(&other.keys(), &secret), None);
    assert!(other.refresh().await.unwrap());
    assert!(!other.refresh().await.unwrap(), "nothing is new");
    assert_eq!(whose(&other.keys(), &secret).as_deref(), Some("alice"));
    other.by("test").revoke(key.id).await.unwrap();
    let late = KeyPatch { role: Some(Some(AdminRole::All)), ..KeyPatch::default() };
    let refused = one.by("test").change(key.id, &late).await.unwrap_err();
    assert!(matches!(refused, KeyChangeError::Revoked(_)), "a change on what is old is made anew: {refused}");
    assert_eq!(whose(&one.keys(), &secret), None);
}

/// AU-13: what another replica changed since counts, when a change on what is old is made anew.
#[tokio::test]
async fn roles_are_looked_at_again_after_another_replica_changed_them() {
    let (keeper, boss) = (account("keeper"), account("boss"));
    let role = |role| KeyPatch { role: Some(Some(role)), ..KeyPatch::default() };
    let store = Arc::new(MemoryKeyStore::default());
    let here = directory(&store, DeclaredTenants::default()).await;
    let (own, _) = here.by("test").create(&keeper, &role(AdminRole::Keys)).await.unwrap();
    let (other, _) = here.by("test").create(&boss, &KeyPatch::default()).await.unwrap();
    let there = directory(&store, DeclaredTenants::default()).await;
    let by_keeper = || here.by("keeper").with_authority(EditorAuthority::Key(&keeper));
    by_keeper().rotate(other.id, Duration::ZERO).await.unwrap();
    assert!(there.refresh().await.unwrap());
    there.by("test").change(other.id, &role(AdminRole::All)).await.unwrap();
    let refused = by_keeper().rotate(other.id, Duration::ZERO).await.map(drop).unwrap_err();
    assert!(matches!(refused, KeyChangeError::RoleTooLow { role: AdminRole::All, .. }), "{refused}");
    there.by("test").change(own.id, &role(AdminRole::Read)).await.unwrap();
    let refused = by_keeper().create(&account("new"), &KeyPatch::default()).await.map(drop).unwrap_err();
    assert!(matches!(refused, KeyChangeError::RoleTooLow { own: AdminRole::Read, .. }), "{refused}");
    there.by("test").revoke(own.id).await.unwrap();
    assert!(here.refresh().await.unwrap());
    let refused = by_keeper().set_terms(&account("new"), &TermsPatch::default()).await.unwrap_err();
    assert!(matches!(refused, KeyChangeError::NotAdmin(_)), "{refused}");
    assert!(here.snapshot().account(&account("new")).is_err(), "nothing was changed");
}

#[tokio::test]
async fn an_account_of_a_token_that_makes_room_may_spend_nothing_until_it_comes_again() {
    let store = Arc::new(MemoryKeyStore::default());
    let trees = DeclaredTenants { token_trees: vec![account("staff")], ..DeclaredTenants::default() };
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    let directory = directory(&store, trees).await.with_listener(Box::new(move |change| {
        heard.lock().unwrap().push(change);
        Box::pin(std::future::ready(()))
    }));
    let admit = async |name: &str, hours: u64| {
        let terms = AccountTerms::unlimited(account(name));
        let (order, now) = (TokenOrder::default(), Timestamp(0) + Duration::from_secs(3_600 * hours));
        directory.admit_token(&account("staff"), 1, TokenAccount { terms, order }, now).await
    };
    let alice = admit("staff/alice", 0).await.unwrap();
    assert_eq!(admit("staff/bob", 0).await.map(drop), Err(TokenAccountError::Full(account("staff"), 1)));
    admit("staff/bob", 1).await.unwrap();
    assert!(!alice.touch(Timestamp(0)) && directory.snapshot().account(&account("staff/alice")).is_err());
    admit("staff/alice", 2).await.unwrap();
    let one = |name| TermsChange::One(AccountTerms::unlimited(account(name)));
    let none = |name| TermsChange::None(account(name));
    let expected =
        [one("staff/alice"), none("staff/alice"), one("staff/bob"), none("staff/bob"), one("staff/alice")];
    assert_eq!(*told.lock().unwrap(), expected);
}

/// One that finds the account before the ledger knows it would be refused: there is no such account.
#[tokio::test]
async fn of_the_first_requests_with_a_token_none_is_let_in_before_its_account_is_announced() {
    let store = Arc::new(MemoryKeyStore::default());
    let trees = DeclaredTenants { token_trees: vec![account("staff")], ..DeclaredTenants::default() };
    let (told, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let (heard, open) = (told.clone(), gate.clone());
    let directory = directory(&store, trees).await.with_listener(Box::new(move |_| {
        let (heard, open) = (heard.clone(), open.clone());
        Box::pin(async move {
            open.acquire().await.unwrap().forget();
            heard.fetch_add(1, Ordering::Relaxed);
        })
    }));
    let staff = account("staff");
    let admit = || {
        let terms = AccountTerms::unlimited(account("staff/alice"));
        let alice = TokenAccount { terms, order: TokenOrder::default() };
        directory.admit_token(&staff, 9, alice, Timestamp(0)).boxed()
    };
    let (mut first, mut second) = (admit(), admit());
    assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
    // The caller of the first is gone before the account is known.
    drop(first);
    assert!((&mut second).now_or_never().is_none());
    assert!(admit().now_or_never().is_none());
    gate.add_permits(1);
    second.await.unwrap();
    assert!(admit().now_or_never().is_some_and(|admitted| admitted.is_ok()));
    assert_eq!(told.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn the_old_secret_of_a_rotated_key_is_taken_until_its_grace_is_over() {
    let store = Arc::new(MemoryKeyStore::default());
    let directory = directory(&store, DeclaredTenants::default()).await;
    let (key, first) = directory.by("test").create(&account("alice"), &KeyPatch::default()).await.unwrap();
    let (_, second) = directory.by("test").rotate(key.id, Duration::from_secs(3600)).await.unwrap();
    let secrets = [first, second].map(super::NewKey::reveal);
    let taken = |now| secrets.each_ref().map(|secret| whose_at(&directory.keys(), secret, now).is_some());
    let now = Timestamp::now();
    assert_eq!(taken(now), [true; 2]);
    assert_eq!(taken(now + Duration::from_secs(3601)), [false, true]);
    assert_eq!(directory.keys().tenants().len(), 1, "it is one tenant all the same");
    directory.by("test").revoke(key.id).await.unwrap();
    assert_eq!(taken(now), [false; 2], "revoking ends the grace too");
}

/// A rotation without grace, because a secret leaked, ends older secrets too.
#[tokio::test]
async fn no_secret_outlives_the_grace_of_a_later_rotation() {
    let store = Arc::new(MemoryKeyStore::default());
    let directory = directory(&store, DeclaredTenants::default()).await;
    let (key, first) = directory.by("test").create(&account("alice"), &KeyPatch::default()).await.unwrap();
    let mut secrets = vec![first.reveal()];
    let mut check = async |grace: u64, later: u64, expected: &[bool]| {
        let (_, secret) = directory.by("test").rotate(key.id, Duration::from_secs(grace)).await.unwrap();
        secrets.push(secret.reveal());
        let now = Timestamp::now() + Duration::from_secs(later);
        let taken = secrets.iter().map(|secret| whose_at(&directory.keys(), secret, now).is_some());
        assert_eq!(taken.collect::<Vec<_>>(), expected, "after a grace of {grace} s");
    };
    check(3_600, 60, &[true, true]).await;
    check(30, 60, &[false, false, true]).await;
    check(3_600, 60, &[false, false, true, true]).await;
    check(0, 0, &[false, false, false, false, true]).await;
}

/// What a key may spend is the key's: a limit of 0 would shut it out.
#[tokio::test]
async fn what_a_key_of_a_higher_role_may_spend_takes_that_role() {
    let store = Arc::new(MemoryKeyStore::default());
    let declared = DeclaredTenants {
        tenants: vec![Tenant {
            access: KeyAccess { role: Some(AdminRole::All), ..KeyAccess::default() },
            ..Tenant::new(account("declared"), hash_key("sk-declared"))
        }],
        ..DeclaredTenants::default()
    };
    let directory = directory(&store, declared).await;
    let role = |role| KeyPatch { role: Some(Some(role)), ..KeyPatch::default() };
    let (boss, _) = directory.by("test").create(&account("acme/boss"), &role(AdminRole::All)).await.unwrap();
    let (peer, _) = directory.by("test").create(&account("peer"), &role(AdminRole::Keys)).await.unwrap();
    let terms =
        TermsPatch { limits: Some(Vec::new()), warn_at: Some(Percent::try_from(5).unwrap()), zone: None };
    directory.by("test").set_terms(&account("acme/boss"), &terms).await.unwrap();
    let wanted = TermsPatch { warn_at: Some(Percent::try_from(6).unwrap()), ..terms.clone() };
    let patch = KeyPatch { terms: wanted.clone(), ..KeyPatch::default() };
    let keeper = directory.by("keeper").with_authority(EditorAuthority::Role(AdminRole::Keys));
    let imported = |path: &str| DeclaredTenants {
        terms: vec![wanted.apply_to(AccountTerms::unlimited(account(path)))],
        ..DeclaredTenants::default()
    };
    let refused = [
        keeper.change(boss.id, &patch).await.map(drop),
        keeper.set_terms(&account("acme/boss"), &wanted).await,
        keeper.set_terms(&account("declared"), &wanted).await,
        keeper.drop_terms(&account("acme/boss")).await,
        keeper.import(&imported("acme/boss")).await.map(drop),
    ];
    for refused in refused {
        assert!(
            matches!(refused, Err(KeyChangeError::RoleTooLow { role: AdminRole::All, .. })),
            "{refused:?}"
        );
    }
    keeper.change(peer.id, &patch).await.unwrap();
    keeper.set_terms(&account("acme"), &wanted).await.unwrap();
    keeper.import(&imported("acme/other")).await.unwrap();
    directory.by("owner").change(boss.id, &patch).await.unwrap();
}

/// What is stored is a key's own, not its name's.
#[tokio::test]
async fn a_new_key_under_an_old_name_is_another_tenant() {
    let store = Arc::new(MemoryKeyStore::default());
    let directory = directory(&store, declared(&["boss"])).await;
    let id_of = |secret: &str| directory.keys().find(Some(secret), Timestamp::now()).unwrap().id;
    let make = async || directory.by("test").create(&account("alice"), &KeyPatch::default()).await.unwrap();
    let (old, secret) = make().await;
    assert_eq!(id_of(&secret.reveal()), old.id);
    let (_, rotated) = directory.by("test").rotate(old.id, Duration::ZERO).await.unwrap();
    assert_eq!(id_of(&rotated.reveal()), old.id, "it is the same key");
    directory.by("test").revoke(old.id).await.unwrap();
    let (new, secret) = make().await;
    assert_eq!(id_of(&secret.reveal()), new.id);
    assert_ne!(new.id, old.id);
    assert_eq!(id_of("sk-boss"), KeyId::of_declared(&account("boss")));
}

/// A store that counts how often it is asked anything.
#[derive(Debug, Default)]
struct Counting {
    store: MemoryKeyStore,
    asked: AtomicUsize,
}

impl KeyStore for Counting {
    fn load(&self) -> BoxFuture<'_, Result<KeyStoreState, KeyStoreError>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.store.load()
    }

    fn version(&self) -> BoxFuture<'_, Result<StoreVersion, KeyStoreError>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.store.version()
    }

    fn apply<'a>(
        &'a self,
        seen: StoreVersion,
        changes: &'a [KeyStoreChange],
        entries: &'a [AuditEntry],
    ) -> BoxFuture<'a, Result<(), KeyStoreError>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.store.apply(seen, changes, entries)
    }

    fn append_audit<'a>(&'a self, entries: &'a [AuditEntry]) -> BoxFuture<'a, Result<(), KeyStoreError>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.store.append_audit(entries)
    }

    fn read_audit(
        &self,
        before: Option<u64>,
        most: u32,
    ) -> BoxFuture<'_, Result<Vec<AuditRecord>, KeyStoreError>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.store.read_audit(before, most)
    }
}

/// AU-21: keys that a caller tries are looked up in a table in memory, which holds known secrets only. No database is
/// asked, and nothing is kept of what was tried.
#[tokio::test]
async fn trying_keys_asks_no_database_and_leaves_nothing_behind() {
    let store = Arc::new(Counting::default());
    let directory = Directory::open(store.clone(), declared(&["x"]), false).await.unwrap();
    directory.by("test").create(&account("alice"), &KeyPatch::default()).await.unwrap();
    let (asked, known) = (store.asked.load(Ordering::SeqCst), directory.keys().secrets());
    for number in 0..100_000 {
        assert_eq!(whose(&directory.keys(), &format!("sk-stint-{number:064x}")), None);
    }
    assert_eq!(store.asked.load(Ordering::SeqCst), asked);
    assert_eq!((directory.keys().secrets(), known), (2, 2));
}

/// AU-12, AU-20: whatever a secret is or was, finding out is one hash and one look. Nothing of a revoked one is left to find.
#[tokio::test]
async fn unknown_revoked_and_expired_secrets_are_nobodys_alike() {
    let store = Arc::new(MemoryKeyStore::default());
    let directory = directory(&store, DeclaredTenants::default()).await;
    let ends = KeyPatch { expires: Some(Some(Timestamp(1))), ..KeyPatch::default() };
    let (_, expired) = directory.by("test").create(&account("expired"), &ends).await.unwrap();
    let (key, revoked) =
        directory.by("test").create(&account("revoked"), &KeyPatch::default()).await.unwrap();
    directory.by("test").revoke(key.id).await.unwrap();
    for secret in [expired.reveal(), revoked.reveal(), "sk-unknown".to_owned()] {
        assert_eq!(directory.keys().find(Some(&secret), Timestamp::now()), None);
    }
    let hash = directory.snapshot().key(key.id).unwrap().hash.to_string();
    assert_eq!(whose(&directory.keys(), &hash), None, "AU-12: a stored hash is no key");
}

/// AU-20: ten thousand looks at each kind of secret take as long as each other.
#[tokio::test]
async fn the_time_of_a_look_tells_nothing_of_a_secret() {
    let store = Arc::new(MemoryKeyStore::default());
    let directory = directory(&store, declared(&["x"])).await;
    let mut secrets = Vec::new();
    for name in ["good", "expired", "revoked"] {
        let expires = (name == "expired").then_some(Some(Timestamp(1)));
        let patch = KeyPatch { expires, ..KeyPatch::default() };
        let (key, secret) = directory.by("test").create(&account(name), &patch).await.unwrap();
        if name == "revoked" {
            directory.by("test").revoke(key.id).await.unwrap();
        }
        secrets.push(secret.reveal());
    }
    // One that never was, and one that is right but for its last character.
    let good = secrets[0].clone();
    let last = if good.ends_with('0') { "1" } else { "0" };
    secrets.extend([
        good.replace(|one: char| one.is_ascii_digit(), "a"),
        format!("{}{last}", &good[..good.len() - 1]),
    ]);
    let (keys, now) = (directory.keys(), Timestamp::now());
    let mut times = vec![Vec::new(); secrets.len()];
    for _ in 0..10_000 {
        for (secret, times) in secrets.iter().zip(&mut times) {
            let began = std::time::Instant::now();
            std::hint::black_box(keys.find(Some(secret), now));
            times.push(began.elapsed());
        }
    }
    let medians: Vec<u128> = times
        .iter_mut()
        .map(|times| {
            times.sort_unstable();
            times[times.len() / 2].as_nanos()
        })
        .collect();
    let refused = &medians[1..];
    let (least, most) = (refused.iter().min().unwrap(), refused.iter().max().unwrap());
    assert!(*most < least + least / 5 + 200, "{medians:?} nanoseconds");
}

#[tokio::test]
async fn declared_keys_are_read_only_and_go_before_stored_ones() {
    let store = Arc::new(MemoryKeyStore::default());
    let directory = directory(&store, declared(&["alice"])).await;
    let id = directory.snapshot().keys()[0].id;
    let refusals = [
        directory.by("test").create(&account("alice"), &KeyPatch::default()).await.map(drop).unwrap_err(),
        directory.by("test").rotate(id, Duration::ZERO).await.map(drop).unwrap_err(),
        directory.by("test").revoke(id).await.map(drop).unwrap_err(),
        directory.by("test").change(id, &KeyPatch::default()).await.map(drop).unwrap_err(),
    ];
    for refused in refusals {
        assert!(refused.to_string().contains("declared in the configuration"), "{refused}");
    }
    let stored = record("alice", "sk-other");
    let mut shadowed = KeyStoreState::default();
    shadowed.keys.insert(stored.id, stored);
    let book = DirectorySnapshot::new(declared(&["alice"]), false, shadowed);
    assert_eq!(book.shadowed().count(), 1);
    let states: Vec<_> = book.keys().iter().map(|key| key.state(Timestamp(0))).collect();
    assert!(states.contains(&"active") && states.contains(&"shadowed"), "{states:?}");
    assert_eq!(to_toml(&book).matches("[[key]]").count(), 1);
    let keys = KeyLookup::of(book.table());
    assert_eq!((whose(&keys, "sk-alice").as_deref(), whose(&keys, "sk-other")), (Some("alice"), None));
}

#[tokio::test]
async fn the_first_key_closes_an_open_gateway_and_revoking_it_does_not_open_it_again() {
    let store = Arc::new(MemoryKeyStore::default());
    let directory = directory(&store, DeclaredTenants::default()).await;
    assert!(directory.keys().is_open());
    assert_eq!(directory.snapshot().terms(), [AccountTerms::unlimited(account("anonymous"))]);
    let (key, _) = directory.by("test").create(&account("alice"), &KeyPatch::default()).await.unwrap();
    assert!(!directory.keys().is_open());
    directory.by("test").revoke(key.id).await.unwrap();
    assert!(!directory.keys().is_open());
    assert_eq!(directory.snapshot().terms(), []);
    let required =
        Directory::open(Arc::new(MemoryKeyStore::default()), DeclaredTenants::default(), true).await;
    assert!(!required.unwrap().keys().is_open());
}

fn money(dollars: u64) -> Vec<TenantLimit> {
    vec![TenantLimit::new(Window::Month, Amount::Money(Money(dollars * 1_000_000_000)))]
}

#[tokio::test]
async fn a_listener_is_notified_of_changed_terms() {
    let store = Arc::new(MemoryKeyStore::default());
    let told = Arc::new(Mutex::new(Vec::new()));
    let ear = told.clone();
    let directory =
        directory(&store, DeclaredTenants::default()).await.with_listener(Box::new(move |change| {
            let TermsChange::All(terms) = change else { panic!("{change:?}") };
            *ear.lock().unwrap() = terms;
            Box::pin(async {})
        }));
    let heard = || {
        let told = told.lock().unwrap();
        told.iter().map(|terms| (terms.account.to_string(), terms.limits.len())).collect::<Vec<_>>()
    };
    let limited = TermsPatch { limits: Some(money(20)), ..TermsPatch::default() };
    directory.by("test").set_terms(&account("acme"), &limited).await.unwrap();
    let wanted = KeyPatch { terms: limited.clone(), ..KeyPatch::default() };
    let (key, _) = directory.by("test").create(&account("acme/alice"), &wanted).await.unwrap();
    assert_eq!(heard(), [("acme".to_owned(), 1), ("acme/alice".to_owned(), 1)]);
    let none = TermsPatch { limits: Some(Vec::new()), ..TermsPatch::default() };
    directory.by("test").change(key.id, &KeyPatch { terms: none, ..KeyPatch::default() }).await.unwrap();
    directory.by("test").drop_terms(&account("acme")).await.unwrap();
    assert_eq!(heard(), [("acme/alice".to_owned(), 0)]);
    let unknown = directory.by("test").drop_terms(&account("nobody")).await.unwrap_err();
    assert!(matches!(unknown, KeyChangeError::UnknownAccount(_)), "{unknown}");
}

/// A request that began by the declaration before has its account's terms until it has reserved.
#[tokio::test]
async fn terms_that_are_gone_hold_until_they_are_withdrawn() {
    let store = Arc::new(MemoryKeyStore::default());
    let told = Arc::new(Mutex::new(Vec::new()));
    let ear = told.clone();
    let directory =
        directory(&store, DeclaredTenants::default()).await.with_listener(Box::new(move |change| {
            let TermsChange::All(terms) = change else { panic!("{change:?}") };
            *ear.lock().unwrap() = terms.iter().map(|terms| terms.account.to_string()).collect();
            Box::pin(async {})
        }));
    let declared = |name: &str| DeclaredTenants {
        tenants: vec![Tenant::new(account(name), hash_key("sk-moved"))],
        terms: vec![AccountTerms::unlimited(account(name))],
        ..DeclaredTenants::default()
    };
    // The account of callers without a key is gone.
    if let Some(open) = directory.replace_declared(declared("acme"), true, drop).await {
        directory.withdraw_gone(open).await;
    }
    let first = directory.replace_declared(declared("other"), true, drop).await.unwrap();
    assert_eq!(*told.lock().unwrap(), ["other", "acme"]);
    let second = directory.replace_declared(declared("third"), true, drop).await.unwrap();
    assert_eq!(*told.lock().unwrap(), ["third", "other", "acme"]);
    directory.withdraw_gone(first).await;
    assert_eq!(told.lock().unwrap().len(), 3, "there was another declaration since");
    directory.withdraw_gone(second).await;
    assert_eq!(*told.lock().unwrap(), ["third"]);
}

#[tokio::test]
async fn an_import_is_idempotent_all_or_nothing_and_brings_no_secret_back() {
    let store = Arc::new(MemoryKeyStore::default());
    let directory = directory(&store, DeclaredTenants::default()).await;
    let text = |names: &[&str]| {
        let DeclaredTenants { tenants, .. } = declared(names);
        let terms = tenants.iter().map(|tenant| AccountTerms::unlimited(tenant.account.clone())).collect();
        DeclaredTenants { tenants, terms, ..DeclaredTenants::default() }
    };
    let count = |created, changed, unchanged| ImportSummary { created, changed, unchanged };
    assert_eq!(directory.by("test").import(&text(&["a", "b"])).await.unwrap(), count(2, 0, 0));
    let version = store.version().await.unwrap();
    assert_eq!(directory.by("test").import(&text(&["a", "b"])).await.unwrap(), count(0, 0, 2));
    assert_eq!(store.version().await.unwrap(), version, "nothing was written");
    let mut other = text(&["a", "c"]);
    other.tenants[0].access = KeyAccess { models: vec!["m".into()], ..KeyAccess::default() };
    other.terms[0].limits = money(5);
    assert_eq!(directory.by("test").import(&other).await.unwrap(), count(1, 1, 0));
    assert_eq!(whose(&directory.keys(), "sk-a").as_deref(), Some("a"));
    let id = |name: &str| {
        let keys = directory.snapshot().keys();
        keys.iter().find(|key| key.terms.account.as_str() == name).unwrap().id
    };
    directory.by("test").rotate(id("a"), Duration::ZERO).await.unwrap();
    directory.by("test").revoke(id("b")).await.unwrap();
    let before = store.load().await.unwrap();
    let refused = directory.by("test").import(&text(&["a", "b", "d"])).await.unwrap_err().to_string();
    assert_eq!(refused.lines().count(), 2, "{refused}");
    assert!(refused.lines().all(|line| line.contains("replaced or revoked")), "{refused}");
    assert_eq!(store.load().await.unwrap(), before);
}

#[tokio::test]
async fn a_trusted_key_is_not_stored_as_one_that_is_not() {
    let directory = directory(&Arc::new(MemoryKeyStore::default()), DeclaredTenants::default()).await;
    let mut text = declared(&["a"]);
    text.tenants[0].feedback = FeedbackTrust::Trusted;
    let refused = directory.by("test").import(&text).await.unwrap_err().to_string();
    assert!(refused.contains("feedback = \"trusted\""), "{refused}");
}

#[tokio::test]
async fn an_export_has_what_is_in_force_and_hashes_only() {
    let store = Arc::new(MemoryKeyStore::default());
    let directory = directory(&store, declared(&["boss"])).await;
    let limited = TermsPatch { limits: Some(money(20)), ..TermsPatch::default() };
    directory.by("test").set_terms(&account("acme"), &limited).await.unwrap();
    let wanted = KeyPatch {
        models: Some(vec!["m \"quoted\"".into()]),
        expires: Some(Some(Timestamp(0))),
        terms: limited,
        ..KeyPatch::default()
    };
    let (key, secret) = directory.by("test").create(&account("acme/alice"), &wanted).await.unwrap();
    let (gone, _) = directory.by("test").create(&account("gone"), &KeyPatch::default()).await.unwrap();
    directory.by("test").revoke(gone.id).await.unwrap();
    let text = to_toml(&directory.snapshot());
    assert!(!text.contains(&secret.reveal()) && !text.contains("gone"), "{text}");
    let limits = "limits = [\n  { money = \"20\", per = \"month\" },\n]\n";
    let alice = format!(
        "[[key]]\nname = \"alice\"\naccount = \"acme\"\nhash = \"{}\"\nmodels = ['m \"quoted\"']\n\
         expires_at = \"1970-01-01T00:00:00Z\"\n{limits}",
        key.hash
    );
    let boss = format!("[[key]]\nname = \"boss\"\nhash = \"{}\"\n", hash_key("sk-boss"));
    let expected = format!("\n[[account]]\nname = \"acme\"\n{limits}\n{alice}\n{boss}");
    assert_eq!(text.split_once('\n').unwrap().1, expected);
}
