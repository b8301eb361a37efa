//! The conformance tests that every key store must pass.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::units::{AccountId, Amount, Count, Money, Priority, Timestamp, Tokens, Window, Zone};

use super::{
    AccountTerms, AdminRole, AuditEntry, AuditHash, KeyAccess, KeyId, KeyRecord, KeyStore, KeyStoreChange,
    KeyStoreError, KeyStoreState, LimitSelector, Percent, RetiredSecret, StoreVersion, TenantLimit, chained,
    hash_key,
};

/// Runs the whole suite against an empty store.
pub async fn conforms(store: &dyn KeyStore) {
    assert_eq!(store.load().await.unwrap(), KeyStoreState::default());
    what_is_put_comes_back_as_it_was(store).await;
    a_record_replaces_the_one_of_its_id(store).await;
    terms_are_replaced_and_dropped_whole(store).await;
    what_others_changed_is_not_overwritten(store).await;
    two_keys_share_neither_account_nor_secret(store).await;
    a_revoked_key_leaves_its_account_to_another(store).await;
    every_role_comes_back(store).await;
    entries_are_chained_and_go_with_their_changes(store).await;
}

/// A key of this account with this secret.
pub fn record(account: &str, secret: &str) -> KeyRecord {
    KeyRecord {
        id: KeyId::generate().unwrap(),
        account: AccountId::new(account),
        hash: hash_key(secret),
        retired: Vec::new(),
        access: KeyAccess::default(),
        priority: Priority::default(),
        created: Timestamp(1_000),
        expires: None,
        revoked: None,
    }
}

async fn apply(store: &dyn KeyStore, changes: &[KeyStoreChange]) -> Result<(), KeyStoreError> {
    store.apply(store.version().await.unwrap(), changes, &[]).await
}

/// Changes that are to work, against a plain list's idea of them.
async fn agrees(store: &dyn KeyStore, changes: &[KeyStoreChange]) {
    let mut expected = store.load().await.unwrap();
    expected.apply(changes);
    store.apply(store.version().await.unwrap(), changes, &[]).await.unwrap();
    assert_eq!(store.load().await.unwrap(), expected);
    assert_eq!(store.version().await.unwrap(), expected.version);
}

async fn what_is_put_comes_back_as_it_was(store: &dyn KeyStore) {
    let plain = record("acme/plain", "sk-plain");
    let retired = |secret, until| RetiredSecret { hash: hash_key(secret), until: Timestamp(until) };
    let full = KeyRecord {
        retired: vec![retired("sk-2", 9), retired("sk-1", 7)],
        access: KeyAccess {
            models: vec!["b".into(), "a, \"quoted\"".into()],
            routes: vec!["auto".into()],
            role: Some(AdminRole::Keys),
        },
        priority: Priority::Batch,
        expires: Some(Timestamp(5_000)),
        revoked: Some(Timestamp(-1)),
        ..record("acme/Müller & Söhne", "sk-full")
    };
    let terms = terms("acme/plain");
    agrees(
        store,
        &[KeyStoreChange::PutKey(plain), KeyStoreChange::PutKey(full), KeyStoreChange::PutTerms(terms)],
    )
    .await;
}

fn terms(account: &str) -> AccountTerms {
    let limit = |window, max| TenantLimit::new(window, max);
    AccountTerms {
        account: AccountId::new(account),
        limits: vec![
            limit(Window::Month, Amount::Money(Money(20_000_000_001))),
            limit(Window::Total, Amount::Concurrency(Count(8))),
            limit(Window::Day, Amount::Thinking(Tokens(1))).with_selector(LimitSelector::EachUser),
            limit(Window::Minute, Amount::Requests(Count(60)))
                .with_selector(LimitSelector::Tag("a tag".into())),
            limit(Window::Hour, Amount::ToolCalls(Count(0))).with_selector(LimitSelector::Model("m".into())),
            limit(Window::Week, Amount::Money(Money(i64::MAX.unsigned_abs()))),
        ],
        zone: "Europe/Berlin".parse::<Zone>().unwrap(),
        warn_at: Percent::try_from(50).unwrap(),
    }
}

async fn every_role_comes_back(store: &dyn KeyStore) {
    for role in [None, Some(AdminRole::Read), Some(AdminRole::Keys), Some(AdminRole::All)] {
        let name = format!("role-{role:?}");
        let key = record(&name, &format!("sk-{name}"));
        let access = KeyAccess { role, ..KeyAccess::default() };
        agrees(store, &[KeyStoreChange::PutKey(KeyRecord { access, ..key.clone() })]).await;
        // Another role in place of it.
        agrees(store, &[KeyStoreChange::PutKey(key)]).await;
    }
}

fn entry(subject: &str) -> AuditEntry {
    AuditEntry {
        at: Timestamp(1_000),
        who: "acme/Müller".to_owned(),
        action: "key.change".to_owned(),
        subject: subject.to_owned(),
        before: None,
        after: Some(format!("{{\"of\":\"{subject}\"}}")),
    }
}

async fn entries_are_chained_and_go_with_their_changes(store: &dyn KeyStore) {
    assert_eq!(store.read_audit(None, 10).await.unwrap(), [], "those of refused changes are not there");
    store.append_audit(&[entry("first")]).await.unwrap();
    let seen = store.version().await.unwrap();
    let change = KeyStoreChange::PutTerms(terms("audited"));
    store.apply(seen, &[change], &[entry("second"), entry("third")]).await.unwrap();
    let two_of_one_secret =
        [KeyStoreChange::PutKey(record("x", "sk-x")), KeyStoreChange::PutKey(record("y", "sk-x"))];
    let seen = store.version().await.unwrap();
    store.apply(seen, &two_of_one_secret, &[entry("never")]).await.unwrap_err();
    store.append_audit(&[entry("fourth")]).await.unwrap();
    let mut expected = chained(0, AuditHash::default(), &["first", "second", "third", "fourth"].map(entry));
    expected.reverse();
    assert_eq!(store.read_audit(None, 10).await.unwrap(), expected);
    assert_eq!(store.read_audit(Some(4), 2).await.unwrap(), expected[1..3]);
    assert_eq!(store.read_audit(Some(1), 2).await.unwrap(), []);
}

async fn a_record_replaces_the_one_of_its_id(store: &dyn KeyStore) {
    let first = record("rotated", "sk-first");
    agrees(store, &[KeyStoreChange::PutKey(first.clone())]).await;
    let second = KeyRecord {
        hash: hash_key("sk-second"),
        retired: vec![RetiredSecret { hash: first.hash, until: Timestamp(2_000) }],
        ..first
    };
    agrees(store, &[KeyStoreChange::PutKey(second.clone())]).await;
    agrees(store, &[KeyStoreChange::PutKey(KeyRecord { revoked: Some(Timestamp(3_000)), ..second })]).await;
}

async fn terms_are_replaced_and_dropped_whole(store: &dyn KeyStore) {
    agrees(store, &[KeyStoreChange::PutTerms(terms("team"))]).await;
    agrees(store, &[KeyStoreChange::PutTerms(AccountTerms::unlimited(AccountId::new("team")))]).await;
    agrees(
        store,
        &[
            KeyStoreChange::RemoveTerms(AccountId::new("team")),
            KeyStoreChange::RemoveTerms(AccountId::new("absent")),
        ],
    )
    .await;
}

async fn what_others_changed_is_not_overwritten(store: &dyn KeyStore) {
    let seen = store.version().await.unwrap();
    agrees(store, &[KeyStoreChange::PutKey(record("moved", "sk-moved"))]).await;
    let before = store.load().await.unwrap();
    for seen in [seen, StoreVersion(before.version.0 + 1)] {
        let late = store.apply(seen, &[KeyStoreChange::PutTerms(terms("moved"))], &[entry("late")]).await;
        assert!(matches!(late, Err(KeyStoreError::Conflict)), "{late:?}");
    }
    assert_eq!(store.load().await.unwrap(), before);
}

async fn two_keys_share_neither_account_nor_secret(store: &dyn KeyStore) {
    let one = KeyRecord {
        retired: vec![RetiredSecret { hash: hash_key("sk-old"), until: Timestamp(1) }],
        ..record("one", "sk-one")
    };
    agrees(store, &[KeyStoreChange::PutKey(one)]).await;
    let before = store.load().await.unwrap();
    for other in [record("one", "sk-new"), record("two", "sk-one"), record("two", "sk-old")] {
        let changes = [KeyStoreChange::PutKey(record("never", "sk-never")), KeyStoreChange::PutKey(other)];
        let refused = apply(store, &changes).await;
        assert!(matches!(refused, Err(KeyStoreError::Failed { .. })), "{refused:?}");
        assert_eq!(store.load().await.unwrap(), before, "all or none");
    }
}

async fn a_revoked_key_leaves_its_account_to_another(store: &dyn KeyStore) {
    let revoked = KeyRecord { revoked: Some(Timestamp(1)), ..record("again", "sk-again-1") };
    agrees(store, &[KeyStoreChange::PutKey(revoked)]).await;
    agrees(store, &[KeyStoreChange::PutKey(record("again", "sk-again-2"))]).await;
}
