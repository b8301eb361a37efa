use stint_types::units::Tokens;

use super::*;

/// A target with as many callers as it takes, each of whom waits as long for its first token as the calls under way make it.
struct Rush {
    limit: ConcurrencyLimit,
    now: Instant,
}

/// One that has room for so many calls and takes so long for each; more calls share what there is.
fn shared(room: f64, seconds: f64) -> impl Fn(u32) -> f64 {
    move |calls| seconds * (f64::from(calls) / room).max(1.0)
}

impl Rush {
    fn new() -> Rush {
        Rush::by(OverloadSignal::Waits)
    }

    fn by(signal: OverloadSignal) -> Rush {
        let settings = ConcurrencySettings { min: 4, start: 32, max: 512, tolerance: 2.0, signal };
        Rush { limit: ConcurrencyLimit::new(settings), now: Instant::now() }
    }

    fn wait(&self, in_flight: u32, seconds: f64) -> FirstTokenWait {
        let waited = Duration::from_secs_f64(seconds);
        let (tokens, began) = (Tokens(500), self.now.checked_sub(waited).unwrap());
        FirstTokenWait { tokens, began, in_flight, waited, own_delay: Duration::ZERO, hidden: false }
    }

    /// Lets so many seconds pass; returns how long it took until the limit was as wanted.
    fn passes(
        &mut self,
        seconds: f64,
        waits: impl Fn(u32) -> f64,
        wanted: impl Fn(u32) -> bool,
    ) -> Option<f64> {
        let began = self.now;
        let mut reached = None;
        while (self.now - began).as_secs_f64() < seconds {
            let calls = self.limit.permits();
            let waited = waits(calls);
            self.now += Duration::from_secs_f64(waited);
            for _ in 0..calls {
                self.limit.record_wait(self.wait(calls, waited), calls, self.now);
            }
            if wanted(self.limit.permits()) {
                reached.get_or_insert((self.now - began).as_secs_f64());
            }
        }
        reached
    }
}

// OV-02
#[test]
fn a_target_that_is_full_is_found_out_in_seconds_and_gets_more_again_when_it_has_room() {
    let mut rush = Rush::new();
    rush.passes(20.0, shared(1_000.0, 0.05), |_| true);
    let before = rush.limit.permits();
    assert!(before > 100, "{before}");
    // It has done well with so many a moment ago: for a minute nothing is held against it.
    let fell = rush.passes(90.0, shared(8.0, 0.05), |places| places <= before / 2).expect("it falls");
    assert!(fell > 60.0 && fell <= 75.0, "{fell}");
    assert!((8..=40).contains(&rush.limit.permits()), "{}", rush.limit.permits());
    let back = rush.passes(60.0, shared(1_000.0, 0.05), |places| places >= before).expect("it is back");
    assert!(back <= 30.0, "{back}");
}

#[test]
fn a_target_that_is_full_from_the_first_call_on_is_found_out_once_it_was_seen_with_room() {
    let mut rush = Rush::new();
    // One call alone first, as in the morning.
    for _ in 0..10 {
        rush.now += Duration::from_millis(100);
        rush.limit.record_wait(rush.wait(1, 0.1), 1, rush.now);
    }
    let found = rush.passes(20.0, shared(6.0, 0.1), |places| places <= 15).expect("it falls");
    assert!(found <= 10.0, "{found}");
}

#[test]
fn a_target_that_becomes_slow_keeps_its_places_however_slow_and_however_often() {
    let mut rush = Rush::new();
    rush.passes(20.0, shared(1_000.0, 0.05), |_| true);
    for factor in [5.0, 1.0, 40.0, 1.0, 3.0] {
        let before = rush.limit.permits();
        rush.passes(600.0, shared(1_000.0, 0.05 * factor), |_| true);
        assert_eq!(rush.limit.take_drops(), LimitDrops::default(), "{factor}");
        assert!(rush.limit.permits() >= before, "{factor}: {}", rush.limit.permits());
    }
}

#[test]
fn places_that_nobody_needs_are_not_added() {
    let mut rush = Rush::new();
    for _ in 0..1_000 {
        rush.now += Duration::from_millis(100);
        rush.limit.record_wait(rush.wait(3, 0.05), 3, rush.now);
    }
    assert_eq!(rush.limit.permits(), 32);
}

#[test]
fn it_never_falls_by_waits_below_what_was_served_well_a_minute_ago() {
    let mut rush = Rush::new();
    rush.passes(70.0, shared(40.0, 0.05), |_| true);
    let well = rush.limit.peak_served.peak(rush.now);
    assert!(well >= 40.0, "{well}");
    let fell = rush.passes(50.0, shared(4.0, 0.05), |places| f64::from(places) < well);
    assert_eq!(fell, None);
}

#[test]
fn one_that_says_it_has_no_room_is_given_less_but_never_less_than_the_least() {
    for signal in [OverloadSignal::Waits, OverloadSignal::Refusals] {
        let mut rush = Rush::by(signal);
        rush.limit.record_refusal(u32::MAX, rush.now);
        rush.limit.record_refusal(u32::MAX, rush.now);
        assert_eq!(rush.limit.permits(), 25, "once for many that say it together");
        for second in 1..30 {
            rush.limit.record_refusal(u32::MAX, rush.now + Duration::from_secs(second));
        }
        assert_eq!(rush.limit.permits(), 4);
        assert_eq!(rush.limit.take_drops(), LimitDrops { waits: 0, refusals: 10 });
    }
}

#[test]
fn places_that_were_not_taken_are_given_up_quickly_and_one_refusal_among_few_calls_takes_few() {
    let mut rush = Rush::by(OverloadSignal::Refusals);
    let settings = ConcurrencySettings { start: 1024, max: 1024, ..rush.limit.settings };
    rush.limit = ConcurrencyLimit::new(settings);
    let mut after = |in_flight, second| {
        rush.limit.record_refusal(in_flight, rush.now + Duration::from_secs(second));
        rush.limit.permits()
    };
    assert_eq!(after(3, 1), 256);
    assert_eq!([after(20, 2), after(20, 3), after(20, 4)], [64, 16, 12]);
}

#[test]
fn where_only_refusals_count_no_wait_lowers_it() {
    let mut rush = Rush::by(OverloadSignal::Refusals);
    rush.passes(20.0, shared(1_000.0, 0.05), |_| true);
    let before = rush.limit.permits();
    rush.passes(600.0, shared(2.0, 0.05), |_| true);
    assert!(rush.limit.permits() >= before);
    assert_eq!(rush.limit.take_drops(), LimitDrops::default());
}

#[test]
fn hidden_thoughts_say_nothing_of_the_target_and_hold_nothing_up() {
    let mut rush = Rush::new();
    for _ in 0..1_000 {
        rush.now += Duration::from_millis(100);
        let calls = rush.limit.permits();
        let wait = FirstTokenWait { hidden: true, ..rush.wait(calls, 60.0) };
        rush.limit.record_wait(wait, calls, rush.now);
    }
    assert_eq!(rush.limit.permits(), 512);
}

#[test]
fn what_may_have_been_our_own_delay_is_not_held_against_the_target() {
    let mut rush = Rush::new();
    rush.passes(20.0, shared(1_000.0, 0.05), |_| true);
    let before = rush.limit.permits();
    for _ in 0..2_000 {
        rush.now += Duration::from_millis(50);
        let calls = rush.limit.permits();
        let wait = FirstTokenWait { own_delay: Duration::from_millis(1_950), ..rush.wait(calls, 2.0) };
        rush.limit.record_wait(wait, calls, rush.now);
    }
    assert!(rush.limit.permits() >= before);
    assert_eq!(rush.limit.take_drops(), LimitDrops::default());
}

#[test]
fn a_trial_gives_way_to_those_who_would_be_refused_for_its_sake() {
    let mut rush = Rush::new();
    for in_flight in [4, 15] {
        for _ in 0..20 {
            rush.now += Duration::from_millis(100);
            rush.limit.record_wait(rush.wait(in_flight, 0.1), in_flight, rush.now);
        }
    }
    for _ in 0..40 {
        rush.now += Duration::from_millis(100);
        rush.limit.record_wait(rush.wait(20, 2.0), 20, rush.now);
    }
    assert_eq!(rush.limit.permits(), 15, "it is tried with as many as did well");
    assert!(rush.limit.cancel_blocking_trial(rush.now));
    assert!(rush.limit.permits() >= 32);
    assert!(!rush.limit.cancel_blocking_trial(rush.now));
}
