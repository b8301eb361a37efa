//! The state of all targets of a fleet, and the choice among them. Pure: the time is an argument, and randomness comes
//! from a seed.

use std::time::Duration;

use tokio::time::Instant;

use stint_types::chat::SigningDomain;
use stint_types::units::SeededRng;

use crate::ShownBy;

use super::breaker::{BreakerAdmission, CallFailureKind, CompletedCall};
use super::choice::{AffinityKey, TargetCandidate, choose_target, name_hash};
use super::latency::Latency;
use super::limit::ConcurrencyLimit;
use super::load::ReportedLoad;
use super::prompt_cache::PromptCacheEstimate;
use super::recent_waits::RecentWaits;
use super::retry::RetryBudget;
use super::target::FlowId;
use super::target_breaker::{TargetBreaker, Trip};
use super::{PermitRequest, Settings};

/// How much the newest measurement of a place's use weighs.
const WEIGHT: f64 = 0.2;
/// So long a target that did not hold its limit is only asked where no other can be.
const DISTRUST_TIME: Duration = Duration::from_mins(10);
/// After so many times of asking without an answer an engine's word is not believed any more.
pub(super) const STALE_AFTER: u32 = 3;

/// A request for a place.
#[derive(Debug, Clone, Copy)]
pub(super) struct TargetQuery<'n> {
    /// How its conversation begins.
    pub(super) affinity: AffinityKey,
    /// The account that it belongs to.
    pub(super) flow: FlowId,
    /// How many calls it makes at once.
    pub(super) calls: u32,
    /// True if it was tried before: the target's budget of retries pays for it.
    pub(super) is_retry: bool,
    /// Where it is not to go.
    pub(super) excluded: &'n [usize],
}

impl PermitRequest {
    /// What it asks of the targets, where it is not to go to those.
    pub(super) fn query<'n>(&self, is_retry: bool, excluded: &'n [usize]) -> TargetQuery<'n> {
        TargetQuery { affinity: self.affinity, flow: self.flow, calls: self.calls, is_retry, excluded }
    }
}

/// Where a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TargetSelection {
    /// There, and its places are taken.
    Selected {
        /// Which target.
        index: usize,
        /// Whether it finds out if the target works again.
        is_probe: bool,
    },
    /// Nowhere yet: all places are taken.
    Full,
    /// Nowhere: every target is left alone, for so long at least.
    Unavailable(Duration),
    /// Nowhere yet: one has asked for a pause that is short enough to be waited for.
    Parked,
    /// Nowhere: there were too many retries lately.
    RetryBudgetSpent,
}

/// How a call failed, as far as its target is concerned.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallFailure {
    pub(super) kind: CallFailureKind,
    /// It has no room.
    pub(super) is_overload: bool,
    pub(super) retry_after: Option<Duration>,
}

/// One target, as it stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TargetStatus {
    /// True if requests may go there.
    pub is_available: bool,
    /// Calls under way.
    pub in_flight: u32,
    /// The most there may be; nothing if the target limits itself.
    pub limit: Option<u32>,
}

/// All targets.
#[derive(Debug)]
pub(super) struct TargetSet {
    pub(super) settings: Settings,
    pub(super) targets: Vec<TargetState>,
    dice: SeededRng,
    /// How long a place is usually held, in seconds.
    hold_seconds: Option<f64>,
}

/// One target, and what is known of it.
#[derive(Debug)]
pub(super) struct TargetState {
    name_hash: u64,
    origin: Option<SigningDomain>,
    breaker: TargetBreaker,
    retry_budget: RetryBudget,
    pub(super) latency: Latency,
    pub(super) recent_waits: RecentWaits,
    pub(super) limit: Option<ConcurrencyLimit>,
    pub(super) prompt_cache: PromptCacheEstimate,
    pub(super) in_flight: u32,
    pub(super) load: Option<(ReportedLoad, Instant)>,
    /// That it did not hold its limit.
    distrust: Option<Distrust>,
}

/// For how long a target is distrusted, and by whom.
#[derive(Debug, Clone, Copy)]
struct Distrust {
    until: Instant,
    shown_by: ShownBy<FlowId>,
}

impl TargetSet {
    pub(super) fn new<'n>(
        targets: impl Iterator<Item = (&'n str, Option<SigningDomain>)>,
        settings: Settings,
        seed: u64,
        now: Instant,
    ) -> TargetSet {
        let member = |(name, origin)| TargetState {
            name_hash: name_hash(name),
            origin,
            breaker: TargetBreaker::new(settings.breaker, now),
            retry_budget: RetryBudget::new(&settings.retry, now),
            latency: Latency::default(),
            recent_waits: RecentWaits::default(),
            limit: settings.concurrency.map(ConcurrencyLimit::new),
            prompt_cache: PromptCacheEstimate::default(),
            in_flight: 0,
            load: None,
            distrust: None,
        };
        TargetSet {
            settings,
            targets: targets.map(member).collect(),
            dice: SeededRng::new(seed),
            hold_seconds: None,
        }
    }

    /// From now on they are treated so. What is known of them stays.
    pub(super) fn reconfigure(&mut self, settings: Settings) {
        self.settings = settings;
        for member in &mut self.targets {
            member.breaker.reconfigure(settings.breaker);
            member.retry_budget.reconfigure(&settings.retry);
            if let Some((limit, settings)) = member.limit.as_mut().zip(settings.concurrency) {
                limit.reconfigure(settings);
            }
        }
    }

    /// Finds a target and takes its places. A target that is due for its probe goes first; one that answers now and
    /// then goes where no other is left: rates never take the last one away.
    pub(super) fn acquire(&mut self, need: &TargetQuery, now: Instant) -> TargetSelection {
        self.targets
            .iter_mut()
            .filter_map(|member| member.limit.as_mut())
            .for_each(|limit| limit.expire_trial(now));
        let admits = self.admissions(Some(need.flow), now);
        let of = |wanted| (0..admits.len()).filter(|place| admits[*place] == wanted).collect::<Vec<_>>();
        let allowed = |places: Vec<usize>| {
            places.into_iter().filter(|place| !need.excluded.contains(place)).collect::<Vec<_>>()
        };
        let probes = allowed(of(BreakerAdmission::Probe));
        if let Some(place) = self.select(&probes, need, now) {
            return self.take_permits(place, need, true, now);
        }
        let whole = of(BreakerAdmission::All);
        let open = if whole.is_empty() { of(BreakerAdmission::LastResort) } else { whole };
        let open = allowed(open);
        if open.is_empty() {
            let is_short = self.short_wait(Some(need.flow), need.excluded, now).is_some();
            return if is_short {
                TargetSelection::Parked
            } else {
                TargetSelection::Unavailable(self.shortest_wait(&admits))
            };
        }
        match self.select(&open, need, now) {
            Some(place) => self.take_permits(place, need, false, now),
            None if need.is_retry
                && open.iter().any(|place| self.targets[*place].has_capacity(need.calls)) =>
            {
                TargetSelection::RetryBudgetSpent
            }
            None => TargetSelection::Full,
        }
    }

    /// Finds a target for a second attempt in parallel to a running one, and takes its places: only one that works, not one
    /// that is to be found out about. Its budget of retries pays.
    pub(super) fn acquire_hedge(&mut self, need: &TargetQuery, now: Instant) -> Option<usize> {
        let admits = self.admissions(Some(need.flow), now);
        let works = |place: &usize| admits[*place] == BreakerAdmission::All;
        let places: Vec<usize> = (0..self.targets.len()).filter(works).collect();
        let others: Vec<usize> = places.into_iter().filter(|place| !need.excluded.contains(place)).collect();
        let place = self.select(&others, need, now)?;
        self.take_permits(place, need, false, now);
        Some(place)
    }

    fn select(&mut self, places: &[usize], need: &TargetQuery, now: Instant) -> Option<usize> {
        let member = |place: &usize| (*place, &self.targets[*place]);
        let fits = |(_, member): &(usize, &TargetState)| {
            member.has_capacity(need.calls) && (!need.is_retry || member.retry_budget.allows(now, need.calls))
        };
        let fresh = self.settings.load_every * STALE_AFTER;
        let fitting: Vec<(usize, &TargetState)> = places.iter().map(member).filter(fits).collect();
        let is_trusted = |member: &TargetState| member.is_trusted(need.flow, now);
        let has_trusted = fitting.iter().any(|(_, member)| is_trusted(member));
        let candidates: Vec<TargetCandidate> = fitting
            .into_iter()
            .filter(|(_, member)| !has_trusted || is_trusted(member))
            .map(|(place, member)| TargetCandidate {
                index: place,
                name_hash: member.name_hash,
                origin: member.origin,
                expected_wait: member.expected(fresh, now),
            })
            .collect();
        choose_target(&candidates, need.affinity, &mut self.dice)
    }

    fn take_permits(
        &mut self,
        place: usize,
        need: &TargetQuery,
        probe: bool,
        now: Instant,
    ) -> TargetSelection {
        let member = &mut self.targets[place];
        member.in_flight = member.in_flight.saturating_add(need.calls);
        if need.is_retry {
            member.retry_budget.withdraw(now, need.calls);
        } else {
            member.retry_budget.deposit(now, need.calls);
        }
        if probe {
            member.breaker.start_probe(need.flow);
        }
        TargetSelection::Selected { index: place, is_probe: probe }
    }

    /// Takes one of a target's retries, without a place: the call that it is for has one. False where none is left.
    pub(super) fn take_retry(&mut self, place: usize, now: Instant) -> bool {
        self.targets[place].retry_budget.withdraw(now, 1)
    }

    /// Whether each target may be asked for this account; where none is named, how it stands.
    fn admissions(&self, flow: Option<FlowId>, now: Instant) -> Vec<BreakerAdmission> {
        self.targets.iter().map(|member| member.breaker.admission(flow, now)).collect()
    }

    /// How long until one of the targets may be asked again.
    fn shortest_wait(&self, admits: &[BreakerAdmission]) -> Duration {
        let waits = admits.iter().filter_map(|admits| match admits {
            BreakerAdmission::Blocked(wait) => Some(*wait),
            _ => None,
        });
        waits.min().unwrap_or(self.settings.breaker.rest_min)
    }

    /// How long until this account may ask a target that has asked all for a short pause; nothing where the account waits for longer.
    fn short_park(&self, member: &TargetState, flow: Option<FlowId>, now: Instant) -> Option<Duration> {
        let pause = member.breaker.paused_for(now).and(member.breaker.parked_for(flow, now));
        pause.filter(|wait| *wait <= self.settings.retry.wait_max)
    }

    /// How long calls of this account wait for the first short pause of a target to end, those that are excluded aside; nothing where
    /// another target serves anybody now.
    pub(super) fn short_wait(
        &self,
        flow: Option<FlowId>,
        excluded: &[usize],
        now: Instant,
    ) -> Option<Duration> {
        let members = || {
            let all = self.targets.iter().enumerate();
            all.filter(|(place, _)| !excluded.contains(place)).map(|(_, member)| member)
        };
        let is_open = |member: &TargetState| {
            !matches!(member.breaker.admission(None, now), BreakerAdmission::Blocked(_))
        };
        if members().any(is_open) {
            return None;
        }
        members().filter_map(|member| self.short_park(member, flow, now)).min()
    }

    /// Whether the first that may be asked again for this account is one that has asked for a pause itself.
    pub(super) fn is_parked(&self, flow: FlowId, now: Instant) -> bool {
        let rest = self.unavailable_for(Some(flow), now);
        let parks = self.targets.iter().filter_map(|member| member.breaker.parked_for(Some(flow), now));
        rest.is_some() && parks.min() == rest
    }

    /// Whether calls of this account are kept from every target since each refuses our credential: no short wait helps.
    pub(super) fn has_refused_credential(&self, flow: FlowId, now: Instant) -> bool {
        self.targets.iter().all(|member| member.breaker.has_refused_credential(flow, now))
    }

    /// How long until the first of those that are left alone may be asked.
    pub(super) fn shortest_rest(&self, now: Instant) -> Duration {
        self.shortest_wait(&self.admissions(None, now))
    }

    /// How long until some target may be asked for this account, or at all; nothing if one may be now.
    pub(super) fn unavailable_for(&self, flow: Option<FlowId>, now: Instant) -> Option<Duration> {
        let admits = self.admissions(flow, now);
        let all_rest = admits.iter().all(|admits| matches!(admits, BreakerAdmission::Blocked(_)));
        all_rest.then(|| self.shortest_wait(&admits))
    }

    /// How long until some target may be called according to its own `Retry-After`; `None` if all failed too often.
    pub(super) fn retry_delay(&self, flow: FlowId, now: Instant) -> Option<Duration> {
        self.targets.iter().filter_map(|member| member.breaker.retry_delay(flow, now)).min()
    }

    /// A call of this account came to a good end.
    pub(super) fn record_success(&mut self, place: usize, flow: FlowId, probe: bool, now: Instant) {
        let ended = CompletedCall { now, is_probe: probe, retry_after: None, jitter: 0.0 };
        self.targets[place].breaker.record_success(flow, ended);
    }

    /// A call did not hold its limit: others go first for a while. Where only the length of its text shows it, the account is named
    /// whose call it was: it does not keep others away for longer.
    pub(super) fn record_overrun(&mut self, place: usize, flow: Option<FlowId>, now: Instant) {
        let distrust = &mut self.targets[place].distrust;
        let earlier = distrust.filter(|earlier| earlier.until > now);
        if flow.is_some() && earlier.is_some_and(|earlier| earlier.shown_by.holds_for_all()) {
            return;
        }
        let mut shown_by = earlier.map(|earlier| earlier.shown_by).unwrap_or_default();
        shown_by.record(flow);
        *distrust = Some(Distrust { until: now + DISTRUST_TIME, shown_by });
    }

    /// A call of this account failed through no fault of its caller. Says why, where its target is left alone from now on.
    pub(super) fn record_failure(
        &mut self,
        place: usize,
        flow: FlowId,
        probe: bool,
        failure: CallFailure,
        now: Instant,
    ) -> Option<Trip> {
        let jitter = self.dice.next_f64();
        let member = &mut self.targets[place];
        let mut ended = CompletedCall { now, is_probe: probe, retry_after: failure.retry_after, jitter };
        // A short pause for want of room is waited for by all, in turn. Any other is first for the account whose call failed.
        if failure.is_overload
            && failure.retry_after.is_some_and(|pause| pause <= self.settings.retry.wait_max)
        {
            member.breaker.pause(ended);
            ended.retry_after = None;
        }
        if let Some(limit) = member.limit.as_mut().filter(|_| failure.is_overload) {
            limit.record_refusal(member.in_flight, now);
            // One that serves others works: it gets fewer calls, not none.
            if !probe && member.breaker.has_succeeded_lately(now) {
                member.breaker.park(flow, ended);
                return None;
            }
        }
        member.breaker.record_failure(flow, failure.kind, ended)
    }

    /// The probe found out nothing.
    pub(super) fn abandon_probe(&mut self, place: usize, flow: FlowId, now: Instant) {
        self.targets[place].breaker.abandon_probe(flow, now);
    }

    /// Places that were held for so long are free again.
    pub(super) fn release(&mut self, place: usize, calls: u32, held: Duration) {
        let member = &mut self.targets[place];
        member.in_flight = member.in_flight.saturating_sub(calls);
        let newest = held.as_secs_f64();
        self.hold_seconds = Some(self.hold_seconds.map_or(newest, |held| held + WEIGHT * (newest - held)));
    }

    /// The load that an engine reports; empty if it could not be asked.
    pub(super) fn record_load(&mut self, place: usize, load: ReportedLoad, now: Instant) {
        self.targets[place].load = Some((load, now));
    }

    /// How many seconds a request waits until so many calls before it have had their places.
    pub(super) fn queue_wait(&self, calls: u32, now: Instant) -> f64 {
        let is_open = |member: &&TargetState| {
            !matches!(member.breaker.admission(None, now), BreakerAdmission::Blocked(_))
                || self.short_park(member, None, now).is_some()
        };
        let open = self.targets.iter().filter(is_open);
        let places: u32 =
            open.filter_map(|member| member.limit.as_ref()).map(ConcurrencyLimit::permits).sum();
        f64::from(calls) * self.hold_seconds.unwrap_or_default() / f64::from(places.max(1))
    }

    /// The target where a request of this account would begin soonest, and how many seconds an engine's own queue takes there.
    /// Nothing where all rest.
    pub(super) fn soonest(&self, flow: Option<FlowId>, now: Instant) -> Option<(usize, f64)> {
        let fresh = self.settings.load_every * STALE_AFTER;
        let open = self.targets.iter().enumerate();
        let open = open.filter(|(_, member)| {
            !matches!(member.breaker.admission(flow, now), BreakerAdmission::Blocked(_))
        });
        let soonest = open.min_by(|(_, a), (_, b)| a.expected(fresh, now).total_cmp(&b.expected(fresh, now)));
        soonest.map(|(place, member)| {
            let load = member.fresh_load(fresh, now);
            let rounds = f64::from(load.waiting) / f64::from(load.running.max(1));
            (place, rounds * self.hold_seconds.unwrap_or_default())
        })
    }

    /// Every target, as it stands. One whose rest is over may be asked: nobody knows that it still fails.
    pub(super) fn status(&self, now: Instant) -> Vec<TargetStatus> {
        let is_healthy = |member: &TargetState| member.breaker.admission(None, now) == BreakerAdmission::All;
        let has_healthy = self.targets.iter().any(is_healthy);
        let may_be_asked = |member: &TargetState| match member.breaker.admission(None, now) {
            BreakerAdmission::All | BreakerAdmission::Probe => true,
            BreakerAdmission::LastResort => !has_healthy,
            BreakerAdmission::Blocked(_) => false,
        };
        let one = |member: &TargetState| TargetStatus {
            is_available: may_be_asked(member),
            in_flight: member.in_flight,
            limit: member.limit.as_ref().map(ConcurrencyLimit::permits),
        };
        self.targets.iter().map(one).collect()
    }

    /// A number that nobody foresees, from 0 to 1.
    pub(super) fn random_share(&mut self) -> f64 {
        self.dice.next_f64()
    }
}

impl TargetState {
    fn is_trusted(&self, flow: FlowId, now: Instant) -> bool {
        self.distrust.is_none_or(|distrust| distrust.until <= now || !distrust.shown_by.holds_for(&flow))
    }

    /// A request of more calls than there are places goes where it is alone.
    fn has_capacity(&self, calls: u32) -> bool {
        let fits = |limit: &ConcurrencyLimit| self.in_flight.saturating_add(calls) <= limit.permits();
        self.in_flight == 0 || self.limit.as_ref().is_none_or(fits)
    }

    /// The engine's own count is used if it is higher than ours: it has other clients too.
    fn expected(&self, fresh: Duration, now: Instant) -> f64 {
        let load = self.fresh_load(fresh, now);
        self.latency.expected(self.in_flight.max(load.waiting.saturating_add(load.running)), now)
    }

    fn fresh_load(&self, fresh: Duration, now: Instant) -> ReportedLoad {
        let known = self.load.filter(|(_, at)| now.saturating_duration_since(*at) <= fresh);
        known.map(|(load, _)| load).unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "target_set_tests.rs"]
mod tests;
