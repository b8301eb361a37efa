//! A target's breakers: one for all accounts, and one for each account whose calls fail there.
//!
//! An account's requests may fail because of what is in them. So failures first shut out the account that has them. The target is
//! left alone by all only if calls of two accounts fail, without a success in between. If only one account calls a target, its breaker
//! is the target's state. A short pause that the target asks for is waited for by all; a long one first by the account that was refused.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::ShownBy;

use super::breaker::{Breaker, BreakerAdmission, BreakerSettings, CallFailureKind, CompletedCall, TripCause};
use super::target::FlowId;
use super::window::SuccessCounts;

/// Of more accounts no own breakers are kept.
const ACCOUNTS_MAX: usize = 256;
/// An account is alone at a target if no other account's call ended there for so long.
const ALONE_AFTER: Duration = Duration::from_secs(10);

/// Who is left without a target from now on, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trip {
    pub(super) cause: TripCause,
    /// False where other accounts have calls there and go on: only the one that failed is shut out.
    pub(super) is_for_all: bool,
}

/// All breakers of one target.
#[derive(Debug, Clone)]
pub(super) struct TargetBreaker {
    settings: BreakerSettings,
    all: Breaker,
    accounts: HashMap<FlowId, Breaker>,
    row: FailureRow,
    callers: RecentCallers,
    /// Whose probe failed last. One account's probes alone do not keep a target away from others.
    failed_prober: Option<FlowId>,
}

/// The failures since the last success of any account.
#[derive(Debug, Clone, Copy, Default)]
struct FailureRow {
    count: u32,
    accounts: ShownBy<FlowId>,
}

/// The two accounts whose calls ended last, and when.
#[derive(Debug, Clone, Copy, Default)]
struct RecentCallers {
    last: Option<(FlowId, Instant)>,
    other: Option<(FlowId, Instant)>,
}

impl TargetBreaker {
    pub(super) fn new(settings: BreakerSettings, now: Instant) -> TargetBreaker {
        TargetBreaker {
            settings,
            all: Breaker::new(settings, now),
            accounts: HashMap::new(),
            row: FailureRow::default(),
            callers: RecentCallers::default(),
            failed_prober: None,
        }
    }

    /// Uses these settings from now on. A rest that has begun ends when it would have.
    pub(super) fn reconfigure(&mut self, settings: BreakerSettings) {
        self.settings = settings;
        self.all.reconfigure(settings);
        self.accounts.values_mut().for_each(|breaker| breaker.reconfigure(settings));
    }

    /// Whether a call of this account may be sent; where none is named, how the target stands.
    pub(super) fn admission(&self, flow: Option<FlowId>, now: Instant) -> BreakerAdmission {
        let own = self.own(flow, now).map_or(BreakerAdmission::All, |own| own.admission(now));
        match (self.all.admission(now), own) {
            (BreakerAdmission::Blocked(all), BreakerAdmission::Blocked(own)) => {
                BreakerAdmission::Blocked(all.max(own))
            }
            (BreakerAdmission::Blocked(wait), _) | (_, BreakerAdmission::Blocked(wait)) => {
                BreakerAdmission::Blocked(wait)
            }
            (BreakerAdmission::All, own) => own,
            (all, _) => all,
        }
    }

    /// The same as [`Breaker::retry_delay`], for calls of this account.
    pub(super) fn retry_delay(&self, flow: FlowId, now: Instant) -> Option<Duration> {
        let own = self.accounts.get(&flow).map_or(Some(Duration::ZERO), |own| own.retry_delay(now));
        Some(self.all.retry_delay(now)?.max(own?))
    }

    /// Whether calls of this account are kept from the target since it refuses our credential.
    pub(super) fn has_refused_credential(&self, flow: FlowId, now: Instant) -> bool {
        let own = self.accounts.get(&flow).is_some_and(|own| own.has_refused_credential(now));
        own || self.all.has_refused_credential(now)
    }

    /// Why the target is left alone, if it is.
    #[cfg(test)]
    pub(super) fn cause(&self, now: Instant) -> Option<TripCause> {
        self.all.cause().or_else(|| self.own(None, now)?.cause())
    }

    /// A probe of this account sets out.
    pub(super) fn start_probe(&mut self, flow: FlowId) {
        self.all.start_probe();
        self.accounts.get_mut(&flow).into_iter().for_each(Breaker::start_probe);
    }

    /// The probe of this account found out nothing.
    pub(super) fn abandon_probe(&mut self, flow: FlowId, now: Instant) {
        self.all.abandon_probe(now);
        self.accounts.get_mut(&flow).into_iter().for_each(|own| own.abandon_probe(now));
    }

    /// A call of this account came to a good end.
    pub(super) fn record_success(&mut self, flow: FlowId, ended: CompletedCall) {
        self.callers.record(flow, ended.now);
        (self.row, self.failed_prober) = (FailureRow::default(), None);
        self.all.record_success(ended);
        if let Some(own) = self.accounts.get_mut(&flow) {
            own.record_success(ended);
            if own.is_blameless(ended.now) {
                self.accounts.remove(&flow);
            }
        }
    }

    /// Whether a call came to a good end within the time of the shortest rest.
    pub(super) fn has_succeeded_lately(&self, now: Instant) -> bool {
        self.all.has_succeeded_lately(now)
    }

    /// How long the target is left alone for nothing but a `Retry-After` of its own, by all, or by this account.
    pub(super) fn parked_for(&self, flow: Option<FlowId>, now: Instant) -> Option<Duration> {
        let blocks = |breaker: &&Breaker| matches!(breaker.admission(now), BreakerAdmission::Blocked(_));
        let blocking = [Some(&self.all), self.own(flow, now)].into_iter().flatten().filter(blocks);
        blocking.map(|breaker| breaker.parked_for(now)).collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// The same where it is left alone by all.
    pub(super) fn paused_for(&self, now: Instant) -> Option<Duration> {
        self.all.parked_for(now)
    }

    /// The target asked all for a short pause.
    pub(super) fn pause(&mut self, ended: CompletedCall) {
        self.all.park(ended);
    }

    /// The target asked for no calls for a while, and nothing is wrong with it.
    pub(super) fn park(&mut self, flow: FlowId, ended: CompletedCall) {
        self.callers.record(flow, ended.now);
        self.row.accounts.record(Some(flow));
        self.own_mut(flow, ended.now).park(ended);
        if self.row.accounts.holds_for_all() {
            self.all.park(ended);
        }
    }

    /// A call of this account failed through no fault of its caller. Says who is shut out and why, where that is news.
    pub(super) fn record_failure(
        &mut self,
        flow: FlowId,
        kind: CallFailureKind,
        ended: CompletedCall,
    ) -> Option<Trip> {
        self.callers.record(flow, ended.now);
        if kind == CallFailureKind::Paused {
            self.row.accounts.record(Some(flow));
        } else {
            self.row.record(flow);
        }
        let breaker = self.own_mut(flow, ended.now);
        let before = breaker.counts(ended.now);
        let own = breaker.record_failure(kind, ended);
        // What comes late of an account that is shut out shows nothing more.
        let is_news = breaker.counts(ended.now) != before;
        let all = self.record_for_all(flow, kind, ended, is_news);
        let trip = |is_for_all| move |cause| Trip { cause, is_for_all };
        let is_alone = self.callers.sole(ended.now).is_some();
        all.map(trip(true)).or_else(|| own.map(trip(is_alone)))
    }

    /// The same for all accounts.
    fn record_for_all(
        &mut self,
        flow: FlowId,
        kind: CallFailureKind,
        ended: CompletedCall,
        is_news: bool,
    ) -> Option<TripCause> {
        if ended.is_probe && self.all.cause().is_some() {
            if self.failed_prober.replace(flow).is_none_or(|last| last == flow) {
                self.all.abandon_probe(ended.now);
                return None;
            }
            return self.all.record_failure(kind, ended);
        }
        if self.row.accounts.holds_for_all() {
            self.all.set_failures(self.row.count.saturating_sub(1));
            return self.all.record_failure(kind, ended);
        }
        if !is_news {
            return None;
        }
        self.all.record_uncounted_failure(ended.now);
        let others = self.all.counts(ended.now).without(self.worst_counts(ended.now));
        self.all.trip_by_rate(others, ended)
    }

    /// The calls of the account with the most failures lately.
    fn worst_counts(&self, now: Instant) -> SuccessCounts {
        let counts = self.accounts.values().map(|own| own.counts(now));
        counts.max_by_key(|counts| counts.bad()).unwrap_or_default()
    }

    /// The breaker of this account; where none is named, of the one that is alone here.
    fn own(&self, flow: Option<FlowId>, now: Instant) -> Option<&Breaker> {
        self.accounts.get(&flow.or_else(|| self.callers.sole(now))?)
    }

    fn own_mut(&mut self, flow: FlowId, now: Instant) -> &mut Breaker {
        if self.accounts.len() >= ACCOUNTS_MAX && !self.accounts.contains_key(&flow) {
            self.accounts.retain(|_, own| !own.is_blameless(now));
            // One that is shut out makes no calls, and has no failures lately.
            let is_out = |own: &Breaker| own.cause().is_some() || own.parked_for(now).is_some();
            let rank = |own: &Breaker| (is_out(own), own.counts(now).bad());
            let least = self.accounts.iter().min_by_key(|(_, own)| rank(own)).map(|(flow, _)| *flow);
            if let Some(flow) = least.filter(|_| self.accounts.len() >= ACCOUNTS_MAX) {
                self.accounts.remove(&flow);
            }
        }
        let settings = self.settings;
        self.accounts.entry(flow).or_insert_with(|| Breaker::new(settings, now))
    }
}

impl FailureRow {
    fn record(&mut self, flow: FlowId) {
        self.count = self.count.saturating_add(1);
        self.accounts.record(Some(flow));
    }
}

impl RecentCallers {
    fn record(&mut self, flow: FlowId, now: Instant) {
        if self.last.is_some_and(|(last, _)| last != flow) {
            self.other = self.last;
        }
        self.last = Some((flow, now));
    }

    /// The account that is alone here.
    fn sole(&self, now: Instant) -> Option<FlowId> {
        let has_other = self.other.is_some_and(|(_, at)| now.saturating_duration_since(at) < ALONE_AFTER);
        self.last.filter(|_| !has_other).map(|(flow, _)| flow)
    }
}

#[cfg(test)]
#[path = "target_breaker_tests.rs"]
mod tests;
