//! Runs of agents whose steps come to different replicas.

use futures_util::future::join_all;

use crate::postgres::{RELEASE_EPISODE_LEASES, STEPS, STEPS_BEFORE};
use crate::tests::cluster::cluster;
use crate::tests::detail;
use crate::tests::postgres::connect;
use stint_ledger::{
    AccountId, EpisodeUsage, RequestScope, Reservation, ReservationRequest, ReserveError, SettlementDetail,
    StepReservation,
};
use stint_types::chat::{EpisodeLimits, ToolCounts, ToolLimits};
use stint_types::units::{Count, EpisodeId, Money, Tokens};

use super::{PATIENCE, Replica, books, claim, key, replicas, short_leased_replicas, until};

fn run() -> EpisodeId {
    "run".parse().unwrap()
}

fn searches(count: u64) -> ToolCounts {
    let mut tools = ToolCounts::default();
    tools.add(&"search".into(), Count(count));
    tools
}

fn limits(search: u64) -> EpisodeLimits {
    let tools = ToolLimits { all: Some(Count(50)), each: [("search".into(), Count(search))].into() };
    EpisodeLimits { cost: Some(Money(10_000)), turns: Some(Count(60)), tools, ..EpisodeLimits::default() }
}

fn step(nanos: u64, search: u64, calls: u64) -> ReservationRequest {
    let claim = claim("key", nanos);
    let about = RequestScope { episode: Some(run()), ..claim.about };
    let step =
        Some(StepReservation { limits: limits(search), tools: searches(calls), tools_cost: Money::ZERO });
    ReservationRequest { about, step, ..claim }
}

fn refusal(refused: Result<Reservation, ReserveError>) -> String {
    match refused {
        Err(ReserveError::Shortfall(short)) => format!("{} leaves {}", short.limit, short.left.size()),
        other => format!("{other:?}"),
    }
}

async fn dispatched(replica: &Replica, claim: ReservationRequest) -> Reservation {
    let mut reservation = replica.ledger.obtain(claim).await.unwrap();
    reservation.dispatch().await.unwrap();
    reservation
}

async fn settle(reservation: Reservation, nanos: u64, calls: u64) {
    let detail = SettlementDetail { tools: searches(calls), ..detail() };
    reservation.settle(Money(nanos), Tokens(0), detail).wait_durable(PATIENCE).await;
}

async fn spent(replica: &Replica) -> EpisodeUsage {
    let key = AccountId::new("key");
    replica.ledger.refresh_episode(&key, &run(), &limits(20)).await;
    replica.ledger.episode(&key, &run()).spent
}

/// Many steps of one run at once, with room for exactly so many calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_share_the_calls_of_one_run_to_the_last_one() {
    let url = cluster().database();
    let all = replicas(&url, &key(&[]), 3).await;
    let attempts = (0..60).map(|task| all[task % 3].ledger.obtain(step(100, 20, 1)));
    let decided = join_all(attempts).await;
    let (served, refused): (Vec<_>, Vec<_>) = decided.into_iter().partition(Result::is_ok);
    assert_eq!(served.len(), 20);
    for refusal in refused {
        assert!(
            matches!(&refusal, Err(ReserveError::Shortfall(short)) if short.limit.to_string().contains("search")),
            "{refusal:?}"
        );
    }
    for (number, reservation) in served.into_iter().map(Result::unwrap).enumerate() {
        let mut reservation = reservation;
        reservation.dispatch().await.unwrap();
        // Every other one makes no call after all.
        settle(reservation, 10, u64::from(number % 2 == 0)).await;
    }
    for replica in &all {
        until("the standing is known", async || spent(replica).await.tools.of("search") == Count(10)).await;
        assert_eq!(spent(replica).await.cost, Money(200));
    }
    let rest = all[2].ledger.obtain(step(100, 20, 10)).await.unwrap();
    for replica in &all {
        let refused = replica.ledger.obtain(step(100, 20, 1)).await;
        assert_eq!(refusal(refused), "episode tool_calls of search leaves 0");
    }
    drop(rest);
    until("what is free again is to be had", async || all[0].ledger.obtain(step(100, 20, 10)).await.is_ok())
        .await;
}

/// A step on each replica in turn, as a load balancer sends them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_goes_from_replica_to_replica_has_one_budget() {
    let url = cluster().database();
    let all = replicas(&url, &key(&[]), 3).await;
    for turn in 0..6 {
        settle(dispatched(&all[turn % 3], step(1_000, 20, 3)).await, 700, 3).await;
    }
    let refused = all[0].ledger.obtain(step(1_000, 20, 3)).await;
    assert_eq!(refusal(refused), "episode tool_calls of search leaves 2");
    assert_eq!(spent(&all[1]).await.tools.of("search"), Count(18));
    let refused = all[1].ledger.obtain(step(5_801, 20, 0)).await;
    assert_eq!(refusal(refused), "episode money leaves 5800");
    settle(dispatched(&all[2], step(5_800, 20, 2)).await, 0, 2).await;
    // A replica that comes later knows it too.
    let late = Replica::start(&url, &key(&[]), super::LONG).await;
    assert_eq!(spent(&late).await.tools.of("search"), Count(20));
    assert_eq!(refusal(late.ledger.obtain(step(1, 20, 1)).await), "episode tool_calls of search leaves 0");
    assert_eq!(refusal(late.ledger.obtain(step(1, 3, 1)).await), "episode tool_calls of search leaves 0");
}

/// It has no quota windows then: what it took is in the rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_run_without_limits_it_is_known_what_it_took_elsewhere() {
    let url = cluster().database();
    let all = replicas(&url, &key(&[]), 2).await;
    for replica in &all {
        let mut step = step(100, 20, 2);
        step.step.as_mut().unwrap().limits = EpisodeLimits::default();
        settle(dispatched(replica, step).await, 40, 2).await;
    }
    for replica in &all {
        let key = AccountId::new("key");
        replica.ledger.refresh_episode(&key, &run(), &EpisodeLimits::default()).await;
        let spent = replica.ledger.episode(&key, &run()).spent;
        assert_eq!((spent.cost, spent.turns, spent.tools), (Money(80), Count(2), searches(4)));
    }
}

/// The same run, spent from without a turn of it.
fn beside(nanos: u64) -> ReservationRequest {
    let mut claim = step(nanos, 20, 0);
    claim.about.beside_turns = true;
    claim
}

/// Its quota windows are rebuilt from the rows, by replicas that counted before and by those that come later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_turn_spends_the_run_s_money_on_every_replica() {
    let url = cluster().database();
    let mut all = short_leased_replicas(&url, &key(&[])).await;
    for turn in 0..3 {
        settle(dispatched(&all[turn % 2], step(100, 20, 0)).await, 50, 0).await;
        settle(dispatched(&all[turn % 2], beside(400)).await, 300, 0).await;
    }
    let killed = all.pop().unwrap();
    let open = dispatched(&killed, beside(1_000)).await;
    assert_eq!(refusal(killed.ledger.obtain(beside(7_951)).await), "episode money leaves 7950");
    killed.pause(true);
    std::mem::forget((open, killed));
    let late = Replica::start(&url, &key(&[]), super::LONG).await;
    until("it is posted", async || spent(&late).await.cost == Money(2_050)).await;
    assert_eq!(spent(&all[0]).await.turns, Count(3));
    assert_eq!(refusal(all[0].ledger.obtain(beside(7_951)).await), "episode money leaves 7950");
    let few = |turns| {
        let mut few = step(10, 20, 0);
        few.step.as_mut().unwrap().limits.turns = Some(Count(turns));
        few
    };
    until("a turn is left", async || late.ledger.obtain(few(4)).await.is_ok()).await;
    settle(dispatched(&late, few(4)).await, 0, 0).await;
    assert_eq!(refusal(all[0].ledger.obtain(few(4)).await), "episode turns leaves 0");
}

/// Nobody can say which of its calls were made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_killed_replica_the_calls_of_its_open_step_are_posted() {
    let url = cluster().database();
    let mut all = short_leased_replicas(&url, &key(&[])).await;
    let killed = all.pop().unwrap();
    settle(dispatched(&killed, step(100, 20, 5)).await, 30, 1).await;
    let open = dispatched(&killed, step(200, 20, 4)).await;
    let waiting = killed.ledger.obtain(step(300, 20, 6)).await.unwrap();
    killed.pause(true);
    // A kill runs no destructors.
    std::mem::forget((open, waiting, killed));
    let (other, database) = (&all[0], connect(&url).await);
    until("the rest is to be had", async || other.ledger.obtain(step(1, 20, 15)).await.is_ok()).await;
    assert_eq!(refusal(other.ledger.obtain(step(1, 20, 16)).await), "episode tool_calls of search leaves 15");
    assert_eq!(books(&database).await, (230, 0));
    let used = spent(other).await;
    assert_eq!((used.cost, used.turns, used.tools), (Money(230), Count(2), searches(5)));
}

/// However many requests there ever were.
#[tokio::test]
async fn what_a_run_took_is_looked_up_by_its_own_rows() {
    let url = cluster().database();
    let database = connect(&url).await;
    let fill = "\
        INSERT INTO replicas (epoch, name, expires_at) OVERRIDING SYSTEM VALUE VALUES (77, 'dead', now()); \
        INSERT INTO reservations (id, account, money, thinking, tool_calls, if_abandoned, admitted_at, expires_at, episode, epoch) \
        SELECT decode(lpad(to_hex(i), 32, '0'), 'hex'), 'key', 9, 0, 0, 'whole', i, i, 'run' || i / 10, 77 \
        FROM generate_series(1, 20000) i; \
        INSERT INTO resolutions (reservation, how, account, admitted_at, resolved_at, money, thinking, tool_calls, \
            overrun_money, overrun_thinking, overrun_tool_calls, prompt, overhead, solution, other, outcome, episode) \
        SELECT id, 'settled', account, admitted_at, admitted_at, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 'stop', episode \
        FROM reservations; \
        INSERT INTO purses (account, facet, name, unit, period, begins) \
        SELECT 'key', 'episode', 'run' || i, 'money', 'total', 0 FROM generate_series(1, 500) i; \
        INSERT INTO slices (purse, epoch, amount) SELECT id, 77, 9 FROM purses; \
        ANALYZE";
    sqlx::raw_sql(fill).execute(database.pool()).await.unwrap();
    let steps = STEPS.replace("$1", "'{1,2,3}'::bigint[]");
    let before = STEPS_BEFORE
        .replace("$1", "1")
        .replace("$6", "'{9,9}'")
        .replace("$2", "'{key,key}'")
        .replace("$3", "'{episode,episode}'")
        .replace("$4", "'{run1,run2}'")
        .replace("$5", "'{money,money}'");
    let reclaimed = RELEASE_EPISODE_LEASES.replace("$1", "77").replace("$2", "256");
    for sql in [steps, before, reclaimed] {
        let plan = sqlx::query_scalar::<_, String>(sqlx::AssertSqlSafe(format!("EXPLAIN {sql}")));
        let plan = plan.fetch_all(database.pool()).await.unwrap();
        for table in ["resolutions", "reservations"] {
            let walks = plan.iter().any(|step| step.contains(&format!("Seq Scan on {table}")));
            assert!(!walks, "{plan:#?}");
        }
    }
}

/// What a replica remembers of a run, and the coordinator, may go; the rows stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_everybody_forgot_goes_on_where_it_was() {
    let url = cluster().database();
    let all = replicas(&url, &key(&[]), 2).await;
    settle(dispatched(&all[0], step(100, 20, 8)).await, 30, 7).await;
    settle(dispatched(&all[1], step(100, 20, 8)).await, 30, 5).await;
    let database = connect(&url).await;
    let is_trimmed = "SELECT coalesce(bool_and(trimmed_at = 'infinity'), FALSE) FROM slices s \
                   JOIN purses p ON p.id = s.purse WHERE p.facet IN ('episode', 'tool')";
    until("the coordinator knows that nothing is open", async || {
        sqlx::query_scalar(is_trimmed).fetch_one(database.pool()).await.unwrap()
    })
    .await;
    let key = AccountId::new("key");
    all[0].ledger.expire(all[0].ledger.now() + std::time::Duration::from_secs(3_700));
    assert_eq!(all[0].ledger.episode(&key, &run()).spent, EpisodeUsage::default());
    sqlx::query("UPDATE purses SET changed_at = changed_at - interval '2 days'")
        .execute(database.pool())
        .await
        .unwrap();
    until("the quota windows are forgotten", async || {
        all[1].reclaim_expired().await;
        let left = "SELECT count(*) FROM purses WHERE facet IN ('episode', 'tool')";
        sqlx::query_scalar::<_, i64>(left).fetch_one(database.pool()).await.unwrap() == 0
    })
    .await;
    for replica in &all {
        assert_eq!(
            refusal(replica.ledger.obtain(step(1, 20, 9)).await),
            "episode tool_calls of search leaves 8"
        );
        assert_eq!(spent(replica).await.tools.of("search"), Count(12));
    }
    drop(all[0].ledger.obtain(step(1, 20, 8)).await.unwrap());
}
