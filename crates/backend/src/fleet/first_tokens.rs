//! Learns about targets from how long their calls wait for the first token. Pure: the time is an argument.

use std::time::Duration;

use tokio::time::Instant;

use stint_types::units::Tokens;

use super::limit::{ConcurrencyLimit, LimitDrops};
use super::target_set::{STALE_AFTER, TargetSet, TargetState};
use super::waits::FirstTokenWait;

impl TargetSet {
    /// Ends trials for whose sake alone a request finds no place. True if there was one.
    pub(super) fn cancel_blocking_trials(&mut self, now: Instant) -> bool {
        let limits = self.targets.iter_mut().filter_map(|member| member.limit.as_mut());
        limits.filter_map(|limit| limit.cancel_blocking_trial(now).then_some(())).count() > 0
    }

    /// A call of a conversation is sent now, with a prompt of so many tokens; returns how many of them are not cached,
    /// and how many calls are under way there.
    pub(super) fn record_dispatch(
        &mut self,
        place: usize,
        conversation: u64,
        tokens: Tokens,
        now: Instant,
    ) -> (Tokens, u32) {
        let member = &mut self.targets[place];
        let is_judged = member.limit.is_some();
        let tokens =
            if is_judged { member.prompt_cache.record_prompt(conversation, tokens, now) } else { tokens };
        (tokens, member.in_flight)
    }

    /// A call got its first token.
    pub(super) fn record_first_token(&mut self, place: usize, wait: FirstTokenWait, now: Instant) {
        let member = &mut self.targets[place];
        member.latency.record(member.normalized_wait(&wait), now);
        member.recent_waits.record(now);
        if let Some(limit) = &mut member.limit {
            limit.record_wait(wait, member.in_flight, now);
        }
    }

    /// Whether a target's waits were measured often enough just now.
    pub(super) fn is_measured(&self, place: usize, now: Instant) -> bool {
        self.targets[place].recent_waits.are_enough(now)
    }

    /// A call was dropped before anything came from it.
    pub(super) fn record_abandoned_wait(&mut self, place: usize, wait: FirstTokenWait, now: Instant) {
        let member = &mut self.targets[place];
        if let Some(limit) = &mut member.limit {
            limit.record_abandoned_wait(wait, member.in_flight, now);
        }
    }

    /// A call that was silent for so long was dropped. True if that is clearly beyond what is usual there, and it neither
    /// keeps a queue of its own nor shows in its load that it works.
    pub(super) fn record_silence(&mut self, place: usize, wait: FirstTokenWait, now: Instant) -> bool {
        self.record_abandoned_wait(place, wait, now);
        let fresh = self.settings.load_every * STALE_AFTER;
        let member = &mut self.targets[place];
        let unusual = member.latency.is_unusual(wait.waited, 1.0 / member.prompt_scale(&wait));
        member.latency.record_silence(member.normalized_wait(&wait), now);
        let shows = member.load.is_some_and(|(_, at)| now.saturating_duration_since(at) <= fresh);
        unusual && member.limit.is_some() && !shows
    }

    /// A target reported that nothing is left of its rate limit.
    pub(super) fn record_exhausted_rate_limit(&mut self, place: usize, now: Instant) {
        if let Some(limit) = &mut self.targets[place].limit {
            limit.record_refusal(u32::MAX, now);
        }
    }

    /// How often the limit of each target fell since this was last asked.
    pub(super) fn take_limit_drops(&mut self) -> Vec<LimitDrops> {
        self.targets
            .iter_mut()
            .map(|member| member.limit.as_mut().map(ConcurrencyLimit::take_drops).unwrap_or_default())
            .collect()
    }
}

impl TargetState {
    /// How many times as long as this call one with a usual prompt should wait.
    fn prompt_scale(&self, wait: &FirstTokenWait) -> f64 {
        let waits = self.limit.as_ref().filter(|_| !wait.hidden).map(ConcurrencyLimit::waits);
        waits.map_or(1.0, |waits| waits.scale(wait.tokens))
    }

    /// How long this call would have waited with a usual prompt, without our own delays.
    fn normalized_wait(&self, wait: &FirstTokenWait) -> Duration {
        Duration::try_from_secs_f64(wait.upstream_seconds() * self.prompt_scale(wait)).unwrap_or(wait.waited)
    }
}
