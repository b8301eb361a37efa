//! What comes while replicas live: limits that are new, and a database whose clock jumps.

use crate::tests::cluster::cluster;
use crate::tests::detail;
use crate::tests::postgres::connect;
use stint_ledger::{LedgerError, RequestScope, Reservation, ReservationRequest, ReserveError};
use stint_types::tenant::LimitSelector;
use stint_types::units::{Money, Timestamp, Tokens, Window};

use super::{PATIENCE, Replica, audit, books, claim, key, money, replicas, until};

/// A request of a user with a tag, for the model of all claims here.
fn of(user: &str, tag: &str, nanos: u64) -> ReservationRequest {
    let about = RequestScope { user: Some(user.into()), tag: Some(tag.into()), ..claim("key", nanos).about };
    ReservationRequest { about, ..claim("key", nanos) }
}

async fn sent(replica: &Replica, claim: ReservationRequest) -> Reservation {
    let mut reservation = replica.ledger.obtain(claim).await.unwrap();
    reservation.dispatch().await.unwrap();
    reservation
}

async fn spend(replica: &Replica, claim: ReservationRequest) {
    let nanos = claim.worst.money;
    let settling = sent(replica, claim).await.settle(nanos, Tokens(1), detail());
    assert!(settling.wait_durable(PATIENCE).await.is_recorded());
}

/// Both replicas have spent before the limit on a part of their requests came, and one has a request open.
async fn limited_late(scope: LimitSelector, name: &str) {
    let url = cluster().database();
    let all = replicas(&url, &key(&[money(Window::Total, 100_000)]), 2).await;
    spend(&all[0], of("bob", "batch", 100)).await;
    spend(&all[1], of("bob", "batch", 200)).await;
    spend(&all[1], ReservationRequest { about: RequestScope::default(), ..claim("key", 5_000) }).await;
    let open = sent(&all[0], of("bob", "batch", 50)).await;
    let limited = key(&[money(Window::Total, 100_000), money(Window::Month, 600).with_selector(scope)]);
    all.iter().for_each(|replica| replica.ledger.declare(&limited));
    for on in [0, 1] {
        let refused = all[on].ledger.obtain(of("bob", "batch", 251)).await.unwrap_err();
        assert!(refused.to_string().contains(name), "{refused}");
        let mut rest = None;
        until("the rest is to be had", async || {
            rest = all[on].ledger.obtain(of("bob", "batch", 250)).await.ok();
            rest.is_some()
        })
        .await;
        let other = all[1 - on].ledger.obtain(of("bob", "batch", 1)).await;
        assert!(matches!(other, Err(ReserveError::Shortfall(_))), "{other:?}");
        drop(rest);
    }
    open.void().wait_durable(PATIENCE).await;
    until("what is void is to be had", async || all[1].ledger.obtain(of("bob", "batch", 300)).await.is_ok())
        .await;
    // What they spend from here on counts too, and nothing twice.
    spend(&all[1], of("bob", "batch", 299)).await;
    until("all but one is spent", async || {
        let two = all[0].ledger.obtain(of("bob", "batch", 2)).await;
        two.is_err() && all[0].ledger.obtain(of("bob", "batch", 1)).await.is_ok()
    })
    .await;
    audit(&*connect(&url).await, 100_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_on_a_model_that_is_new_counts_what_living_replicas_spent() {
    limited_late(LimitSelector::Model("m".into()), "month of model m").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_on_a_tag_that_is_new_counts_what_living_replicas_spent() {
    limited_late(LimitSelector::Tag("batch".into()), "month of tag batch").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_on_users_that_is_new_counts_what_living_replicas_spent() {
    limited_late(LimitSelector::EachUser, "month of user bob").await;
}

/// CR-11: the database's clock jumps by a day: everybody's lease is over at once, and everybody begins again. No machine's
/// own clock has moved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_whose_clock_jumps_ends_leases_and_nothing_is_spent_twice() {
    let url = cluster().database();
    let all = replicas(&url, &key(&[money(Window::Total, 1_000)]), 2).await;
    let (lost, database) = (all[0].dispatched(100).await, connect(&url).await);
    let mut late = all[0].obtain("key", 300).await.unwrap();
    let jump = "CREATE OR REPLACE FUNCTION bank_clock() RETURNS TIMESTAMPTZ LANGUAGE sql VOLATILE AS \
                'SELECT clock_timestamp() + interval ''1 day'''";
    sqlx::query(jump).execute(database.pool()).await.unwrap();
    assert_eq!(all[1].reclaim_expired().await, (2, 1));
    assert_eq!(books(&database).await, (100, 0));
    let refused = late.dispatch().await.unwrap_err();
    assert!(matches!(&refused, LedgerError::Journal(error) if error.is_lease_lost()), "{refused}");
    drop((lost.settle(Money(1), Tokens(0), detail()), late));
    for replica in &all {
        until("it goes on by itself", async || replica.obtain("key", 900).await.is_ok()).await;
        let tomorrow = replica.ledger.now().0 - Timestamp::now().0;
        assert!((tomorrow - 24 * 3_600 * 1_000).abs() < 10_000, "{tomorrow}");
    }
    assert_eq!(books(&database).await, (100, 0));
}
