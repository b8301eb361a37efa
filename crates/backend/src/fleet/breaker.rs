//! The circuit breaker of a target: when it gets no calls, and when it is tried again.
//!
//! While it is closed, all calls pass. A number of failures in a row, or too few successes in the last ten seconds, opens
//! it for a while that doubles each time. Then a single call, the probe, tests the target. `Retry-After` parks a target
//! without opening its breaker; a refused credential opens it for long. A failure that is the caller's own fault does not
//! count.

use std::time::Duration;

use tokio::time::Instant;

use super::window::{SuccessCounts, SuccessWindow};

/// When a target is left alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BreakerSettings {
    /// So many failures in a row open it.
    pub failures_max: u32,
    /// A smaller share of successes in the last ten seconds opens it, 0 to 1.
    pub success_min: f64,
    /// Fewer requests than that in ten seconds say nothing about the share.
    pub requests_min: u32,
    /// How long it stays open at first; each failed probe doubles it.
    pub rest_min: Duration,
    /// The longest that comes of doubling.
    pub rest_max: Duration,
    /// How long it stays open after its credential was refused.
    pub credential_rest: Duration,
}

impl Default for BreakerSettings {
    fn default() -> BreakerSettings {
        BreakerSettings {
            failures_max: 5,
            success_min: 0.7,
            requests_min: 10,
            rest_min: Duration::from_secs(2),
            rest_max: Duration::from_secs(60),
            credential_rest: Duration::from_secs(600),
        }
    }
}

/// Why a target gets no calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TripCause {
    /// Too many failures in a row.
    Failures,
    /// Too few successes lately; it still answers now and then.
    Rate,
    /// It refuses our credential or our account.
    Credential,
}

impl TripCause {
    /// The word in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            TripCause::Failures => "failures",
            TripCause::Rate => "rate",
            TripCause::Credential => "credential",
        }
    }
}

/// Whether a target may be asked now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BreakerAdmission {
    /// Yes.
    All,
    /// One call, to find out.
    Probe,
    /// Only if no other target is left: it answers now and then.
    LastResort,
    /// Not for so long.
    Blocked(Duration),
}

/// What a failed call shows about its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallFailureKind {
    /// It did not answer, or not well.
    Failed,
    /// It refuses our credential.
    Credential,
    /// It has no room and says when it will: it works, so this is none of the failures in a row.
    Paused,
}

/// A call that ended, as the breaker sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct CompletedCall {
    /// When.
    pub(super) now: Instant,
    /// Whether it was the probe.
    pub(super) is_probe: bool,
    /// How long the target asks for no calls.
    pub(super) retry_after: Option<Duration>,
    /// A random number from 0 to 1, so that replicas do not all come back at once.
    pub(super) jitter: f64,
}

/// One target's breaker.
#[derive(Debug, Clone)]
pub(super) struct Breaker {
    settings: BreakerSettings,
    state: BreakerState,
    window: SuccessWindow,
    failures: u32,
    trips: u32,
    parked_until: Option<Instant>,
    last_success: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
enum BreakerState {
    Closed,
    Open { until: Instant, cause: TripCause },
    Probing { cause: TripCause },
}

impl Breaker {
    pub(super) fn new(settings: BreakerSettings, now: Instant) -> Breaker {
        let window = SuccessWindow::new(now);
        let (parked_until, last_success) = (None, None);
        let state = BreakerState::Closed;
        Breaker { settings, state, window, failures: 0, trips: 0, parked_until, last_success }
    }

    /// Uses these settings from now on. A rest that has begun ends when it would have.
    pub(super) fn reconfigure(&mut self, settings: BreakerSettings) {
        self.settings = settings;
    }

    /// Whether the target may be asked.
    pub(super) fn admission(&self, now: Instant) -> BreakerAdmission {
        if let Some(until) = self.parked_until.filter(|until| *until > now) {
            return BreakerAdmission::Blocked(until - now);
        }
        match self.state {
            BreakerState::Closed => BreakerAdmission::All,
            BreakerState::Open { until, .. } if until <= now => BreakerAdmission::Probe,
            BreakerState::Open { cause: TripCause::Rate, .. }
            | BreakerState::Probing { cause: TripCause::Rate } => BreakerAdmission::LastResort,
            BreakerState::Open { until, .. } => BreakerAdmission::Blocked(until - now),
            BreakerState::Probing { .. } => BreakerAdmission::Blocked(self.settings.rest_min),
        }
    }

    /// When the target may be called according to its own `Retry-After`. `None` if the breaker is open: it is unknown
    /// whether the target will work then.
    pub(super) fn retry_delay(&self, now: Instant) -> Option<Duration> {
        match (self.admission(now), self.state) {
            (BreakerAdmission::Blocked(wait), BreakerState::Closed) => Some(wait),
            (BreakerAdmission::Blocked(_), _) => None,
            _ => Some(Duration::ZERO),
        }
    }

    /// How long it is left alone for nothing but its own `Retry-After`: it works, and has no room until then.
    pub(super) fn parked_for(&self, now: Instant) -> Option<Duration> {
        let until = self.parked_until.filter(|until| *until > now)?;
        self.cause().is_none_or(|cause| cause == TripCause::Rate).then(|| until - now)
    }

    /// Why it is open, if it is.
    pub(super) fn cause(&self) -> Option<TripCause> {
        match self.state {
            BreakerState::Closed => None,
            BreakerState::Open { cause, .. } | BreakerState::Probing { cause } => Some(cause),
        }
    }

    /// Whether it is left alone since it refuses our credential. Not while a probe is under way, which finds out whether it still does.
    pub(super) fn has_refused_credential(&self, now: Instant) -> bool {
        matches!(self.state, BreakerState::Open { until, cause: TripCause::Credential } if until > now)
    }

    /// The probe sets out; until it is back nobody else does.
    pub(super) fn start_probe(&mut self) {
        if let BreakerState::Open { cause, .. } = self.state {
            self.state = BreakerState::Probing { cause };
        }
    }

    /// The probe found out nothing: its caller left. The next one may go.
    pub(super) fn abandon_probe(&mut self, now: Instant) {
        if let BreakerState::Probing { cause } = self.state {
            self.state = BreakerState::Open { until: now, cause };
        }
    }

    /// A call came to a good end.
    pub(super) fn record_success(&mut self, ended: CompletedCall) {
        self.failures = 0;
        self.last_success = Some(ended.now);
        match self.state {
            BreakerState::Closed => self.window.add(ended.now, true),
            BreakerState::Probing { .. } if ended.is_probe => self.close(ended.now),
            BreakerState::Open { .. } | BreakerState::Probing { .. } => {}
        }
    }

    /// Whether a call came to a good end within the time of the shortest rest.
    pub(super) fn has_succeeded_lately(&self, now: Instant) -> bool {
        self.last_success.is_some_and(|at| now.saturating_duration_since(at) < self.settings.rest_min)
    }

    /// The target asks for no calls for a while, if it says so, and nothing is wrong with it.
    pub(super) fn park(&mut self, ended: CompletedCall) {
        if let Some(wait) = ended.retry_after {
            self.parked_until = self.parked_until.max(Some(ended.now + wait));
        }
    }

    /// A call failed through no fault of its caller. Says why, where that opens the breaker.
    pub(super) fn record_failure(
        &mut self,
        kind: CallFailureKind,
        ended: CompletedCall,
    ) -> Option<TripCause> {
        self.park(ended);
        if kind != CallFailureKind::Paused {
            self.failures = self.failures.saturating_add(1);
        }
        if kind == CallFailureKind::Credential {
            let until = ended.now + self.settings.credential_rest;
            let news = self.cause() != Some(TripCause::Credential) || ended.is_probe;
            self.state = BreakerState::Open { until, cause: TripCause::Credential };
            return news.then_some(TripCause::Credential);
        }
        match self.state {
            BreakerState::Closed => {
                self.window.add(ended.now, false);
                let cause = self.trip_cause(ended.now)?;
                Some(self.open(cause, ended))
            }
            // It no longer says that it refuses our credential, so nobody is told that.
            BreakerState::Probing { cause: TripCause::Credential } if ended.is_probe => {
                Some(self.open(TripCause::Failures, ended))
            }
            BreakerState::Probing { cause } if ended.is_probe => Some(self.open(cause, ended)),
            BreakerState::Open { cause: TripCause::Rate, .. }
            | BreakerState::Probing { cause: TripCause::Rate }
                if self.failures >= self.settings.failures_max =>
            {
                Some(self.open(TripCause::Failures, ended))
            }
            BreakerState::Open { .. } | BreakerState::Probing { .. } => None,
        }
    }

    /// So many failures in a row came before the next one.
    pub(super) fn set_failures(&mut self, failures: u32) {
        self.failures = failures;
    }

    /// A call failed that is not counted among those in a row.
    pub(super) fn record_uncounted_failure(&mut self, now: Instant) {
        self.window.add(now, false);
    }

    /// Opens it where too few of these calls succeeded.
    pub(super) fn trip_by_rate(&mut self, seen: SuccessCounts, ended: CompletedCall) -> Option<TripCause> {
        let is_closed = matches!(self.state, BreakerState::Closed);
        (is_closed && self.has_too_few_successes(seen)).then(|| self.open(TripCause::Rate, ended))
    }

    /// The calls that ended in the last ten seconds.
    pub(super) fn counts(&self, now: Instant) -> SuccessCounts {
        self.window.counts(now)
    }

    /// True if nothing speaks against calls: it is closed, and none failed lately.
    pub(super) fn is_blameless(&self, now: Instant) -> bool {
        let is_parked = self.parked_until.is_some_and(|until| until > now);
        matches!(self.state, BreakerState::Closed) && !is_parked && self.counts(now).bad() == 0
    }

    fn trip_cause(&self, now: Instant) -> Option<TripCause> {
        if self.failures >= self.settings.failures_max {
            return Some(TripCause::Failures);
        }
        self.has_too_few_successes(self.window.counts(now)).then_some(TripCause::Rate)
    }

    fn has_too_few_successes(&self, seen: SuccessCounts) -> bool {
        seen.total() >= self.settings.requests_min && seen.share_good() < self.settings.success_min
    }

    fn open(&mut self, cause: TripCause, ended: CompletedCall) -> TripCause {
        let doubled = self.settings.rest_min.saturating_mul(2_u32.saturating_pow(self.trips));
        let rest = doubled.min(self.settings.rest_max).mul_f64(1.0 + ended.jitter / 5.0);
        self.trips = self.trips.saturating_add(1);
        self.state = BreakerState::Open { until: ended.now + rest, cause };
        cause
    }

    fn close(&mut self, now: Instant) {
        self.state = BreakerState::Closed;
        (self.trips, self.window) = (0, SuccessWindow::new(now));
    }
}

#[cfg(test)]
#[path = "breaker_tests.rs"]
mod tests;
