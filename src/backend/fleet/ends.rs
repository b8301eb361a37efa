//! How calls end, and what a fleet learns of it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::backend::{Failure, Fault};
use crate::units::Tokens;

use super::breaker::Harm;
use super::roster::Fall;
use super::seat::Probe;
use super::waits::Wait;
use super::{Cause, Fleet};

impl Fleet {
    /// A call with a prompt of so many tokens is sent now; says how many of them are read anew, and how many calls are under
    /// way there.
    pub(super) fn begins(&self, place: usize, conversation: u64, tokens: Tokens) -> (Tokens, u32) {
        self.lock().roster.begins(place, conversation, tokens, Instant::now())
    }

    /// A call got its first token.
    pub(super) fn first(self: &Arc<Self>, place: usize, wait: Wait) {
        self.change(|roster, now| roster.first(place, wait, now));
    }

    /// A call came to its end in vain, and was silent until then.
    pub(super) fn in_vain(self: &Arc<Self>, place: usize, wait: Wait) {
        self.change(|roster, now| roster.in_vain(place, wait, now));
    }

    /// A call that was silent until now was let go: by its caller, its deadline, or another attempt that was quicker. It
    /// waited so long at least, so whoever comes next is rather sent elsewhere. It has failed where that is clearly beyond
    /// what is usual there; a shorter silence may be the caller's impatience alone.
    pub(super) fn silent(self: &Arc<Self>, place: usize, probe: &Probe, wait: Wait) {
        if self.change(|roster, now| roster.silent(place, wait, now)) {
            self.failed(place, probe, &Failure::new(Fault::Timeout, "it was silent until nobody waited"));
        }
    }

    /// A call came to a good end.
    pub(super) fn succeeded(self: &Arc<Self>, place: usize, probe: &Probe) {
        let probe = probe.take();
        self.change(|roster, now| roster.succeeded(place, probe, now));
    }

    /// A call failed through no fault of its caller.
    pub(super) fn failed(self: &Arc<Self>, place: usize, probe: &Probe, failure: &Failure) {
        let fall = Fall {
            harm: if failure.fault == Fault::Credential { Harm::Credential } else { Harm::Failed },
            overloaded: failure.fault == Fault::Overload,
            retry_after: failure.retry_after,
        };
        if self.settings().concurrency.is_none() && failure.fault == Fault::Overload {
            // It says itself when it is full: that is how it works, and no sign of illness.
            return self.succeeded(place, probe);
        }
        let probe = probe.take();
        if let Some(cause) = self.change(|roster, now| roster.failed(place, probe, fall, now)) {
            self.announce(place, cause, failure);
        }
    }

    /// A request leaves its places.
    pub(super) fn left(self: &Arc<Self>, place: usize, calls: u32, held: Duration, probing: bool) {
        self.change(|roster, now| {
            if probing {
                roster.probe_lost(place, now);
            }
            roster.left(place, calls, held);
        });
    }

    fn announce(&self, place: usize, cause: Cause, failure: &Failure) {
        let (model, target) = (&*self.model, &**self.name(place));
        self.metrics.backends.trips.with_label_values(&[model, target, cause.word()]).inc();
        match cause {
            Cause::Credential => tracing::error!(
                model,
                target,
                %failure,
                "the upstream refuses our key or our account; it is left alone for {} (credential_rest)",
                written(self.settings().breaker.credential_rest)
            ),
            Cause::Failures | Cause::Rate => {
                tracing::warn!(model, target, cause = cause.word(), "left alone for a while");
            }
        }
    }
}

/// A time as configuration has it.
fn written(time: Duration) -> String {
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
        let check = |millis, words: &str| assert_eq!(written(Duration::from_millis(millis)), words);
        check(600_000, "10m");
        check(90_000, "90s");
        check(250, "250ms");
    }
}
