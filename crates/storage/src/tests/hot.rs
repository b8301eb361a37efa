//! How fast replicas admit on one hot key; run with
//! `cargo test --release storage::tests::hot -- --ignored --nocapture`.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use crate::PostgresCoordinator;
use stint_ledger::{AbandonPolicy, AccountId, Ledger, RequestScope, ReservationRequest, Settings};
use stint_types::catalog::WorstCase;
use stint_types::tasks::Tasks;
use stint_types::tenant::{AccountTerms, TenantLimit};
use stint_types::units::{Amount, Money, RequestId, Timestamp, Tokens, Window};

use super::cluster::Cluster;
use super::detail;
use super::postgres::connect;

const REPLICAS: usize = 3;
const LONG: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn one_hot_key_on_three_replicas() {
    let cluster = Cluster::start(true);
    for callers in [24, 96, 384] {
        let url = cluster.database();
        let limits = [Window::Minute, Window::Month]
            .map(|window| TenantLimit::new(window, Amount::Money(Money(10_000_000_000))));
        let terms =
            [AccountTerms { limits: limits.to_vec(), ..AccountTerms::unlimited(AccountId::new("key")) }];
        let tasks = Tasks::default();
        let ledgers = join_all((0..REPLICAS).map(async |_| {
            let coordinator = Arc::new(PostgresCoordinator::new(connect(&url).await));
            Ledger::share(&tasks, coordinator, Arc::new(()), Settings::default(), &terms).await.unwrap()
        }))
        .await;
        let (admitted, began, requests) = (Arc::new(AtomicU64::new(0)), Instant::now(), Tasks::default());
        for caller in 0..callers {
            let (ledger, admitted) = (ledgers[caller % REPLICAS].clone(), admitted.clone());
            requests.spawn(async move {
                while began.elapsed() < LONG {
                    let mut reservation = ledger.obtain(claim()).await.unwrap();
                    reservation.dispatch().await.unwrap();
                    admitted.fetch_add(1, Ordering::Relaxed);
                    let settling = reservation.settle(Money(4_000), Tokens(1), detail());
                    assert!(settling.wait_durable(Duration::from_secs(60)).await.is_recorded());
                }
            });
        }
        assert!(requests.drain(Duration::from_secs(60)).await);
        let rate = u128::from(admitted.load(Ordering::Relaxed)) * 1000 / began.elapsed().as_millis();
        let (held, left) = stranded(&url).await;
        let share = held * 10_000 / left.max(1);
        writeln!(
            std::io::stdout(),
            "{callers:>3} callers: {rate:>6} admitted, sent and settled a second; held and not used: {}.{:02} % of what is left",
            share / 100,
            share % 100
        )
        .unwrap();
        let began = Instant::now();
        let rounds = 20_000;
        for _ in 0..rounds {
            drop(ledgers[0].reserve(claim()));
        }
        writeln!(std::io::stdout(), "    reserve and void in memory: {:?}", began.elapsed() / rounds)
            .unwrap();
        drop(ledgers);
        tasks.stop();
        assert!(tasks.drain(Duration::from_secs(20)).await);
    }
}

/// How many requests a second a replica refuses under a limit that is spent, most of them without asking the coordinator.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn refusals_of_a_spent_limit() {
    let cluster = Cluster::start(true);
    let url = cluster.database();
    let limits = vec![TenantLimit::new(Window::Total, Amount::Money(Money(10_000)))];
    let terms = [AccountTerms { limits, ..AccountTerms::unlimited(AccountId::new("key")) }];
    let tasks = Tasks::default();
    let open = async || {
        let coordinator = Arc::new(PostgresCoordinator::new(connect(&url).await));
        Ledger::share(&tasks, coordinator, Arc::new(()), Settings::default(), &terms).await.unwrap()
    };
    let (other, ledger) = (open().await, open().await);
    let _all = other.obtain(claim()).await.unwrap();
    let (refused, began) = (AtomicU64::new(0), Instant::now());
    join_all((0..8).map(async |_| {
        while began.elapsed() < LONG {
            ledger.obtain(claim()).await.unwrap_err();
            refused.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    }))
    .await;
    let rate = u128::from(refused.into_inner()) * 1000 / began.elapsed().as_millis();
    writeln!(std::io::stdout(), "{rate} refused a second").unwrap();
}

fn claim() -> ReservationRequest {
    let now = Timestamp::now();
    ReservationRequest {
        account: AccountId::new("key"),
        id: RequestId::new(),
        about: RequestScope::default(),
        worst: WorstCase { money: Money(10_000), thinking: Tokens(10) },
        step: None,
        prices: None,
        if_abandoned: AbandonPolicy::PostWhole,
        rate: None,
        now,
        expires: now + Duration::from_secs(60),
    }
}

/// Of the month: what is leased and was not used, and what is left of the limit.
async fn stranded(url: &str) -> (i64, i64) {
    let statement = "\
        SELECT (granted - (SELECT coalesce(sum(money), 0) FROM resolutions))::bigint, 10000000000 - granted \
        FROM purses WHERE period = 'month'";
    sqlx::query_as(statement).fetch_one(connect(url).await.pool()).await.unwrap()
}
