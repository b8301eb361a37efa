use proptest::prelude::*;

use super::*;

/// What happens to a breaker, told in seconds from its beginning.
struct Story {
    breaker: Breaker,
    began: Instant,
}

impl Story {
    fn new() -> Story {
        let began = Instant::now();
        Story { breaker: Breaker::new(BreakerSettings::default(), began), began }
    }

    fn at(&self, seconds: f64) -> Instant {
        self.began + Duration::from_secs_f64(seconds)
    }

    fn ended(&self, seconds: f64, probe: bool) -> Ended {
        Ended { now: self.at(seconds), probe, retry_after: None, jitter: 0.0 }
    }

    fn fails(&mut self, seconds: f64) -> Option<Cause> {
        self.breaker.failed(Harm::Failed, self.ended(seconds, false))
    }

    fn works(&mut self, seconds: f64) {
        self.breaker.succeeded(self.ended(seconds, false));
    }

    fn probe_fails(&mut self, seconds: f64) -> Option<Cause> {
        self.breaker.probe();
        self.breaker.failed(Harm::Failed, self.ended(seconds, true))
    }

    fn check(&self, seconds: f64, expected: Admits) {
        assert_eq!(self.breaker.admits(self.at(seconds)), expected, "at {seconds}");
    }
}

fn nothing_for(seconds: f64) -> Admits {
    Admits::Nothing(Duration::from_secs_f64(seconds))
}

#[test]
fn five_failures_in_a_row_open_it_and_a_success_in_between_begins_anew() {
    let mut story = Story::new();
    for _ in 0..4 {
        assert_eq!(story.fails(0.0), None);
    }
    story.works(0.0);
    for _ in 0..4 {
        assert_eq!(story.fails(0.0), None);
    }
    story.check(0.0, Admits::All);
    assert_eq!(story.fails(0.0), Some(Cause::Failures));
    story.check(0.5, nothing_for(1.5));
    story.check(2.0, Admits::Probe);
}

#[test]
fn one_probe_goes_alone_and_only_its_own_end_counts() {
    let mut story = Story::new();
    for _ in 0..5 {
        story.fails(0.0);
    }
    story.breaker.probe();
    story.check(2.0, nothing_for(2.0));
    story.works(2.1);
    story.check(2.2, nothing_for(2.0));
    story.breaker.probe_lost(story.at(3.0));
    story.check(3.0, Admits::Probe);
    story.breaker.probe();
    story.breaker.succeeded(story.ended(3.5, true));
    story.check(3.5, Admits::All);
}

#[test]
fn each_failed_probe_doubles_the_rest_up_to_its_most() {
    let mut story = Story::new();
    for _ in 0..5 {
        story.fails(0.0);
    }
    let mut now = 2.0;
    for rest in [4.0, 8.0, 16.0, 32.0, 60.0, 60.0] {
        assert_eq!(story.probe_fails(now), Some(Cause::Failures));
        story.check(now, nothing_for(rest));
        now += rest;
        story.check(now, Admits::Probe);
    }
    story.breaker.probe();
    story.breaker.succeeded(story.ended(now, true));
    for _ in 0..5 {
        story.fails(now);
    }
    story.check(now, nothing_for(2.0));
}

// UP-14
#[test]
fn every_second_call_failing_opens_it_by_its_rate_and_an_idle_gap_empties_the_window() {
    let mut story = Story::new();
    for turn in 0..4 {
        story.works(f64::from(turn));
        assert_eq!(story.fails(f64::from(turn)), None, "too few to say");
    }
    for turn in 20..24 {
        story.works(f64::from(turn));
        assert_eq!(story.fails(f64::from(turn)), None, "the earlier ones are forgotten");
    }
    story.works(24.0);
    assert_eq!(story.fails(24.0), Some(Cause::Rate));
    story.check(24.0, Admits::LastResort);
    story.check(26.0, Admits::Probe);
}

#[test]
fn one_that_answers_now_and_then_is_the_last_resort_until_it_fails_throughout() {
    let mut story = Story::new();
    for _ in 0..5 {
        story.works(0.0);
        story.fails(0.0);
    }
    story.check(0.0, Admits::LastResort);
    story.works(0.5);
    for _ in 0..4 {
        assert_eq!(story.fails(0.5), None);
    }
    assert_eq!(story.fails(0.5), Some(Cause::Failures));
    assert!(matches!(story.breaker.admits(story.at(0.5)), Admits::Nothing(_)));
}

#[test]
fn a_refused_credential_opens_it_at_once_and_for_long_and_is_told_once() {
    let mut story = Story::new();
    let ended = story.ended(0.0, false);
    assert_eq!(story.breaker.failed(Harm::Credential, ended), Some(Cause::Credential));
    assert_eq!(story.breaker.failed(Harm::Credential, ended), None);
    story.check(0.0, nothing_for(600.0));
    story.check(600.0, Admits::Probe);
}

#[test]
fn retry_after_parks_it_without_opening_it() {
    let mut story = Story::new();
    let parked = |now, seconds| Ended {
        now,
        probe: false,
        retry_after: Some(Duration::from_secs(seconds)),
        jitter: 0.0,
    };
    assert_eq!(story.breaker.failed(Harm::Failed, parked(story.at(0.0), 30)), None);
    assert_eq!(story.breaker.failed(Harm::Failed, parked(story.at(1.0), 2)), None);
    story.check(1.0, nothing_for(29.0));
    story.check(30.0, Admits::All);
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
            let admits = breaker.admits(now);
            if let Happens::Wait(millis) = happens {
                now += Duration::from_millis(millis);
                continue;
            }
            if let Admits::Nothing(wait) = admits {
                prop_assert!(wait <= settings.credential_rest.max(settings.rest_max.mul_f64(1.2)));
                continue;
            }
            let probe = admits == Admits::Probe;
            if probe {
                breaker.probe();
                prop_assert!(breaker.admits(now) != Admits::Probe, "a second probe");
            }
            let retry_after = match happens { Happens::Parks(millis) => Some(Duration::from_millis(millis)), _ => None };
            let ended = Ended { now, probe, retry_after, jitter };
            match happens {
                Happens::Works => breaker.succeeded(ended),
                Happens::Fails | Happens::Parks(_) => drop(breaker.failed(Harm::Failed, ended)),
                Happens::Credential => drop(breaker.failed(Harm::Credential, ended)),
                Happens::Leaves if probe => breaker.probe_lost(now),
                Happens::Leaves | Happens::Wait(_) => {}
            }
        }
        let later = now + settings.credential_rest + settings.rest_max;
        prop_assert!(matches!(breaker.admits(later), Admits::All | Admits::Probe));
    }
}
