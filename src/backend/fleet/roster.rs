//! What is known of a fleet's targets, and which of them a request goes to. Pure: the time is an argument, and chance
//! comes from a seed.

use std::time::Duration;

use tokio::time::Instant;

use crate::chat::Origin;
use crate::units::Dice;

use super::Settings;
use super::breaker::{Admits, Breaker, Cause, Ended, Harm};
use super::cached::Cached;
use super::choice::{Beginning, Candidate, choose, numbered};
use super::latency::Latency;
use super::limit::Limit;
use super::load::Load;
use super::retry::Budget;

/// How much the newest measurement of a place's use weighs.
const WEIGHT: f64 = 0.2;
/// So long a target that did not hold its limit is only asked where no other can be.
const DISTRUST: Duration = Duration::from_mins(10);
/// After so many times of asking without an answer an engine's word is not believed any more.
pub(super) const STALE_AFTER: u32 = 3;

/// A request for a place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Need<'n> {
    /// How its conversation begins.
    pub(super) beginning: Beginning,
    /// How many calls it makes at once.
    pub(super) calls: u32,
    /// True where it was tried before: the target's budget of retries pays for it.
    pub(super) again: bool,
    /// Where it is not to go.
    pub(super) not: &'n [usize],
}

/// Where a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// There, and its places are taken.
    To {
        /// Which target.
        place: usize,
        /// Whether it finds out if the target works again.
        probe: bool,
    },
    /// Nowhere yet: all places are taken.
    Full,
    /// Nowhere: every target is left alone, for so long at least.
    Resting(Duration),
    /// Nowhere: there were too many retries lately.
    Spent,
}

/// How a call failed, as far as its target is concerned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fall {
    pub(super) harm: Harm,
    /// It has no room.
    pub(super) overloaded: bool,
    pub(super) retry_after: Option<Duration>,
}

/// One target, as it stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// True where requests may go there.
    pub works: bool,
    /// Calls under way.
    pub calls: u32,
    /// The most there may be; nothing where that is not for us to say.
    pub places: Option<u32>,
    /// False where others go first, since it did not hold its limit lately.
    pub holds_limits: bool,
}

/// All targets.
#[derive(Debug)]
pub(super) struct Roster {
    pub(super) settings: Settings,
    pub(super) members: Vec<Member>,
    dice: Dice,
    /// How long a place is usually held, in seconds.
    held: Option<f64>,
}

/// One target, and what is known of it.
#[derive(Debug)]
pub(super) struct Member {
    name: u64,
    origin: Option<Origin>,
    breaker: Breaker,
    budget: Budget,
    pub(super) latency: Latency,
    pub(super) limit: Option<Limit>,
    pub(super) cached: Cached,
    pub(super) calls: u32,
    pub(super) load: Option<(Load, Instant)>,
    /// Until then it is distrusted, since it did not hold its limit.
    distrusted: Option<Instant>,
}

impl Roster {
    pub(super) fn new<'n>(
        targets: impl Iterator<Item = (&'n str, Option<Origin>)>,
        settings: Settings,
        seed: u64,
        now: Instant,
    ) -> Roster {
        let member = |(name, origin)| Member {
            name: numbered(name),
            origin,
            breaker: Breaker::new(settings.breaker, now),
            budget: Budget::new(&settings.retry, now),
            latency: Latency::default(),
            limit: settings.concurrency.map(Limit::new),
            cached: Cached::default(),
            calls: 0,
            load: None,
            distrusted: None,
        };
        Roster { settings, members: targets.map(member).collect(), dice: Dice::new(seed), held: None }
    }

    /// From now on they are treated so. What is known of them stays.
    pub(super) fn treat(&mut self, settings: Settings) {
        self.settings = settings;
        for member in &mut self.members {
            member.breaker.treat(settings.breaker);
            member.budget.treat(&settings.retry);
            if let Some((limit, settings)) = member.limit.as_mut().zip(settings.concurrency) {
                limit.treat(settings);
            }
        }
    }

    /// Finds a target and takes its places. A target that is due for its probe goes first; one that answers now and
    /// then goes where no other is left: rates never take the last one away.
    pub(super) fn find(&mut self, need: &Need, now: Instant) -> Answer {
        self.members
            .iter_mut()
            .filter_map(|member| member.limit.as_mut())
            .for_each(|limit| limit.expire(now));
        let admits: Vec<Admits> = self.members.iter().map(|member| member.breaker.admits(now)).collect();
        let of = |wanted| (0..admits.len()).filter(|place| admits[*place] == wanted).collect::<Vec<_>>();
        let allowed = |places: Vec<usize>| {
            places.into_iter().filter(|place| !need.not.contains(place)).collect::<Vec<_>>()
        };
        let probes = allowed(of(Admits::Probe));
        if let Some(place) = self.best(&probes, need, now) {
            return self.take(place, need, true, now);
        }
        let whole = of(Admits::All);
        let open = if whole.is_empty() { of(Admits::LastResort) } else { whole };
        let open = allowed(open);
        if open.is_empty() {
            return Answer::Resting(self.wait(&admits));
        }
        match self.best(&open, need, now) {
            Some(place) => self.take(place, need, false, now),
            None if need.again && open.iter().any(|place| self.members[*place].has_room(need.calls)) => {
                Answer::Spent
            }
            None => Answer::Full,
        }
    }

    /// Finds a target for a second attempt beside one that is under way, and takes its places: only one that works, not one
    /// that is to be found out about. Its budget of retries pays.
    pub(super) fn find_beside(&mut self, need: &Need, now: Instant) -> Option<usize> {
        let works = |place: &usize| self.members[*place].breaker.admits(now) == Admits::All;
        let places: Vec<usize> = (0..self.members.len()).filter(works).collect();
        let others: Vec<usize> = places.into_iter().filter(|place| !need.not.contains(place)).collect();
        let place = self.best(&others, need, now)?;
        self.take(place, need, false, now);
        Some(place)
    }

    fn best(&mut self, places: &[usize], need: &Need, now: Instant) -> Option<usize> {
        let member = |place: &usize| (*place, &self.members[*place]);
        let fits = |(_, member): &(usize, &Member)| {
            member.has_room(need.calls) && (!need.again || member.budget.allows(now, need.calls))
        };
        let fresh = self.settings.load_every * STALE_AFTER;
        let fitting: Vec<(usize, &Member)> = places.iter().map(member).filter(fits).collect();
        let has_trusted = fitting.iter().any(|(_, member)| member.is_trusted(now));
        let candidates: Vec<Candidate> = fitting
            .into_iter()
            .filter(|(_, member)| !has_trusted || member.is_trusted(now))
            .map(|(place, member)| Candidate {
                place,
                name: member.name,
                origin: member.origin,
                expected: member.expected(fresh, now),
            })
            .collect();
        choose(&candidates, need.beginning, &mut self.dice)
    }

    fn take(&mut self, place: usize, need: &Need, probe: bool, now: Instant) -> Answer {
        let member = &mut self.members[place];
        member.calls = member.calls.saturating_add(need.calls);
        if need.again {
            member.budget.withdraw(now, need.calls);
        } else {
            member.budget.deposit(now, need.calls);
        }
        if probe {
            member.breaker.probe();
        }
        Answer::To { place, probe }
    }

    /// How long until one of the targets may be asked again.
    fn wait(&self, admits: &[Admits]) -> Duration {
        let waits = admits.iter().filter_map(|admits| match admits {
            Admits::Nothing(wait) => Some(*wait),
            _ => None,
        });
        waits.min().unwrap_or(self.settings.breaker.rest_min)
    }

    /// How long until some target may be asked; nothing where one may be now.
    pub(super) fn rest(&self, now: Instant) -> Option<Duration> {
        let admits: Vec<Admits> = self.members.iter().map(|member| member.breaker.admits(now)).collect();
        let all_rest = admits.iter().all(|admits| matches!(admits, Admits::Nothing(_)));
        all_rest.then(|| self.wait(&admits))
    }

    /// How long until some target may be asked as it said itself; nothing where all failed too often.
    pub(super) fn comes_back(&self, now: Instant) -> Option<Duration> {
        self.members.iter().filter_map(|member| member.breaker.comes_back(now)).min()
    }

    /// A call came to a good end.
    pub(super) fn succeeded(&mut self, place: usize, probe: bool, now: Instant) {
        let ended = Ended { now, probe, retry_after: None, jitter: 0.0 };
        self.members[place].breaker.succeeded(ended);
    }

    /// A call did not hold its limit: others go first for a while.
    pub(super) fn overran(&mut self, place: usize, now: Instant) {
        self.members[place].distrusted = Some(now + DISTRUST);
    }

    /// A call failed through no fault of its caller. Says why, where its target is left alone from now on.
    pub(super) fn failed(&mut self, place: usize, probe: bool, fall: Fall, now: Instant) -> Option<Cause> {
        let jitter = self.dice.share();
        let member = &mut self.members[place];
        if let Some(limit) = member.limit.as_mut().filter(|_| fall.overloaded) {
            limit.refused(now);
        }
        let ended = Ended { now, probe, retry_after: fall.retry_after, jitter };
        member.breaker.failed(fall.harm, ended)
    }

    /// The probe found out nothing.
    pub(super) fn probe_lost(&mut self, place: usize, now: Instant) {
        self.members[place].breaker.probe_lost(now);
    }

    /// Places that were held for so long are free again.
    pub(super) fn left(&mut self, place: usize, calls: u32, held: Duration) {
        let member = &mut self.members[place];
        member.calls = member.calls.saturating_sub(calls);
        let newest = held.as_secs_f64();
        self.held = Some(self.held.map_or(newest, |held| held + WEIGHT * (newest - held)));
    }

    /// What an engine says of itself; nothing where it could not be asked.
    pub(super) fn loaded(&mut self, place: usize, load: Load, now: Instant) {
        self.members[place].load = Some((load, now));
    }

    /// How many seconds a request waits until so many calls before it have had their places.
    pub(super) fn wait_behind(&self, calls: u32, now: Instant) -> f64 {
        let open =
            self.members.iter().filter(|member| !matches!(member.breaker.admits(now), Admits::Nothing(_)));
        let places: u32 = open.filter_map(|member| member.limit.as_ref()).map(Limit::places).sum();
        f64::from(calls) * self.held.unwrap_or_default() / f64::from(places.max(1))
    }

    /// The target where a request would begin soonest, and how many seconds an engine's own queue takes there. Nothing
    /// where all rest.
    pub(super) fn soonest(&self, now: Instant) -> Option<(usize, f64)> {
        let fresh = self.settings.load_every * STALE_AFTER;
        let open = self.members.iter().enumerate();
        let open = open.filter(|(_, member)| !matches!(member.breaker.admits(now), Admits::Nothing(_)));
        let soonest = open.min_by(|(_, a), (_, b)| a.expected(fresh, now).total_cmp(&b.expected(fresh, now)));
        soonest.map(|(place, member)| {
            let load = member.load_at(fresh, now);
            let rounds = f64::from(load.waiting) / f64::from(load.running.max(1));
            (place, rounds * self.held.unwrap_or_default())
        })
    }

    /// Every target, as it stands.
    pub(super) fn standing(&self, now: Instant) -> Vec<Standing> {
        let one = |member: &Member| Standing {
            works: member.breaker.cause().is_none() && member.breaker.admits(now) == Admits::All,
            calls: member.calls,
            places: member.limit.as_ref().map(Limit::places),
            holds_limits: member.is_trusted(now),
        };
        self.members.iter().map(one).collect()
    }

    /// A number that nobody foresees, from 0 to 1.
    pub(super) fn chance(&mut self) -> f64 {
        self.dice.share()
    }
}

impl Member {
    fn is_trusted(&self, now: Instant) -> bool {
        self.distrusted.is_none_or(|until| until <= now)
    }

    /// A request of more calls than there are places goes where it is alone.
    fn has_room(&self, calls: u32) -> bool {
        let fits = |limit: &Limit| self.calls.saturating_add(calls) <= limit.places();
        self.calls == 0 || self.limit.as_ref().is_none_or(fits)
    }

    /// What the engine says counts where it knows of more than we do: others ask it too.
    fn expected(&self, fresh: Duration, now: Instant) -> f64 {
        let load = self.load_at(fresh, now);
        self.latency.expected(self.calls.max(load.waiting.saturating_add(load.running)), now)
    }

    fn load_at(&self, fresh: Duration, now: Instant) -> Load {
        let known = self.load.filter(|(_, at)| now.saturating_duration_since(*at) <= fresh);
        known.map(|(load, _)| load).unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "roster_tests.rs"]
mod tests;
