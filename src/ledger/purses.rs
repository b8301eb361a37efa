//! One account's limits as purses, of which replicas have slices.

use crate::tenant::{Scope, TenantLimit};
use crate::units::{Amount, EpisodeId, Facet, Holder, Timestamp, Unit};

use super::account::Account;
use super::episodes::{Most, line, mosts};
use super::tally::{Slice, Tally};
use super::{About, AccountId, Need, Purse, Shortfall};

impl Account {
    /// The purses of which this replica has a slice, with their limits and those slices; as far as they are wanted, by
    /// window, unit and limit.
    pub(super) fn purses(
        &self,
        id: &AccountId,
        mut is_wanted: impl FnMut(&Tally, Unit, u64) -> bool,
    ) -> Vec<(Purse, u64, Slice)> {
        let mut purses = Vec::new();
        for TenantLimit { window, max, scope } in &self.limits {
            let whole = (Facet::Whole, &self.whole);
            let all =
                std::iter::once(whole).chain(self.facets.iter().map(|(facet, all)| (facet.clone(), all)));
            for (facet, tallies) in all.filter(|(facet, _)| scope.covers(facet)) {
                for tally in tallies.iter().filter(|tally| tally.window == *window) {
                    let slice = tally.slice(max.unit());
                    if (slice.own > 0 || slice.is_unsure) && is_wanted(tally, max.unit(), max.size()) {
                        purses.push((purse(id, facet.clone(), max.unit(), tally), max.size(), slice));
                    }
                }
            }
        }
        purses
    }

    /// The same of the limits of runs. Of those that the bank was told all about, there is nothing to say.
    pub(super) fn purses_of_episodes(
        &self,
        id: &AccountId,
        mut is_wanted: impl FnMut(&Tally, Unit, u64) -> bool,
    ) -> Vec<(Purse, u64, Slice)> {
        let mut purses = Vec::new();
        for (episode, known) in self.episodes.iter().filter(|(_, known)| !known.is_over()) {
            for Most { facet, max } in mosts(episode, &known.limits) {
                let (unit, tally) = (max.unit(), known.tally(&facet));
                let slice = tally.slice(unit);
                let is_held = (slice.own > 0 && !slice.is_final) || slice.is_unsure;
                if is_held && is_wanted(&tally, unit, max.size()) {
                    purses.push((purse(id, facet, unit, &tally), max.size(), slice));
                }
            }
        }
        purses
    }

    /// More than there can be of every limit of a run.
    pub(super) fn all_of_episode(&self, id: &AccountId, episode: &EpisodeId) -> Vec<Need> {
        let Some(known) = self.episodes.get(episode) else { return Vec::new() };
        let need = |Most { facet, max }: Most| {
            let (unit, tally) = (max.unit(), known.tally(&facet));
            let line = line(&facet, max, &tally);
            let (needed, left) = (Amount::new(unit, u64::MAX), line.left);
            let shortfall = Shortfall { limit: line.limit, needed, left, resets_at: None };
            let counted_since = known.counted_since(&tally, unit);
            Need { purse: purse(id, facet, unit, &tally), max: max.size(), counted_since, shortfall }
        };
        mosts(episode, &known.limits).into_iter().map(need).collect()
    }

    /// Whether a run has limits.
    pub(super) fn limits_episode(&self, episode: &EpisodeId) -> bool {
        self.episodes.get(episode).is_some_and(|known| !known.limits.is_empty())
    }

    /// Whether it is known of every limit of a run what others leave of it.
    pub(super) fn knows_all_of(&self, episode: &EpisodeId, now: Timestamp) -> bool {
        let Some(known) = self.episodes.get(episode) else { return false };
        mosts(episode, &known.limits)
            .iter()
            .all(|most| now < known.tally(&most.facet).slice(most.max.unit()).known_until)
    }

    /// More than there can be of every limit on such requests.
    pub(super) fn all_of(&self, id: &AccountId, about: &About, now: Timestamp) -> Vec<Need> {
        let need = |limit: &TenantLimit| {
            let facet = about.facet(&limit.scope)?;
            let (unit, tally) = (limit.max.unit(), self.tally(&facet, limit.window, now));
            let line = self.line(limit, &Holder::Key, facet.clone(), now);
            let (needed, left) = (Amount::new(unit, u64::MAX), line.left);
            let shortfall = Shortfall { limit: line.limit, needed, left, resets_at: line.resets_at };
            let counted_since = self.since(&limit.scope, unit, &tally);
            Some(Need {
                purse: purse(id, facet, unit, &tally),
                max: limit.max.size(),
                counted_since,
                shortfall,
            })
        };
        self.limits.iter().filter_map(need).collect()
    }

    /// Whether it is known of every limit on such requests what others leave of it.
    pub(super) fn knows(&self, about: &About, now: Timestamp) -> bool {
        self.limits.iter().all(|limit| {
            let facet = about.facet(&limit.scope);
            facet.is_none_or(|facet| {
                now < self.tally(&facet, limit.window, now).slice(limit.max.unit()).known_until
            })
        })
    }

    /// From when on a part of the account is counted, where that is too late for this window and what was used before
    /// is not known yet.
    pub(super) fn since(&self, scope: &Scope, unit: Unit, tally: &Tally) -> Option<Timestamp> {
        let (_, since) = self.since.iter().find(|(known, _)| known == scope)?;
        // What was resolved is not at once with anything any more.
        let is_late = tally.start < *since && unit != Unit::Concurrency;
        (is_late && !tally.slice(unit).has_before).then_some(*since)
    }

    /// Counts what was used of a purse before this part of the account was counted, where it is from then on; once.
    pub(super) fn remember(&mut self, purse: &Purse, since: Timestamp, before: u64, now: Timestamp) {
        if let Facet::Episode(episode) | Facet::Tool(episode, _) = &purse.facet {
            if let Some(known) = self.episodes.get_mut(episode).filter(|known| known.since == Some(since)) {
                known.tally_mut(&purse.facet).remember(purse.unit, before);
            }
            return;
        }
        let is_so = |(scope, counted): &(Scope, Timestamp)| scope.covers(&purse.facet) && *counted == since;
        if !self.since.iter().any(is_so) {
            return;
        }
        self.count(&purse.facet, now);
        if let Some(tally) = self.window_of(purse) {
            tally.remember(purse.unit, before);
        }
    }
}

pub(super) fn purse(id: &AccountId, facet: Facet, unit: Unit, tally: &Tally) -> Purse {
    let (account, window, begins, ends) = (id.clone(), tally.window, tally.start, tally.end);
    Purse { account, facet, unit, window, begins, ends }
}
