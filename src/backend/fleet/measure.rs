//! What calls tell of their targets by how long they wait for the first token. Pure: the time is an argument.

use std::time::Duration;

use tokio::time::Instant;

use crate::units::Tokens;

use super::limit::{Falls, Limit};
use super::roster::{Member, Roster, STALE_AFTER};
use super::waits::Wait;

impl Roster {
    /// Ends trials for whose sake alone a request finds no place. True where there was one.
    pub(super) fn make_way(&mut self, now: Instant) -> bool {
        let limits = self.members.iter_mut().filter_map(|member| member.limit.as_mut());
        limits.filter_map(|limit| limit.make_way(now).then_some(())).count() > 0
    }

    /// A call of a conversation is sent now, with a prompt of so many tokens; says how many of them are read anew, and how
    /// many calls are under way there.
    pub(super) fn begins(
        &mut self,
        place: usize,
        conversation: u64,
        tokens: Tokens,
        now: Instant,
    ) -> (Tokens, u32) {
        let member = &mut self.members[place];
        let is_judged = member.limit.is_some();
        let tokens = if is_judged { member.cached.sends(conversation, tokens, now) } else { tokens };
        (tokens, member.calls)
    }

    /// A call got its first token.
    pub(super) fn first(&mut self, place: usize, wait: Wait, now: Instant) {
        let member = &mut self.members[place];
        member.latency.measured(member.as_usual(&wait), now);
        if let Some(limit) = &mut member.limit {
            limit.measured(wait, member.calls, now);
        }
    }

    /// A call was let go that nothing had come of until then.
    pub(super) fn in_vain(&mut self, place: usize, wait: Wait, now: Instant) {
        let member = &mut self.members[place];
        if let Some(limit) = &mut member.limit {
            limit.in_vain(wait, member.calls, now);
        }
    }

    /// A call that was silent for so long was let go. True where that is clearly beyond what is usual there, and it neither
    /// keeps a queue of its own nor shows in its load that it works.
    pub(super) fn silent(&mut self, place: usize, wait: Wait, now: Instant) -> bool {
        self.in_vain(place, wait, now);
        let fresh = self.settings.load_every * STALE_AFTER;
        let member = &mut self.members[place];
        let unusual = member.latency.is_unusual(wait.waited, 1.0 / member.scale(&wait));
        member.latency.silent(member.as_usual(&wait), now);
        let shows = member.load.is_some_and(|(_, at)| now.saturating_duration_since(at) <= fresh);
        unusual && member.limit.is_some() && !shows
    }

    /// A target said that nothing is left of its rate limit.
    pub(super) fn spent(&mut self, place: usize, now: Instant) {
        if let Some(limit) = &mut self.members[place].limit {
            limit.refused(now);
        }
    }

    /// How often the limit of each target fell since this was last asked.
    pub(super) fn falls(&mut self) -> Vec<Falls> {
        self.members
            .iter_mut()
            .map(|member| member.limit.as_mut().map(Limit::falls).unwrap_or_default())
            .collect()
    }
}

impl Member {
    /// How many times as long as this call one with a usual prompt should wait.
    fn scale(&self, wait: &Wait) -> f64 {
        let waits = self.limit.as_ref().filter(|_| !wait.hidden).map(Limit::waits);
        waits.map_or(1.0, |waits| waits.scale(wait.tokens))
    }

    /// How long this call would have waited with a usual prompt, without our own delays.
    fn as_usual(&self, wait: &Wait) -> Duration {
        Duration::try_from_secs_f64(wait.upstream() * self.scale(wait)).unwrap_or(wait.waited)
    }
}
