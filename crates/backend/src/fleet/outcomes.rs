//! Records how calls ended, and updates the state of their targets.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::{Failure, Fault};
use stint_types::units::Tokens;

use super::breaker::CallFailureKind;
use super::permit::ProbeToken;
use super::target_breaker::Trip;
use super::target_set::CallFailure;
use super::waits::FirstTokenWait;
use super::{Fleet, TripCause};

impl Fleet {
    /// A call with a prompt of so many tokens is sent now; returns how many of them are not cached, and how many calls
    /// are under way there.
    pub(super) fn record_dispatch(&self, place: usize, conversation: u64, tokens: Tokens) -> (Tokens, u32) {
        self.lock().targets.record_dispatch(place, conversation, tokens, Instant::now())
    }

    /// A call got its first token.
    pub(super) fn record_first_token(self: &Arc<Self>, place: usize, wait: FirstTokenWait) {
        self.update(|targets, now| targets.record_first_token(place, wait, now));
    }

    /// A call ended in failure, and was silent until then.
    pub(super) fn record_abandoned_wait(self: &Arc<Self>, place: usize, wait: FirstTokenWait) {
        self.update(|targets, now| targets.record_abandoned_wait(place, wait, now));
    }

    /// A call that was silent until now was dropped: by its caller, its deadline, or another attempt that was quicker. Its
    /// wait is a lower bound, and steers the next calls elsewhere. If the wait is clearly longer than usual for the target,
    /// the call counts as failed. A shorter silence may only show an impatient caller.
    pub(super) fn record_silence(self: &Arc<Self>, place: usize, probe: &ProbeToken, wait: FirstTokenWait) {
        if self.update(|targets, now| targets.record_silence(place, wait, now)) {
            self.record_failure(
                place,
                probe,
                &Failure::new(Fault::Timeout, "it was silent until nobody waited"),
            );
        }
    }

    /// A call came to a good end.
    pub(super) fn record_success(self: &Arc<Self>, place: usize, probe: &ProbeToken) {
        let (flow, probe) = (probe.flow(), probe.take());
        self.update(|targets, now| targets.record_success(place, flow, probe, now));
    }

    /// A call failed through no fault of its caller.
    pub(super) fn record_failure(self: &Arc<Self>, place: usize, probe: &ProbeToken, failure: &Failure) {
        let call_failure = CallFailure {
            kind: match failure.fault {
                Fault::Credential => CallFailureKind::Credential,
                Fault::Overload if failure.retry_after.is_some() => CallFailureKind::Paused,
                _ => CallFailureKind::Failed,
            },
            is_overload: failure.fault == Fault::Overload,
            retry_after: failure.retry_after,
        };
        if self.settings().concurrency.is_none() && failure.fault == Fault::Overload {
            // It reports itself when it is full: that is normal, and no failure.
            return self.record_success(place, probe);
        }
        let (flow, probe) = (probe.flow(), probe.take());
        if self.backend(place).outage().is_some() {
            // It says itself that it is not there, and when it is back. So it shows nothing more.
            return self.update(|targets, now| {
                if probe {
                    targets.abandon_probe(place, flow, now);
                }
            });
        }
        let trip = self.update(|targets, now| targets.record_failure(place, flow, probe, call_failure, now));
        if let Some(trip) = trip {
            self.report_trip(place, trip, failure);
        }
        if call_failure.retry_after.is_some() {
            self.parked.notify_waiters();
        }
    }

    /// A request leaves its places.
    pub(super) fn release(self: &Arc<Self>, place: usize, calls: u32, held: Duration, probe: &ProbeToken) {
        let (flow, probing) = (probe.flow(), probe.take());
        self.update(|targets, now| {
            if probing {
                targets.abandon_probe(place, flow, now);
            }
            targets.release(place, calls, held);
        });
    }

    fn report_trip(&self, place: usize, trip: Trip, failure: &Failure) {
        let (model, target, cause) = (&*self.model, &**self.name(place), trip.cause);
        self.metrics.backends.trips.with_label_values(&[model, target, cause.as_str()]).inc();
        if !trip.is_for_all {
            let cause = cause.as_str();
            tracing::warn!(model, target, cause, %failure, "one account's calls fail: that account does without it for a while");
            return;
        }
        match cause {
            TripCause::Credential => tracing::error!(
                model,
                target,
                cause = cause.as_str(),
                %failure,
                "the upstream refuses our key or our account; it is left alone for {} (credential_rest)",
                duration_text(self.settings().breaker.credential_rest)
            ),
            TripCause::Failures | TripCause::Rate => {
                tracing::warn!(model, target, cause = cause.as_str(), "left alone for a while");
            }
        }
    }
}

/// A time as configuration has it.
fn duration_text(time: Duration) -> String {
    match time.as_millis() {
        whole if whole > 0 && whole.is_multiple_of(60_000) => format!("{}m", whole / 60_000),
        whole if whole.is_multiple_of(1_000) => format!("{}s", whole / 1_000),
        whole => format!("{whole}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_is_told_as_configuration_has_it() {
        let check = |millis, words: &str| assert_eq!(duration_text(Duration::from_millis(millis)), words);
        check(600_000, "10m");
        check(90_000, "90s");
        check(250, "250ms");
    }
}
