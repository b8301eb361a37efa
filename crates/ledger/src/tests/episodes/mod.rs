//! Tests of episodes: an episode uses exactly what it may, wherever its steps run and however they end.

mod model;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::poll;

use crate::{
    AbandonPolicy, AccountId, EpisodeBalance, EpisodeUsage, Ledger, LedgerState, MemoryJournal, RequestScope,
    Reservation, ReservationRequest, ReserveError, Settings, SettlementDetail, StepReservation,
};
use stint_types::chat::{EpisodeLimits, ToolCounts, ToolLimits};
use stint_types::tasks::Tasks;
use stint_types::tenant::{AccountTerms, TenantLimit};
use stint_types::units::{Amount, Count, EpisodeId, Money, Tokens, Window};

use super::scripted::ScriptedJournal;
use super::{NOW, claim, detail, terms, worst};

const PATIENCE: Duration = Duration::from_secs(60);

fn run(name: &str) -> EpisodeId {
    name.parse().unwrap()
}

fn key() -> AccountId {
    AccountId::new("key")
}

fn tools(each: &[(&str, u64)]) -> ToolCounts {
    let mut tools = ToolCounts::default();
    each.iter().for_each(|(tool, count)| tools.add(&(*tool).into(), Count(*count)));
    tools
}

fn searches(most: u64) -> EpisodeLimits {
    let tools = ToolLimits { all: None, each: [("search".into(), Count(most))].into() };
    EpisodeLimits { tools, ..EpisodeLimits::default() }
}

/// A step of the episode `run`.
fn step(nanos: u64, limits: &EpisodeLimits, calls: &[(&str, u64)]) -> ReservationRequest {
    let about = RequestScope { episode: Some(run("run")), ..RequestScope::default() };
    let step = Some(StepReservation { limits: limits.clone(), tools: tools(calls), tools_cost: Money::ZERO });
    ReservationRequest { about, step, ..claim(nanos, 0) }
}

fn passed(calls: &[(&str, u64)]) -> SettlementDetail {
    SettlementDetail { tools: tools(calls), ..detail() }
}

async fn open(tasks: &Tasks, journal: Arc<dyn crate::Journal>, limits: &[TenantLimit]) -> Ledger {
    let terms = [terms("key", limits)];
    Ledger::open(tasks, journal, Arc::new(()), Settings::default(), &terms, NOW).await.unwrap()
}

async fn obtain(ledger: &Ledger, claim: ReservationRequest) -> Reservation {
    let mut reservation = ledger.obtain(claim).await.unwrap();
    reservation.dispatch().await.unwrap();
    reservation
}

fn refusal(refused: Result<Reservation, ReserveError>) -> String {
    match refused {
        Err(ReserveError::Shortfall(short)) => format!("{} leaves {}", short.limit, short.left.size()),
        other => format!("{other:?}"),
    }
}

fn spent(ledger: &Ledger) -> EpisodeUsage {
    let EpisodeBalance { spent, reserved } = ledger.episode(&key(), &run("run"));
    assert_eq!(reserved.turns, Count::ZERO);
    spent
}

#[tokio::test]
async fn two_steps_at_once_share_one_budget_exactly() {
    let (tasks, journal) = (Tasks::default(), Arc::new(MemoryJournal::default()));
    let ledger = open(&tasks, journal, &[]).await;
    let limits = EpisodeLimits { cost: Some(Money(100)), turns: Some(Count(3)), ..searches(5) };
    let first = obtain(&ledger, step(60, &limits, &[("search", 3)])).await;
    let refused = ledger.obtain(step(41, &limits, &[])).await;
    assert_eq!(refusal(refused), "episode money leaves 40");
    let refused = ledger.obtain(step(40, &limits, &[("search", 3)])).await;
    assert_eq!(refusal(refused), "episode tool_calls of search leaves 2");
    let second = obtain(&ledger, step(40, &limits, &[("search", 2)])).await;
    first.settle(Money(10), Tokens(0), passed(&[("search", 1)]));
    let third = obtain(&ledger, step(50, &limits, &[("search", 2)])).await;
    assert_eq!(refusal(ledger.obtain(step(0, &limits, &[])).await), "episode turns leaves 0");
    drop(second.void());
    third.settle(Money(0), Tokens(0), passed(&[("search", 2)]));
    let used = spent(&ledger);
    assert_eq!((used.cost, used.turns, used.tools), (Money(10), Count(2), tools(&[("search", 3)])));
    drop(obtain(&ledger, step(90, &limits, &[("search", 2)])).await.void());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_sixty_four_steps_at_once_as_many_run_as_there_are_calls() {
    let (tasks, journal) = (Tasks::default(), Arc::new(MemoryJournal::default()));
    let ledger = open(&tasks, journal, &[]).await;
    let limits = searches(10);
    let attempts = (0..64).map(|_| ledger.obtain(step(1, &limits, &[("search", 1)])));
    let decided = join_all(attempts).await;
    assert_eq!(decided.iter().filter(|one| one.is_ok()).count(), 10);
}

#[tokio::test]
async fn limits_that_are_said_again_are_only_lowered() {
    let (tasks, journal) = (Tasks::default(), Arc::new(MemoryJournal::default()));
    let ledger = open(&tasks, journal, &[]).await;
    drop(obtain(&ledger, step(1, &searches(5), &[("search", 2)])).await.void());
    let refused = ledger.obtain(step(1, &searches(9), &[("search", 6)])).await;
    assert_eq!(refusal(refused), "episode tool_calls of search leaves 5");
    drop(obtain(&ledger, step(1, &searches(2), &[("search", 2)])).await.void());
    let refused = ledger.obtain(step(1, &EpisodeLimits::default(), &[("search", 3)])).await;
    assert_eq!(refusal(refused), "episode tool_calls of search leaves 2");
}

/// What a plan may count on is the least of the key's limits and the episode's.
#[tokio::test]
async fn the_allowance_of_a_step_is_what_its_run_leaves() {
    let (tasks, journal) = (Tasks::default(), Arc::new(MemoryJournal::default()));
    let ledger = open(&tasks, journal, &[super::money(Window::Total, 1_000)]).await;
    let about = RequestScope { episode: Some(run("run")), ..RequestScope::default() };
    let limits = EpisodeLimits { cost: Some(Money(100)), thinking: Some(Tokens(50)), ..searches(1) };
    let left = |limits: &EpisodeLimits| {
        let remaining = ledger.allowance_within(&key(), &about, limits, NOW).overall;
        let money = remaining.money.unwrap();
        (money.amount, money.limit.to_string(), remaining.thinking.map(|left| left.amount))
    };
    assert_eq!(left(&limits), (Money(100), "episode money".to_owned(), Some(Tokens(50))));
    obtain(&ledger, step(30, &limits, &[])).await.settle(Money(20), Tokens(9), detail());
    assert_eq!(left(&EpisodeLimits::default()).0, Money(80), "it is remembered");
    assert_eq!(left(&limits).2, Some(Tokens(41)));
}

#[tokio::test]
async fn a_keys_own_limit_on_tool_calls_counts_them() {
    let (tasks, journal) = (Tasks::default(), Arc::new(MemoryJournal::default()));
    let limit = TenantLimit::new(Window::Day, Amount::ToolCalls(Count(4)));
    let ledger = open(&tasks, journal, &[limit]).await;
    let none = EpisodeLimits::default();
    obtain(&ledger, step(1, &none, &[("search", 2), ("browse", 1)])).await.settle(
        Money(1),
        Tokens(0),
        passed(&[("search", 1), ("browse", 1)]),
    );
    let refused = ledger.obtain(step(1, &none, &[("search", 3)])).await;
    assert_eq!(refusal(refused), "key tool_calls day leaves 2");
}

/// The caller may have seen every call that was reserved.
#[tokio::test(start_paused = true)]
async fn of_a_step_that_nobody_settles_all_calls_are_posted() {
    let (tasks, journal) = (Tasks::default(), Arc::new(MemoryJournal::default()));
    let ledger = open(&tasks, journal.clone(), &[]).await;
    let mut claim = step(60, &searches(9), &[("search", 3)]);
    (claim.if_abandoned, claim.step.as_mut().unwrap().tools_cost) = (AbandonPolicy::PostMetered, Money(15));
    let reservation = obtain(&ledger, claim).await;
    reservation.meter(Money(20), Tokens(0));
    drop(reservation);
    let used = spent(&ledger);
    assert_eq!((used.cost, used.tools.clone()), (Money(35), tools(&[("search", 3)])));
    drop(ledger);
    assert!(tasks.drain(PATIENCE).await);
    let (tasks, again) = (Tasks::default(), journal.clone());
    let ledger = open(&tasks, again, &[]).await;
    ledger.refresh_episode(&key(), &run("run"), &searches(9)).await;
    assert_eq!(spent(&ledger), used);
}

/// A process that dies has settled some steps and not others; the next one goes on from both.
#[tokio::test(start_paused = true)]
async fn a_restart_forgets_nothing_of_a_run() {
    let (tasks, journal) = (Tasks::default(), ScriptedJournal::failing(&[]));
    let ledger = open(&tasks, journal.clone(), &[]).await;
    let limits = searches(9);
    let settled = obtain(&ledger, step(60, &limits, &[("search", 3)])).await;
    settled.settle(Money(10), Tokens(5), passed(&[("search", 1)])).wait_durable(PATIENCE).await;
    obtain(&ledger, step(5, &limits, &[])).await.void().wait_durable(PATIENCE).await;
    std::mem::forget(obtain(&ledger, step(60, &limits, &[("search", 4), ("browse", 1)])).await);
    let ledger = open(&Tasks::default(), journal, &[]).await;
    assert_eq!(
        refusal(ledger.reserve(step(1, &limits, &[("search", 5)]))),
        "Err(Summing)",
        "it is not read yet"
    );
    let refused = ledger.obtain(step(1, &limits, &[("search", 5)])).await;
    assert_eq!(refusal(refused), "episode tool_calls of search leaves 4");
    let used = spent(&ledger);
    let expected = tools(&[("search", 5), ("browse", 1)]);
    assert_eq!(
        (used.cost, used.thinking, used.turns, used.tools),
        (Money(70), Tokens(5), Count(2), expected)
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_forgotten_is_read_again() {
    let (tasks, journal) = (Tasks::default(), Arc::new(MemoryJournal::default()));
    let ledger = open(&tasks, journal, &[]).await;
    let limits = searches(3);
    obtain(&ledger, step(9, &limits, &[("search", 2)])).await.settle(
        Money(9),
        Tokens(0),
        passed(&[("search", 2)]),
    );
    let running = obtain(
        &ledger,
        ReservationRequest {
            about: RequestScope { episode: Some(run("other")), ..RequestScope::default() },
            ..step(1, &limits, &[])
        },
    );
    let running = running.await;
    ledger.expire(NOW + Duration::from_secs(3));
    assert_eq!(spent(&ledger).turns, Count(1), "it was asked for a moment ago");
    let later = NOW + Duration::from_secs(3_700);
    let mut renewed = running;
    renewed.renew(later + PATIENCE).unwrap();
    ledger.expire(later);
    assert_eq!(spent(&ledger), EpisodeUsage::default());
    assert_eq!(
        ledger.episode(&key(), &run("other")).reserved.turns,
        Count(1),
        "what is open is not forgotten"
    );
    let refused =
        ledger.obtain(ReservationRequest { now: later, ..step(1, &limits, &[("search", 2)]) }).await;
    assert_eq!(refusal(refused), "episode tool_calls of search leaves 1");
}

#[test]
fn of_too_many_runs_those_that_nobody_asked_for_longest_are_forgotten() {
    let mut accounts = LedgerState::default();
    accounts.declare(&[AccountTerms::unlimited(key())]);
    let (limits, later) = (searches(1), NOW + Duration::from_secs(120));
    for number in 0..100_010 {
        let about = RequestScope { episode: Some(run(&format!("run-{number}"))), ..RequestScope::default() };
        let now = NOW + Duration::from_millis(number);
        let step = step(1, &limits, &[]);
        let id = step.id;
        accounts.reserve(ReservationRequest { about, now, ..step }).unwrap();
        if number > 0 {
            accounts.void(id, now).unwrap();
        }
    }
    accounts.evict_episodes(Duration::from_secs(3_600), later + Duration::from_secs(100));
    let knows = |number: usize| accounts.has_episode(&key(), &run(&format!("run-{number}")));
    assert!(knows(0), "something of it is open");
    assert!(!knows(1) && !knows(9));
    assert!(knows(11) && knows(100_009));
}

#[tokio::test]
async fn who_waits_for_a_run_wakes_when_something_of_it_is_resolved() {
    let (tasks, journal) = (Tasks::default(), Arc::new(MemoryJournal::default()));
    let ledger = open(&tasks, journal, &[]).await;
    let reservation = ledger.obtain(step(1, &searches(1), &[("search", 1)])).await.unwrap();
    let mut resolved = std::pin::pin!(ledger.episode_notified(&run("run")));
    let unpolled = ledger.episode_notified(&run("run"));
    assert!(poll!(resolved.as_mut()).is_pending());
    drop(reservation);
    resolved.await;
    unpolled.await;
}

/// One that moves to another model stays a step of its episode, and counts once.
#[tokio::test]
async fn a_step_that_is_extended_is_one_turn_and_costs_what_both_cost() {
    let (tasks, journal) = (Tasks::default(), Arc::new(MemoryJournal::default()));
    let ledger = open(&tasks, journal, &[]).await;
    let limits = EpisodeLimits { cost: Some(Money(100)), turns: Some(Count(1)), ..searches(2) };
    let mut reservation = obtain(&ledger, step(60, &limits, &[("search", 2)])).await;
    reservation.extend(worst(41, 0), Some(&"large".into())).await.unwrap_err();
    reservation.extend(worst(40, 0), Some(&"large".into())).await.unwrap();
    let reserved = ledger.episode(&key(), &run("run")).reserved;
    assert_eq!(
        (reserved.cost, reserved.turns, reserved.tools),
        (Money(100), Count(1), tools(&[("search", 2)]))
    );
    reservation.settle(Money(99), Tokens(0), passed(&[("search", 2)]));
    assert_eq!(spent(&ledger).turns, Count(1));
}
