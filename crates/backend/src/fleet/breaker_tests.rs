use proptest::prelude::*;

use super::*;

/// What happens to a breaker, told in seconds from its beginning.
struct BreakerHarness {
    breaker: Breaker,
    began: Instant,
}

impl BreakerHarness {
    fn new() -> BreakerHarness {
        let began = Instant::now();
        BreakerHarness { breaker: Breaker::new(BreakerSettings::default(), began), began }
    }

    fn at(&self, seconds: f64) -> Instant {
        self.began + Duration::from_secs_f64(seconds)
    }

    fn ended(&self, seconds: f64, probe: bool) -> CompletedCall {
        CompletedCall { now: self.at(seconds), is_probe: probe, retry_after: None, jitter: 0.0 }
    }

    fn fails(&mut self, seconds: f64) -> Option<TripCause> {
        self.breaker.record_failure(CallFailureKind::Failed, self.ended(seconds, false))
    }

    fn works(&mut self, seconds: f64) {
        self.breaker.record_success(self.ended(seconds, false));
    }

    fn probe_fails(&mut self, seconds: f64) -> Option<TripCause> {
        self.breaker.start_probe();
        self.breaker.record_failure(CallFailureKind::Failed, self.ended(seconds, true))
    }

    fn check(&self, seconds: f64, expected: BreakerAdmission) {
        assert_eq!(self.breaker.admission(self.at(seconds)), expected, "at {seconds}");
    }
}

fn nothing_for(seconds: f64) -> BreakerAdmission {
    BreakerAdmission::Blocked(Duration::from_secs_f64(seconds))
}

#[test]
fn five_failures_in_a_row_open_it_and_a_success_in_between_begins_anew() {
    let mut story = BreakerHarness::new();
    for _ in 0..4 {
        assert_eq!(story.fails(0.0), None);
    }
    story.works(0.0);
    for _ in 0..4 {
        assert_eq!(story.fails(0.0), None);
    }
    story.check(0.0, BreakerAdmission::All);
    assert_eq!(story.fails(0.0), Some(TripCause::Failures));
    story.check(0.5, nothing_for(1.5));
    story.check(2.0, BreakerAdmission::Probe);
}

#[test]
fn one_probe_goes_alone_and_only_its_own_end_counts() {
    let mut story = BreakerHarness::new();
    for _ in 0..5 {
        story.fails(0.0);
    }
    story.breaker.start_probe();
    story.check(2.0, nothing_for(2.0));
    story.works(2.1);
    story.check(2.2, nothing_for(2.0));
    story.breaker.abandon_probe(story.at(3.0));
    story.check(3.0, BreakerAdmission::Probe);
    story.breaker.start_probe();
    story.breaker.record_success(story.ended(3.5, true));
    story.check(3.5, BreakerAdmission::All);
}

#[test]
fn each_failed_probe_doubles_the_rest_up_to_its_most() {
    let mut story = BreakerHarness::new();
    for _ in 0..5 {
        story.fails(0.0);
    }
    let mut now = 2.0;
    for rest in [4.0, 8.0, 16.0, 32.0, 60.0, 60.0] {
        assert_eq!(story.probe_fails(now), Some(TripCause::Failures));
        story.check(now, nothing_for(rest));
        now += rest;
        story.check(now, BreakerAdmission::Probe);
    }
    story.breaker.start_probe();
    story.breaker.record_success(story.ended(now, true));
    for _ in 0..5 {
        story.fails(now);
    }
    story.check(now, nothing_for(2.0));
}

// UP-14
#[test]
fn every_second_call_failing_opens_it_by_its_rate_and_an_idle_gap_empties_the_window() {
    let mut story = BreakerHarness::new();
    for turn in 0..4 {
        story.works(f64::from(turn));
        assert_eq!(story.fails(f64::from(turn)), None, "too few to say");
    }
    for turn in 20..24 {
        story.works(f64::from(turn));
        assert_eq!(story.fails(f64::from(turn)), None, "the earlier ones are forgotten");
    }
    story.works(24.0);
    assert_eq!(story.fails(24.0), Some(TripCause::Rate));
    story.check(24.0, BreakerAdmission::LastResort);
    story.check(26.0, BreakerAdmission::Probe);
}

#[test]
fn one_that_answers_now_and_then_is_the_last_resort_until_it_fails_throughout() {
    let mut story = BreakerHarness::new();
    for _ in 0..5 {
        story.works(0.0);
        story.fails(0.0);
    }
    story.check(0.0, BreakerAdmission::LastResort);
    story.works(0.5);
    for _ in 0..4 {
        assert_eq!(story.fails(0.5), None);
    }
    assert_eq!(story.fails(0.5), Some(TripCause::Failures));
    assert!(matches!(story.breaker.admission(story.at(0.5)), BreakerAdmission::Blocked(_)));
}

#[test]
fn a_refused_credential_opens_it_at_once_and_for_long_and_is_told_once() {
    let mut story = BreakerHarness::new();
    let ended = story.ended(0.0, false);
    assert_eq!(story.breaker.record_failure(CallFailureKind::Credential, ended), Some(TripCause::Credential));
    assert_eq!(story.breaker.record_failure(CallFailureKind::Credential, ended), None);
    story.check(0.0, nothing_for(600.0));
    story.check(600.0, BreakerAdmission::Probe);
}

#[test]
fn a_probe_that_fails_otherwise_no_longer_says_that_the_credential_is_refused() {
    let mut story = BreakerHarness::new();
    let refused = story.ended(0.0, false);
    story.breaker.record_failure(CallFailureKind::Credential, refused);
    story.breaker.start_probe();
    let failed = story.ended(600.0, true);
    assert_eq!(story.breaker.record_failure(CallFailureKind::Failed, failed), Some(TripCause::Failures));
    assert!(!story.breaker.has_refused_credential(story.at(600.5)));
}

#[test]
fn retry_after_parks_it_without_opening_it() {
    let mut story = BreakerHarness::new();
    let parked = |now, seconds| CompletedCall {
        now,
        is_probe: false,
        retry_after: Some(Duration::from_secs(seconds)),
        jitter: 0.0,
    };
    assert_eq!(story.breaker.record_failure(CallFailureKind::Failed, parked(story.at(0.0), 30)), None);
    assert_eq!(story.breaker.record_failure(CallFailureKind::Failed, parked(story.at(1.0), 2)), None);
    story.check(1.0, nothing_for(29.0));
    story.check(30.0, BreakerAdmission::All);
}

#[derive(Debug, Clone, Copy)]
enum Happens {
    Wait(u64),
    Works,
    Fails,
    Credential,
    Parks(u64),
    Leaves,
}

fn happenings() -> impl Strategy<Value = Vec<Happens>> {
    let one = prop_oneof![
        (0_u64..5_000).prop_map(Happens::Wait),
        Just(Happens::Works),
        Just(Happens::Fails),
        Just(Happens::Credential),
        (0_u64..5_000).prop_map(Happens::Parks),
        Just(Happens::Leaves),
    ];
    proptest::collection::vec(one, 0..200)
}

proptest! {
    /// Whatever happens, there is never a second probe, and it is asked again within the longest rest.
    #[test]
    fn there_is_one_probe_at_most_and_always_a_way_back(story in happenings(), jitter in 0.0..1.0) {
        let settings = BreakerSettings::default();
        let mut now = Instant::now();
        let mut breaker = Breaker::new(settings, now);
        for happens in story {
            let admits = breaker.admission(now);
            if let Happens::Wait(millis) = happens {
                now += Duration::from_millis(millis);
                continue;
            }
            if let BreakerAdmission::Blocked(wait) = admits {
                prop_assert!(wait <= settings.credential_rest.max(settings.rest_max.mul_f64(1.2)));
                continue;
            }
            let probe = admits == BreakerAdmission::Probe;
            if probe {
                breaker.start_probe();
                prop_assert!(breaker.admission(now) != BreakerAdmission::Probe, "a second probe");
            }
            let retry_after = match happens { Happens::Parks(millis) => Some(Duration::from_millis(millis)), _ => None };
            let ended = CompletedCall { now, is_probe: probe, retry_after, jitter };
            match happens {
                Happens::Works => breaker.record_success(ended),
                Happens::Fails | Happens::Parks(_) => drop(breaker.record_failure(CallFailureKind::Failed, ended)),
                Happens::Credential => drop(breaker.record_failure(CallFailureKind::Credential, ended)),
                Happens::Leaves if probe => breaker.abandon_probe(now),
                Happens::Leaves | Happens::Wait(_) => {}
            }
        }
        let later = now + settings.credential_rest + settings.rest_max;
        prop_assert!(matches!(breaker.admission(later), BreakerAdmission::All | BreakerAdmission::Probe));
    }
}
