use crate::fleet::waits::FirstTokenWait;
use crate::fleet::{BreakerSettings, ConcurrencySettings, TripCause};
use stint_types::chat::{Message, Request, Role};
use stint_types::units::Tokens;

use super::*;

struct TargetSetFixture {
    targets: TargetSet,
    now: Instant,
}

fn conversation(number: usize) -> AffinityKey {
    AffinityKey::of(&Request::new("m", vec![Message::text(Role::User, format!("question {number}"))]))
}

const ACCOUNT: FlowId = FlowId(1);

fn need(number: usize) -> TargetQuery<'static> {
    TargetQuery { affinity: conversation(number), flow: ACCOUNT, calls: 1, is_retry: false, excluded: &[] }
}

const FAILED: CallFailure =
    CallFailure { kind: CallFailureKind::Failed, is_overload: false, retry_after: None };

impl TargetSetFixture {
    fn new(targets: usize) -> TargetSetFixture {
        TargetSetFixture::with(targets, Settings::default())
    }

    fn with(targets: usize, settings: Settings) -> TargetSetFixture {
        let now = Instant::now();
        let names: Vec<String> = (0..targets).map(|target| format!("target {target}")).collect();
        let targets = TargetSet::new(names.iter().map(|name| (name.as_str(), None)), settings, 7, now);
        TargetSetFixture { targets, now }
    }

    fn passes(&mut self, seconds: f64) {
        self.now += Duration::from_secs_f64(seconds);
    }

    fn finds(&mut self, need: &TargetQuery) -> TargetSelection {
        self.targets.acquire(need, self.now)
    }

    /// Takes a place, lets the call end, and gives the place back.
    fn call(&mut self, number: usize, works: bool) -> Option<usize> {
        let TargetSelection::Selected { index: place, is_probe: probe } = self.finds(&need(number)) else {
            return None;
        };
        if works {
            self.targets.record_success(place, ACCOUNT, probe, self.now);
        } else {
            self.targets.record_failure(place, ACCOUNT, probe, FAILED, self.now);
        }
        self.targets.release(place, 1, Duration::from_millis(10));
        Some(place)
    }
}

#[test]
fn a_conversation_keeps_its_target_and_finds_another_while_that_rests() {
    let mut set = TargetSetFixture::new(3);
    let home = set.call(1, true).unwrap();
    for _ in 0..20 {
        assert_eq!(set.call(1, true), Some(home));
    }
    for _ in 0..5 {
        assert_eq!(set.call(1, false), Some(home));
    }
    let other = set.call(1, true).unwrap();
    assert_ne!(other, home);
    assert_eq!(set.call(1, true), Some(other));
    set.passes(3.0);
    assert_eq!(set.call(2, true), Some(home), "the first call is its probe");
    assert_eq!(set.call(1, true), Some(home));
}

#[test]
fn one_probe_goes_alone_and_others_go_elsewhere_meanwhile() {
    let mut set = TargetSetFixture::new(2);
    let home = set.call(1, true).unwrap();
    for _ in 0..5 {
        set.call(1, false);
    }
    set.passes(3.0);
    assert_eq!(set.finds(&need(1)), TargetSelection::Selected { index: home, is_probe: true });
    for number in 0..10 {
        assert_eq!(set.finds(&need(number)), TargetSelection::Selected { index: 1 - home, is_probe: false });
    }
}

// UP-15
#[test]
fn where_all_rest_the_smallest_wait_is_told() {
    let mut set = TargetSetFixture::new(2);
    assert_eq!(set.targets.unavailable_for(None, set.now), None);
    for (place, seconds) in [(0, 30), (1, 12)] {
        let failure = CallFailure { retry_after: Some(Duration::from_secs(seconds)), ..FAILED };
        set.targets.record_failure(place, ACCOUNT, false, failure, set.now);
    }
    set.passes(2.0);
    assert_eq!(set.finds(&need(1)), TargetSelection::Unavailable(Duration::from_secs(10)));
    assert_eq!(set.targets.unavailable_for(None, set.now), Some(Duration::from_secs(10)));
    assert_eq!(set.targets.soonest(None, set.now), None);
}

// UP-14, UP-15
#[test]
fn a_rate_takes_a_target_away_but_never_the_last_one() {
    let mut set = TargetSetFixture::new(2);
    let half = |set: &mut TargetSetFixture, place: usize| {
        for turn in 0..20 {
            if turn % 2 == 0 {
                set.targets.record_success(place, ACCOUNT, false, set.now);
            } else {
                set.targets.record_failure(place, ACCOUNT, false, FAILED, set.now);
            }
        }
    };
    half(&mut set, 0);
    for number in 0..50 {
        assert_eq!(set.finds(&need(number)), TargetSelection::Selected { index: 1, is_probe: false });
        set.targets.release(1, 1, Duration::ZERO);
    }
    half(&mut set, 1);
    for number in 0..50 {
        assert!(
            matches!(set.finds(&need(number)), TargetSelection::Selected { is_probe: false, .. }),
            "one of both serves"
        );
    }
}

#[test]
fn a_retry_goes_where_it_was_not_and_the_target_it_goes_to_pays_for_it() {
    let settings = Settings {
        retry: crate::fleet::RetrySettings { per_second: 1, ..Settings::default().retry },
        ..Settings::default()
    };
    let mut set = TargetSetFixture::with(2, settings);
    let again = |not| TargetQuery { is_retry: true, excluded: not, ..need(1) };
    assert_eq!(set.finds(&again(&[0])), TargetSelection::Selected { index: 1, is_probe: false });
    assert_eq!(set.finds(&again(&[0])), TargetSelection::RetryBudgetSpent);
    assert_eq!(set.finds(&again(&[1])), TargetSelection::Selected { index: 0, is_probe: false });
    assert!(matches!(set.finds(&again(&[0, 1])), TargetSelection::Unavailable(_)));
}

#[test]
fn places_are_taken_and_given_back_and_a_large_request_goes_where_it_is_alone() {
    let few = ConcurrencySettings { min: 2, start: 2, max: 2, ..ConcurrencySettings::default() };
    let mut set = TargetSetFixture::with(1, Settings { concurrency: Some(few), ..Settings::default() });
    let many = TargetQuery { calls: 8, ..need(1) };
    assert_eq!(set.finds(&many), TargetSelection::Selected { index: 0, is_probe: false });
    assert_eq!(set.finds(&need(1)), TargetSelection::Full);
    set.targets.release(0, 8, Duration::from_secs(4));
    assert!((set.targets.queue_wait(3, set.now) - 6.0).abs() < 1e-9);
    assert!(matches!(set.finds(&need(1)), TargetSelection::Selected { .. }));
    assert_eq!(set.finds(&many), TargetSelection::Full);
    assert!(matches!(set.finds(&need(1)), TargetSelection::Selected { .. }));
    assert_eq!(set.finds(&need(1)), TargetSelection::Full);
    assert_eq!(
        set.targets.status(set.now),
        [TargetStatus { is_available: true, in_flight: 2, limit: Some(2) }]
    );
}

#[test]
fn what_an_engine_says_of_its_queue_counts_while_it_is_fresh() {
    let mut set = TargetSetFixture::new(2);
    let home = set.call(1, true).unwrap();
    for place in [0, 1] {
        let (waited, own) = (Duration::from_millis(100), Duration::ZERO);
        let wait = FirstTokenWait {
            tokens: Tokens(9),
            began: set.now,
            in_flight: 1,
            waited,
            own_delay: own,
            hidden: false,
        };
        set.targets.record_first_token(place, wait, set.now);
    }
    set.targets.record_load(home, ReportedLoad { waiting: 40, running: 10 }, set.now);
    assert_eq!(set.call(1, true), Some(1 - home), "others keep it busy");
    assert_eq!(set.targets.soonest(None, set.now).map(|(place, _)| place), Some(1 - home));
    set.passes(7.0);
    assert_eq!(set.call(1, true), Some(home), "nobody knows any more");
}

#[test]
fn a_refused_credential_is_left_alone_for_long() {
    let mut set = TargetSetFixture::new(1);
    let failure = CallFailure { kind: CallFailureKind::Credential, ..FAILED };
    assert_eq!(
        set.targets.record_failure(0, ACCOUNT, false, failure, set.now),
        Some(Trip { cause: TripCause::Credential, is_for_all: true })
    );
    let rest = BreakerSettings::default().credential_rest;
    assert_eq!(set.finds(&need(1)), TargetSelection::Unavailable(rest));
    assert!(!set.targets.status(set.now)[0].is_available);
}

#[test]
fn a_refused_credential_is_why_nothing_can_be_asked_only_where_every_target_refuses_it() {
    let mut set = TargetSetFixture::new(2);
    let failure = CallFailure { kind: CallFailureKind::Credential, ..FAILED };
    let is_why = |set: &TargetSetFixture, account| set.targets.has_refused_credential(account, set.now);
    set.targets.record_failure(0, ACCOUNT, false, failure, set.now);
    for _ in 0..5 {
        set.targets.record_failure(1, ACCOUNT, false, FAILED, set.now);
    }
    assert!(!is_why(&set, ACCOUNT), "the other comes back by itself");
    set.targets.record_failure(1, ACCOUNT, false, failure, set.now);
    assert!(is_why(&set, ACCOUNT));
    assert!(!is_why(&set, FlowId(2)), "another account's calls may find out");
    set.passes(BreakerSettings::default().credential_rest.as_secs_f64() + 1.0);
    assert!(!is_why(&set, ACCOUNT), "its rest is over");
}

#[test]
fn a_target_whose_rest_is_over_may_be_asked_though_nobody_has_yet() {
    let mut set = TargetSetFixture::new(1);
    let is_available = |set: &TargetSetFixture| set.targets.status(set.now)[0].is_available;
    for _ in 0..5 {
        assert_eq!(set.call(1, false), Some(0));
    }
    assert!(!is_available(&set), "it is left alone");
    set.passes(3.0);
    assert!(is_available(&set), "its rest is over");
    assert!(matches!(set.finds(&need(1)), TargetSelection::Selected { is_probe: true, .. }));
    assert!(!is_available(&set), "nobody else asks it until the probe is back");
    set.targets.record_failure(0, ACCOUNT, true, FAILED, set.now);
    assert!(!is_available(&set), "it still fails");
}

#[test]
fn a_target_that_answers_now_and_then_may_be_asked_where_it_is_the_only_one() {
    let check = |targets: usize, expected: bool| {
        let mut set = TargetSetFixture::new(targets);
        for number in 0..20 {
            set.targets.record_success(0, ACCOUNT, false, set.now);
            if number % 2 == 0 {
                set.targets.record_failure(0, ACCOUNT, false, FAILED, set.now);
            }
        }
        for _ in 0..4 {
            set.targets.record_failure(0, ACCOUNT, false, FAILED, set.now);
        }
        assert!(set.targets.targets[0].breaker.cause(set.now) == Some(TripCause::Rate));
        assert_eq!(set.targets.status(set.now)[0].is_available, expected, "of {targets}");
    };
    check(1, true);
    check(2, false);
}

// UP-17
#[test]
fn a_second_attempt_goes_only_to_another_target_that_works_and_it_pays_as_for_a_retry() {
    let retry = crate::fleet::RetrySettings { per_second: 1, ..Settings::default().retry };
    let mut set = TargetSetFixture::with(2, Settings { retry, ..Settings::default() });
    let beside = |set: &mut TargetSetFixture, not| {
        let need = TargetQuery { is_retry: true, excluded: not, ..need(1) };
        set.targets.acquire_hedge(&need, set.now)
    };
    assert_eq!(beside(&mut set, &[0, 1]), None);
    assert_eq!(beside(&mut set, &[0]), Some(1));
    assert_eq!(beside(&mut set, &[0]), None, "there were enough");
    set.passes(1.0);
    for _ in 0..5 {
        set.targets.record_failure(1, ACCOUNT, false, FAILED, set.now);
    }
    assert_eq!(beside(&mut set, &[0]), None, "it is left alone");
    set.passes(60.0);
    assert_eq!(beside(&mut set, &[0]), None, "nobody knows yet if it works");
    assert_eq!(beside(&mut set, &[1]), Some(0));
    assert_eq!(set.finds(&need(1)), TargetSelection::Selected { index: 1, is_probe: true });
}

#[test]
fn a_target_that_did_not_hold_its_limit_is_only_asked_where_no_other_can_be() {
    let mut set = TargetSetFixture::new(2);
    let home = set.call(1, true).unwrap();
    set.targets.record_overrun(home, None, set.now);
    for number in 0..20 {
        assert_ne!(set.call(number, true), Some(home));
    }
    let not = [1 - home];
    let need = TargetQuery { excluded: &not, ..need(1) };
    assert!(
        matches!(set.finds(&need), TargetSelection::Selected { index, .. } if index == home),
        "none else is left"
    );
    set.passes(DISTRUST_TIME.as_secs_f64() + 1.0);
    assert_eq!(set.call(1, true), Some(home));
}

#[test]
fn a_long_text_of_one_account_keeps_no_other_from_its_target() {
    let mut set = TargetSetFixture::new(2);
    let home = set.call(1, true).unwrap();
    set.targets.record_overrun(home, Some(FlowId(2)), set.now);
    assert_eq!(set.call(1, true), Some(home), "nobody else has seen it");
    let of_other = TargetQuery { flow: FlowId(2), ..need(1) };
    assert!(
        matches!(set.finds(&of_other), TargetSelection::Selected { index, .. } if index != home),
        "it has seen it"
    );
    set.targets.record_overrun(home, Some(FlowId(3)), set.now);
    assert_ne!(set.call(1, true), Some(home), "two have seen it");
    set.passes(DISTRUST_TIME.as_secs_f64() - 1.0);
    set.targets.record_overrun(home, Some(FlowId(2)), set.now);
    set.passes(2.0);
    assert_eq!(set.call(1, true), Some(home), "one of them keeps nobody away for longer");
    set.passes(DISTRUST_TIME.as_secs_f64());
    set.targets.record_overrun(home, Some(FlowId(2)), set.now);
    assert_eq!(set.call(1, true), Some(home), "what was seen before is over");
}

#[test]
fn one_that_refuses_some_for_lack_of_room_and_serves_others_gets_fewer_calls_and_not_none() {
    let mut set = TargetSetFixture::new(1);
    let busy = CallFailure { is_overload: true, ..FAILED };
    set.call(0, true);
    for _ in 0..50 {
        assert_eq!(set.targets.record_failure(0, ACCOUNT, false, busy, set.now), None);
    }
    assert_eq!(set.targets.unavailable_for(None, set.now), None);
    set.passes(3.0);
    let tripped = (0..10).find_map(|_| set.targets.record_failure(0, ACCOUNT, false, busy, set.now));
    assert!(tripped.is_some(), "it serves nobody any more");
}
