//! One account's limits as purses, of which replicas have slices.

use crate::tenant::{LimitSelector, TenantLimit};
use crate::units::{Amount, EpisodeId, Facet, Holder, Timestamp, Unit};

use super::account::AccountState;
use super::episode_account::{EpisodeLimit, episode_limit_status, episode_limits};
use super::tally::{QuotaLease, WindowTally};
use super::{AccountId, QuotaNeed, QuotaWindow, RequestScope, Shortfall};

impl AccountState {
    /// The purses of which this replica has a slice, with their limits and those slices; as far as they are wanted, by
    /// window, unit and limit.
    pub(super) fn leased_windows(
        &self,
        id: &AccountId,
        mut is_wanted: impl FnMut(&WindowTally, Unit, u64) -> bool,
    ) -> Vec<(QuotaWindow, u64, QuotaLease)> {
        let mut purses = Vec::new();
        for TenantLimit { window, max, scope } in &self.limits {
            let whole = (Facet::Whole, &self.whole);
            let all =
                std::iter::once(whole).chain(self.facets.iter().map(|(facet, all)| (facet.clone(), all)));
            for (facet, tallies) in all.filter(|(facet, _)| scope.covers(facet)) {
                for tally in tallies.iter().filter(|tally| tally.window == *window) {
                    let slice = tally.lease(max.unit());
                    if (slice.own > 0 || slice.is_uncertain) && is_wanted(tally, max.unit(), max.size()) {
                        purses.push((quota_window(id, facet.clone(), max.unit(), tally), max.size(), slice));
                    }
                }
            }
        }
        purses
    }

    /// The same of the limits of runs. Of those that the bank was told all about, there is nothing to say.
    pub(super) fn leased_episode_windows(
        &self,
        id: &AccountId,
        mut is_wanted: impl FnMut(&WindowTally, Unit, u64) -> bool,
    ) -> Vec<(QuotaWindow, u64, QuotaLease)> {
        let mut purses = Vec::new();
        for (episode, known) in self.episodes.iter().filter(|(_, known)| !known.is_finished()) {
            for EpisodeLimit { facet, max } in episode_limits(episode, &known.limits) {
                let (unit, tally) = (max.unit(), known.tally(&facet));
                let slice = tally.lease(unit);
                let is_held = (slice.own > 0 && !slice.is_final) || slice.is_uncertain;
                if is_held && is_wanted(&tally, unit, max.size()) {
                    purses.push((quota_window(id, facet, unit, &tally), max.size(), slice));
                }
            }
        }
        purses
    }

    /// More than there can be of every limit of a run.
    pub(super) fn all_episode_needs(&self, id: &AccountId, episode: &EpisodeId) -> Vec<QuotaNeed> {
        let Some(known) = self.episodes.get(episode) else { return Vec::new() };
        let need = |EpisodeLimit { facet, max }: EpisodeLimit| {
            let (unit, tally) = (max.unit(), known.tally(&facet));
            let line = episode_limit_status(&facet, max, &tally);
            let (needed, left) = (Amount::new(unit, u64::MAX), line.left);
            let shortfall = Shortfall { limit: line.limit, needed, left, resets_at: None };
            let counted_since = known.counted_since(&tally, unit);
            QuotaNeed {
                window: quota_window(id, facet, unit, &tally),
                max: max.size(),
                counted_since,
                shortfall,
            }
        };
        episode_limits(episode, &known.limits).into_iter().map(need).collect()
    }

    /// Whether a run has limits.
    pub(super) fn has_episode_limits(&self, episode: &EpisodeId) -> bool {
        self.episodes.get(episode).is_some_and(|known| !known.limits.is_empty())
    }

    /// Whether it is known of every limit of a run what others leave of it.
    pub(super) fn has_fresh_episode_balances(&self, episode: &EpisodeId, now: Timestamp) -> bool {
        let Some(known) = self.episodes.get(episode) else { return false };
        episode_limits(episode, &known.limits)
            .iter()
            .all(|most| now < known.tally(&most.facet).lease(most.max.unit()).fresh_until)
    }

    /// More than there can be of every limit on such requests.
    pub(super) fn all_needs(&self, id: &AccountId, about: &RequestScope, now: Timestamp) -> Vec<QuotaNeed> {
        let need = |limit: &TenantLimit| {
            let facet = about.facet(&limit.scope)?;
            let (unit, tally) = (limit.max.unit(), self.tally(&facet, limit.window, now));
            let line = self.limit_status(limit, &Holder::Key, facet.clone(), now);
            let (needed, left) = (Amount::new(unit, u64::MAX), line.left);
            let shortfall = Shortfall { limit: line.limit, needed, left, resets_at: line.resets_at };
            let counted_since = self.counted_since(&limit.scope, unit, &tally);
            Some(QuotaNeed {
                window: quota_window(id, facet, unit, &tally),
                max: limit.max.size(),
                counted_since,
                shortfall,
            })
        };
        self.limits.iter().filter_map(need).collect()
    }

    /// Whether it is known of every limit on such requests what others leave of it.
    pub(super) fn has_fresh_balances(&self, about: &RequestScope, now: Timestamp) -> bool {
        self.limits.iter().all(|limit| {
            let facet = about.facet(&limit.scope);
            facet.is_none_or(|facet| {
                now < self.tally(&facet, limit.window, now).lease(limit.max.unit()).fresh_until
            })
        })
    }

    /// From when on a part of the account is counted, where that is too late for this window and what was used before
    /// is not known yet.
    pub(super) fn counted_since(
        &self,
        scope: &LimitSelector,
        unit: Unit,
        tally: &WindowTally,
    ) -> Option<Timestamp> {
        let (_, since) = self.counted_since.iter().find(|(known, _)| known == scope)?;
        // What was resolved is not at once with anything any more.
        let is_late = tally.start < *since && unit != Unit::Concurrency;
        (is_late && !tally.lease(unit).has_prior_usage).then_some(*since)
    }

    /// Counts what was used of a purse before this part of the account was counted, where it is from then on; once.
    pub(super) fn add_prior_usage(
        &mut self,
        purse: &QuotaWindow,
        since: Timestamp,
        before: u64,
        now: Timestamp,
    ) {
        if let Facet::Episode(episode) | Facet::Tool(episode, _) = &purse.facet {
            if let Some(known) =
                self.episodes.get_mut(episode).filter(|known| known.counted_since == Some(since))
            {
                known.tally_mut(&purse.facet).add_prior_usage(purse.unit, before);
            }
            return;
        }
        let is_so =
            |(scope, counted): &(LimitSelector, Timestamp)| scope.covers(&purse.facet) && *counted == since;
        if !self.counted_since.iter().any(is_so) {
            return;
        }
        self.count(&purse.facet, now);
        if let Some(tally) = self.tally_for(purse) {
            tally.add_prior_usage(purse.unit, before);
        }
    }
}

pub(super) fn quota_window(id: &AccountId, facet: Facet, unit: Unit, tally: &WindowTally) -> QuotaWindow {
    let (account, window, begins, ends) = (id.clone(), tally.window, tally.start, tally.end);
    QuotaWindow { account, facet, unit, window, begins, ends }
}
