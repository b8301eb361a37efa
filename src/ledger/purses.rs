//! One account's limits as purses, of which replicas have slices.

use crate::tenant::{Scope, TenantLimit};
use crate::units::{Amount, Facet, Holder, Timestamp, Unit};

use super::account::Account;
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
