use super::*;

const FAILING: FlowId = FlowId(1);
const OTHER: FlowId = FlowId(2);

/// A target's story, told in seconds from its beginning.
struct TargetHarness {
    breaker: TargetBreaker,
    began: Instant,
}

impl TargetHarness {
    fn new() -> TargetHarness {
        let began = Instant::now();
        TargetHarness { breaker: TargetBreaker::new(BreakerSettings::default(), began), began }
    }

    fn at(&self, seconds: f64) -> Instant {
        self.began + Duration::from_secs_f64(seconds)
    }

    fn ended(&self, seconds: f64, is_probe: bool) -> CompletedCall {
        CompletedCall { now: self.at(seconds), is_probe, retry_after: None, jitter: 0.0 }
    }

    fn fails(&mut self, flow: FlowId, seconds: f64) -> Option<Trip> {
        self.breaker.record_failure(flow, CallFailureKind::Failed, self.ended(seconds, false))
    }

    fn works(&mut self, flow: FlowId, seconds: f64) {
        self.breaker.record_success(flow, self.ended(seconds, false));
    }

    /// Sends a probe of this account that fails.
    fn probe_fails(&mut self, flow: FlowId, seconds: f64) -> Option<Trip> {
        assert_eq!(self.admission(flow, seconds), BreakerAdmission::Probe, "{flow:?} at {seconds}");
        self.breaker.start_probe(flow);
        self.breaker.record_failure(flow, CallFailureKind::Failed, self.ended(seconds, true))
    }

    fn admission(&self, flow: FlowId, seconds: f64) -> BreakerAdmission {
        self.breaker.admission(Some(flow), self.at(seconds))
    }

    fn is_blocked(&self, flow: FlowId, seconds: f64) -> bool {
        matches!(self.admission(flow, seconds), BreakerAdmission::Blocked(_))
    }
}

#[test]
fn the_failures_of_one_account_shut_out_that_account_alone() {
    let mut story = TargetHarness::new();
    story.works(OTHER, 0.0);
    for _ in 0..4 {
        assert_eq!(story.fails(FAILING, 1.0), None);
    }
    let trip = Trip { cause: TripCause::Failures, is_for_all: false };
    assert_eq!(story.fails(FAILING, 1.0), Some(trip));
    assert!(story.is_blocked(FAILING, 1.0));
    assert_eq!(story.admission(OTHER, 1.0), BreakerAdmission::All);
    assert_eq!(story.breaker.admission(None, story.at(1.0)), BreakerAdmission::All, "the target works");
}

#[test]
fn an_account_that_is_alone_is_what_the_target_is_told_by_and_another_is_asked_all_the_same() {
    let mut story = TargetHarness::new();
    for _ in 0..5 {
        story.fails(FAILING, 0.0);
    }
    assert!(matches!(story.breaker.admission(None, story.at(0.0)), BreakerAdmission::Blocked(_)));
    assert_eq!(story.admission(OTHER, 0.5), BreakerAdmission::All);
    assert_eq!(story.fails(OTHER, 0.5), Some(Trip { cause: TripCause::Failures, is_for_all: true }));
    assert!(story.is_blocked(OTHER, 0.5) && story.is_blocked(FlowId(3), 0.5), "it is an outage");
}

#[test]
fn failures_of_several_accounts_open_it_as_soon_as_those_of_one_would() {
    let mut story = TargetHarness::new();
    for number in 0..4 {
        assert_eq!(story.fails(FlowId(number), 0.0), None);
    }
    assert_eq!(story.fails(FlowId(4), 0.0), Some(Trip { cause: TripCause::Failures, is_for_all: true }));
    assert!(story.is_blocked(FlowId(9), 0.0));
}

#[test]
fn probes_of_one_account_do_not_keep_the_target_away_from_others() {
    let mut story = TargetHarness::new();
    for _ in 0..5 {
        story.fails(FAILING, 0.0);
    }
    story.fails(OTHER, 0.0);
    assert_eq!(story.probe_fails(FAILING, 2.0), Some(Trip { cause: TripCause::Failures, is_for_all: false }));
    assert!(story.is_blocked(FAILING, 2.0));
    story.breaker.start_probe(OTHER);
    story.breaker.record_success(OTHER, story.ended(2.5, true));
    assert_eq!(story.admission(FlowId(3), 2.5), BreakerAdmission::All);
    assert!(story.is_blocked(FAILING, 2.5));
}

#[test]
fn failed_probes_of_two_accounts_double_the_rest() {
    let mut story = TargetHarness::new();
    for number in 0..5 {
        story.fails(FlowId(number), 0.0);
    }
    story.probe_fails(FlowId(1), 2.0);
    assert_eq!(story.probe_fails(FlowId(2), 2.0).map(|trip| trip.is_for_all), Some(true));
    assert_eq!(story.admission(FlowId(3), 2.0), BreakerAdmission::Blocked(Duration::from_secs(4)));
}

#[test]
fn a_pause_and_a_refused_credential_are_of_the_account_until_another_has_them_too() {
    for kind in [CallFailureKind::Paused, CallFailureKind::Failed, CallFailureKind::Credential] {
        let mut story = TargetHarness::new();
        story.works(OTHER, 0.0);
        let ended = CompletedCall { retry_after: Some(Duration::from_secs(60)), ..story.ended(0.0, false) };
        story.breaker.record_failure(FAILING, kind, ended);
        assert!(story.is_blocked(FAILING, 1.0));
        assert_eq!(story.admission(OTHER, 1.0), BreakerAdmission::All, "{kind:?}");
        let ended = CompletedCall { now: story.at(1.0), ..ended };
        story.breaker.record_failure(OTHER, kind, ended);
        assert!(story.is_blocked(FlowId(3), 1.0), "{kind:?}");
    }
}

#[test]
fn an_account_waits_for_the_longer_of_its_own_pause_and_that_of_all() {
    let mut story = TargetHarness::new();
    story.works(OTHER, 0.0);
    let pause =
        |seconds, at: CompletedCall| CompletedCall { retry_after: Some(Duration::from_secs(seconds)), ..at };
    story.breaker.record_failure(FAILING, CallFailureKind::Paused, pause(60, story.ended(0.0, false)));
    story.breaker.pause(pause(2, story.ended(0.0, false)));
    assert_eq!(story.admission(FAILING, 1.0), BreakerAdmission::Blocked(Duration::from_secs(59)));
    assert_eq!(story.admission(OTHER, 1.0), BreakerAdmission::Blocked(Duration::from_secs(1)));
    assert_eq!(story.breaker.parked_for(Some(FAILING), story.at(1.0)), Some(Duration::from_secs(59)));
}

#[test]
fn the_share_of_successes_is_looked_at_without_the_account_that_fails_most() {
    let mut story = TargetHarness::new();
    for _ in 0..20 {
        story.works(OTHER, 0.0);
        story.fails(FAILING, 0.0);
        story.works(OTHER, 0.0);
    }
    assert_eq!(story.admission(OTHER, 0.0), BreakerAdmission::All);
    for number in 0..40 {
        let flow = FlowId(number % 3 + 5);
        story.works(flow, 20.0);
        story.fails(flow, 20.0);
        story.fails(flow, 20.0);
    }
    assert_eq!(story.admission(OTHER, 20.0), BreakerAdmission::LastResort, "it fails for everybody");
}
