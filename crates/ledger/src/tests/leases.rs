//! Quota leases when replicas sleep, cannot reach the coordinator, or have clocks that jump.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::{ReserveError, SettlementStatus};
use stint_types::tenant::{AccountTerms, LimitSelector, TenantLimit};
use stint_types::units::{Money, Tokens, Window};

use super::linked_coordinator::CoordinatorLink;
use super::vault::books;
use super::world::{LASTS, ReplicaWorld};
use super::{detail, money, terms};

const DAY: i64 = 24 * 3_600 * 1_000;

fn world(count: usize, limits: &[TenantLimit]) -> ReplicaWorld {
    ReplicaWorld::new(count, &key(limits))
}

fn key(limits: &[TenantLimit]) -> Vec<AccountTerms> {
    vec![terms("key", limits)]
}

fn is_short(answer: &ReserveError) -> bool {
    matches!(answer, ReserveError::Shortfall(_))
}

/// A replica that is paused beyond its lease: on waking it spends nothing, its epoch writes nothing, and its lease has
/// come back to the others.
fn sleeper(clock_went_on: bool) {
    let mut world = world(2, &[money(Window::Total, 1_000)]);
    let lost = world.dispatched(0, 200);
    let mut late = world.obtain(0, 300).unwrap();
    world.machines[0].pause();
    let refused = world.obtain(1, 600).unwrap_err();
    assert!(is_short(&refused), "{refused}");
    world.run(LASTS * 2);
    assert_eq!(books(&world.vault.state()), (200, 0), "it is reclaimed, and what it had sent is posted");
    let counted = [0, 1].map(|one: usize| world.machines[one].posted.0.load(Ordering::Relaxed));
    assert_eq!(counted, [0, 200], "the replica that reclaims it counts it");
    let taken = world.obtain(1, 800).unwrap();
    // Before it knows anything.
    world.machines[0].link.send_replace(CoordinatorLink::Cut);
    world.machines[0].wake(clock_went_on);
    if clock_went_on {
        let asleep = world.machines[0].on(|ledger| ledger.reserve(world.claim(0, 1))).unwrap_err();
        assert_eq!(asleep, ReserveError::NoLease, "it knows by its own clock");
    }
    world.machines[0].link.send_replace(CoordinatorLink::Whole);
    let (mut dispatched, sent) = {
        let sent = world.until(0, async move {
            let sent = late.dispatch().await;
            (late, sent)
        });
        sent.unwrap()
    };
    assert!(sent.is_err(), "nothing is sent");
    // Not after it has begun again either.
    world.run(LASTS);
    let again = world.until(0, async move { dispatched.dispatch().await });
    assert!(again.unwrap().is_err());
    let settling = world.machines[0].on(|_| lost.settle(Money(1), Tokens(0), detail()));
    let receipt = world.until(0, async move { settling.wait_durable(LASTS).await }).unwrap();
    assert_eq!(receipt.status, SettlementStatus::Superseded, "the books have what the others posted");
    world.run(LASTS);
    assert_eq!(books(&world.vault.state()), (200, 0), "what comes too late changes nothing");
    world.give_back(1, taken);
    world.run(LASTS);
    let whole = world.obtain(0, 800).unwrap();
    world.give_back(0, whole);
}

/// CR-11: a process that is stopped and goes on.
#[test]
fn who_was_stopped_beyond_its_lease_spends_nothing_on_going_on() {
    sleeper(true);
}

/// CR-11: a machine that is suspended, whose clock does not know.
#[test]
fn who_was_asleep_beyond_its_lease_and_does_not_know_writes_nothing() {
    sleeper(false);
}

/// CR-09: a replica that cannot reach the coordinator stops by its own clock before the coordinator ends its lease, and goes on by
/// itself when it can.
#[test]
fn a_replica_without_its_coordinator_stops_before_it_is_reclaimed_and_recovers() {
    for link in [CoordinatorLink::Cut, CoordinatorLink::Deaf] {
        let mut world = world(2, &[money(Window::Total, 100_000)]);
        let small = world.obtain(0, 1).unwrap();
        world.give_back(0, small);
        let before = world.vault.state().lasts;
        world.machines[0].link.send_replace(link);
        // What its lease covers it may still promise, for a while.
        let held = world.machines[0].on(|ledger| ledger.reserve(world.claim(0, 1)));
        world.machines[0].on(|_| drop(held.unwrap()));
        let is_reclaimed =
            |world: &ReplicaWorld| world.vault.state().windows.values().all(|one| one.leases.len() < 2);
        let other = world.obtain(1, 1).unwrap();
        while world.machines[0].on(|ledger| ledger.reserve(world.claim(0, 1)).map(drop).is_ok()) {
            assert!(!is_reclaimed(&world), "it promises what is not its own any more");
            world.run(Duration::from_millis(20));
        }
        assert!(world.elapsed < before * 2, "it fails closed in time");
        let refused = world.machines[0].on(|ledger| ledger.reserve(world.claim(0, 1)).unwrap_err());
        assert_eq!(refused, ReserveError::NoLease);
        assert!(world.machines[0].on(|ledger| ledger.stats().stalled), "it is not ready");
        if link == CoordinatorLink::Cut {
            assert!(!is_reclaimed(&world), "by its own clock it is over earlier");
            world.run(LASTS);
            assert!(is_reclaimed(&world));
        }
        world.machines[0].link.send_replace(CoordinatorLink::Whole);
        world.run(LASTS);
        world.give_back(1, other);
        let healed = world.obtain(0, 99_000).unwrap();
        world.give_back(0, healed);
    }
}

/// CR-11: nothing expires early, and no window begins twice, where one machine's wall clock jumps.
#[test]
fn a_wall_clock_that_jumps_by_a_day_opens_no_window_and_ends_no_reservation() {
    for jump in [DAY, -DAY, 40 * DAY, -40 * DAY] {
        let mut world = world(2, &[money(Window::Day, 100), money(Window::Month, 150)]);
        let open = world.dispatched(0, 60);
        world.machines[0].wall = jump;
        let refused = world.obtain(0, 60).unwrap_err();
        assert!(is_short(&refused), "{refused}");
        assert_eq!(world.machines[0].on(|ledger| ledger.expire(ledger.now())), 0, "nothing expires early");
        let small = world.obtain(0, 40).unwrap();
        let refused = world.obtain(1, 1).unwrap_err();
        assert!(refused.to_string().contains("day"), "{refused}");
        world.give_back(0, open);
        world.give_back(0, small);
    }
}

/// Windows are those of the coordinator's clock, wherever the machines' stand.
#[test]
fn a_window_begins_when_the_bank_says_so() {
    let mut world = world(2, &[money(Window::Day, 100)]);
    let open = world.dispatched(0, 100);
    world.machines[0].on(|_| drop(open.settle(Money(100), Tokens(0), detail())));
    assert!(is_short(&world.obtain(1, 1).unwrap_err()));
    {
        let mut coordinator = world.vault.state();
        coordinator.now = coordinator.now + Duration::from_secs(24 * 3_600);
    }
    // The lease of everybody has run out meanwhile, so they begin again, on the next day.
    world.run(LASTS);
    let whole = world.obtain(1, 100).unwrap();
    world.give_back(1, whole);
}

/// What a living replica spent before there was a limit on a part of its requests counts under it.
#[test]
fn a_limit_on_a_model_that_is_new_knows_what_living_replicas_spent() {
    let mut world = world(2, &[money(Window::Total, 10_000)]);
    for (on, nanos) in [(0, 100), (1, 200)] {
        let spent = world.dispatched(on, nanos);
        world.machines[on].on(|_| drop(spent.settle(Money(nanos), Tokens(0), detail())));
    }
    let open = world.dispatched(0, 50);
    let user = money(Window::Month, 600).with_selector(LimitSelector::EachUser);
    for machine in &world.machines {
        machine.on(|ledger| ledger.declare(&key(&[money(Window::Total, 10_000), user.clone()])));
    }
    for on in [0, 1] {
        let refused = world.obtain(on, 251).unwrap_err();
        assert!(refused.to_string().contains("month of unnamed users"), "{refused}");
        world.run(Duration::from_millis(300));
        let rest = world.obtain(on, 250).unwrap();
        let other = world.obtain(1 - on, 1).unwrap_err();
        assert!(is_short(&other), "{other}");
        world.give_back(on, rest);
        world.run(Duration::from_millis(300));
    }
    world.machines[0].on(|_| drop(open.void()));
    world.run(LASTS);
    let rest = world.obtain(1, 300).unwrap();
    world.give_back(1, rest);
}

/// A limit that takes long to sum up holds nobody up but those who are under it, and those not for ever.
#[test]
fn a_limit_whose_past_takes_long_to_sum_up_is_waited_for_a_bounded_time() {
    let mut world =
        ReplicaWorld::new(1, &[terms("key", &[]), terms("other", &[money(Window::Total, 1_000_000)])]);
    let spent = world.dispatched(0, 700);
    world.machines[0].on(|_| drop(spent.settle(Money(700), Tokens(0), detail())));
    let all =
        [terms("key", &[money(Window::Total, 1_000)]), terms("other", &[money(Window::Total, 1_000_000)])];
    world.vault.state().opens_in = Duration::from_secs(8);
    world.machines[0].on(|ledger| ledger.declare(&all));
    let began = world.elapsed;
    let refused = world.obtain(0, 300).unwrap_err();
    assert_eq!(refused, ReserveError::Summing);
    let waited = world.elapsed - began;
    assert!(waited >= Duration::from_secs(5) && waited < Duration::from_secs(6), "{waited:?}");
    // Longer than an exchange may take, and yet it is there then.
    let rest = world.obtain(0, 300).unwrap();
    assert!(world.elapsed - began < Duration::from_secs(9), "{:?}", world.elapsed - began);
    assert!(is_short(&world.obtain(0, 1).unwrap_err()));
    world.give_back(0, rest);
}

/// While a slow sum runs, a short window is opened beside it.
#[test]
fn nobody_waits_for_a_sum_that_is_not_theirs() {
    let mut world = world(1, &[]);
    world.vault.state().opens_in = Duration::from_secs(4);
    let slow = [terms("key", &[money(Window::Total, 1_000)]), terms("other", &[money(Window::Total, 9)])];
    world.machines[0].on(|ledger| ledger.declare(&slow));
    let (ledger, claim) = (world.machines[0].ledger.clone(), world.claim(0, 10));
    world.machines[0].begin(async move { drop(ledger.obtain(claim).await) });
    world.run(Duration::from_millis(100));
    world.vault.state().opens_in = Duration::ZERO;
    let quick = [terms("key", &[money(Window::Minute, 1_000)])];
    world.machines[0].on(|ledger| ledger.declare(&quick));
    let began = world.elapsed;
    let quick = world.obtain(0, 10).unwrap();
    assert!(world.elapsed - began < Duration::from_millis(100), "{:?}", world.elapsed - began);
    world.give_back(0, quick);
}

/// A spent limit under load costs the coordinator few questions, and what is freed is to be had within a moment.
#[test]
fn refusals_of_a_spent_limit_ask_nobody_for_a_moment() {
    let mut world = world(2, &[money(Window::Total, 1_000)]);
    let all = world.dispatched(0, 1_000);
    drop(world.obtain(1, 1).unwrap_err());
    let before = world.vault.state().exchanges;
    for _ in 0..100 {
        let refused = world.machines[1].on(|ledger| ledger.reserve(world.claim(1, 1)).unwrap_err());
        assert!(is_short(&refused), "{refused}");
    }
    for _ in 0..10 {
        assert!(is_short(&world.obtain(1, 1).unwrap_err()));
    }
    assert_eq!(world.vault.state().exchanges, before);
    world.machines[0].on(|_| drop(all.settle(Money(10), Tokens(0), detail())));
    world.run(Duration::from_millis(250));
    let freed = world.obtain(1, 990).unwrap();
    world.give_back(1, freed);
}

/// Who is asked to hand something back and cannot at that moment does so when it can.
#[test]
fn a_recall_that_failed_is_answered_later() {
    let mut world = world(2, &[money(Window::Total, 100_000)]);
    let one = world.obtain(0, 1).unwrap();
    world.give_back(0, one);
    let (ledger, claim) = (world.machines[1].ledger.clone(), world.claim(1, 100_000));
    world.machines[0].link.send_replace(CoordinatorLink::Deaf);
    world.machines[1].begin(async move { drop(ledger.obtain(claim).await) });
    world.run(Duration::from_millis(500));
    world.machines[0].link.send_replace(CoordinatorLink::Whole);
    world.run(Duration::from_millis(2_000));
    let whole = world.obtain(1, 100_000).unwrap();
    world.give_back(1, whole);
}

/// CR-09: the coordinator itself is away for longer than a lease: the first to come back takes no other replica for gone, so what
/// was settled meanwhile is charged as it was settled.
#[test]
fn when_the_bank_was_away_for_everybody_nobody_is_taken_for_dead() {
    let mut world = world(2, &[money(Window::Total, 1_000)]);
    let open = [world.dispatched(0, 300), world.dispatched(1, 300)];
    for machine in &world.machines {
        machine.link.send_replace(CoordinatorLink::Cut);
    }
    world.run(LASTS * 2);
    for (on, open) in open.into_iter().enumerate() {
        world.machines[on].on(|_| drop(open.settle(Money(10), Tokens(0), detail())));
    }
    world.machines[0].link.send_replace(CoordinatorLink::Whole);
    world.run(LASTS / 2);
    world.machines[1].link.send_replace(CoordinatorLink::Whole);
    world.run(LASTS * 2);
    assert_eq!(books(&world.vault.state()), (20, 0));
    let rest = world.obtain(1, 980).unwrap();
    world.give_back(1, rest);
}

/// CR-09: a replica that starts right after the coordinator was away reclaims no other.
#[test]
fn who_starts_right_after_the_bank_was_away_takes_nobody_for_dead() {
    let limits = key(&[money(Window::Total, 1_000)]);
    let mut world = ReplicaWorld::new(2, &limits);
    let open = [world.dispatched(0, 300), world.dispatched(1, 300)];
    for machine in &world.machines {
        machine.link.send_replace(CoordinatorLink::Cut);
    }
    world.run(LASTS * 2);
    let newcomer = world.join(&limits);
    world.run(LASTS / 4);
    for (on, open) in open.into_iter().enumerate() {
        world.machines[on].on(|_| drop(open.settle(Money(10), Tokens(0), detail())));
        world.machines[on].link.send_replace(CoordinatorLink::Whole);
    }
    world.run(LASTS * 2);
    assert_eq!(books(&world.vault.state()), (20, 0), "as they were settled");
    let rest = world.obtain(newcomer, 980).unwrap();
    world.give_back(newcomer, rest);
}

/// The grace period is for replicas that come back. One that does not is reclaimed by a newcomer too, a lease later.
#[test]
fn a_replica_that_never_comes_back_is_reclaimed_by_a_newcomer() {
    let limits = key(&[money(Window::Total, 1_000)]);
    let mut world = ReplicaWorld::new(1, &limits);
    drop(world.dispatched(0, 300));
    let lost = world.dispatched(0, 200);
    world.machines[0].pause();
    world.run(LASTS * 2);
    let newcomer = world.join(&limits);
    world.run(LASTS / 2);
    assert_eq!(books(&world.vault.state()), (300, 1), "not yet");
    world.run(LASTS);
    assert_eq!(books(&world.vault.state()), (500, 0));
    let rest = world.obtain(newcomer, 500).unwrap();
    world.give_back(newcomer, rest);
    drop(lost);
}
