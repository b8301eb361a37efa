//! One account: its limits, its windows, and those of the facets that limits ask for.

use std::collections::HashMap;

use crate::quota::QuotaWindow;
use crate::rows::{AccountSpend, Amounts, RequestScope, ResolutionKind};
use stint_types::tenant::{AccountTerms, LimitSelector, Percent, TenantLimit};
use stint_types::units::{AccountId, Facet, Money, Timestamp, Unit, Window, Zone};

use super::counted_limit::CountedLimit;
use super::demand::ExtraDemand;
use super::episodes::Episodes;
use super::error::{QuotaNeed, Shortfall};
use super::statement::{AccountTotals, LimitStatus};
use super::tally::{WindowTallies, WindowTally};

/// One account. All its times come from the ledger's state, whose clock never goes back.
#[derive(Debug, Default)]
pub(crate) struct AccountState {
    /// In the order in which they are checked.
    pub(crate) limits: Vec<TenantLimit>,
    /// A change takes effect at each window's next boundary.
    zone: Zone,
    pub(crate) warn_at: Percent,
    /// False if nobody may reserve any more.
    is_declared: bool,
    pub(crate) whole: WindowTallies,
    /// Only those that a limit asks for.
    pub(crate) facets: HashMap<Facet, WindowTallies>,
    pub(crate) episodes: Episodes,
    /// Since when the limits of a scope are counted, if something was spent before.
    pub(crate) counted_since: Vec<(LimitSelector, Timestamp)>,
    overrun: Money,
    settled: u64,
}

impl AccountState {
    /// Puts terms in force. Returns the parts of the account that are counted from now on and were not before.
    pub(crate) fn declare(&mut self, terms: &AccountTerms, now: Timestamp) -> Vec<LimitSelector> {
        let before = std::mem::replace(&mut self.limits, terms.limits.clone());
        self.limits.sort_by(|one, other| rank(one).cmp(&rank(other)));
        (self.zone, self.warn_at, self.is_declared) = (terms.zone.clone(), terms.warn_at, true);
        let limits = &self.limits;
        self.facets.retain(|facet, _| limits.iter().any(|limit| limit.scope.covers(facet)));
        let is_new = |scope: &LimitSelector| {
            *scope != LimitSelector::All && !before.iter().any(|limit| limit.scope == *scope)
        };
        let mut scopes: Vec<LimitSelector> =
            self.limits.iter().map(|limit| limit.scope.clone()).filter(is_new).collect();
        scopes.sort();
        scopes.dedup();
        self.counted_since.retain(|(scope, _)| self.limits.iter().any(|limit| limit.scope == *scope));
        let all = self.whole.iter().find(|tally| tally.window == Window::Total);
        if all.is_some_and(|all| all.spent != Amounts::ZERO) {
            self.counted_since.extend(scopes.iter().map(|scope| (scope.clone(), now)));
        }
        scopes
    }

    /// Takes the right to reserve away, until it is declared again.
    pub(crate) fn withdraw(&mut self) {
        self.is_declared = false;
    }

    /// Forgets the limits of an account that was not declared again.
    pub(crate) fn sweep(&mut self) {
        if !self.is_declared {
            self.limits.clear();
            self.facets.clear();
            self.counted_since.clear();
        }
    }

    pub(crate) fn is_declared(&self) -> bool {
        self.is_declared
    }

    /// True if nobody may reserve, and nothing was ever counted.
    pub(crate) fn is_unused(&self) -> bool {
        let is_empty = |tally: &WindowTally| tally.is_finished() && tally.spent == Amounts::ZERO;
        let has_parts = !self.facets.is_empty() || !self.episodes.is_empty();
        !self.is_declared && !has_parts && self.settled == 0 && self.whole.iter().all(is_empty)
    }

    /// Opens the windows that hold `now`. A facet rolls when it is next used. Once a minute it forgets the
    /// facets of which no limit counts anything; otherwise every end user who ever called would stay.
    pub(crate) fn roll(&mut self, now: Timestamp) {
        if self.whole.roll(now, &self.zone) {
            let limits = &self.limits;
            self.facets.retain(|facet, tallies| {
                let mut theirs = limits.iter().filter(|limit| limit.scope.covers(facet));
                theirs.any(|limit| tallies.is_in_use(limit.max.unit(), limit.window, now))
            });
        }
    }

    /// How each limit stands in the window that holds `moment`, in the order in which they are checked.
    pub(crate) fn limit_statuses(
        &self,
        id: &AccountId,
        asker: &AccountId,
        about: &RequestScope,
        moment: Timestamp,
    ) -> Vec<LimitStatus> {
        let facet = |scope: &LimitSelector| match scope {
            LimitSelector::Model(name) => Some(Facet::Model(name.clone())),
            LimitSelector::Tag(name) => Some(Facet::Tag(name.clone())),
            scope => about.facet(scope),
        };
        let status =
            |limit: &TenantLimit| Some(self.counted(id, limit, facet(&limit.scope)?, moment).status(asker));
        self.limits.iter().filter_map(status).collect()
    }

    /// The limits on requests of this scope, in the windows that hold `moment`.
    pub(crate) fn limits_on<'a>(
        &'a self,
        id: &'a AccountId,
        about: &'a RequestScope,
        moment: Timestamp,
    ) -> impl Iterator<Item = CountedLimit<'a>> {
        let counted =
            move |limit: &TenantLimit| Some(self.counted(id, limit, about.facet(&limit.scope)?, moment));
        self.limits.iter().filter_map(counted)
    }

    /// All limits of which this replica holds a lease. Those of episodes come last.
    pub(crate) fn leased<'a>(&'a self, id: &'a AccountId) -> impl Iterator<Item = CountedLimit<'a>> {
        let of_limit = move |limit: &'a TenantLimit| {
            let whole = std::iter::once((Facet::Whole, &self.whole));
            let all = whole.chain(self.facets.iter().map(|(facet, tallies)| (facet.clone(), tallies)));
            let covered = all.filter(move |(facet, _)| limit.scope.covers(facet));
            covered.flat_map(move |(facet, tallies)| {
                let windows = tallies.iter().filter(move |tally| tally.window == limit.window);
                windows.map(move |tally| self.counted_in(id, limit, facet.clone(), *tally))
            })
        };
        let own = self.limits.iter().flat_map(of_limit).filter(CountedLimit::is_leased);
        own.chain(self.episodes.leased(id))
    }

    /// A limit with what it counts of a facet in the window that holds `moment`.
    pub(crate) fn counted<'a>(
        &self,
        id: &'a AccountId,
        limit: &TenantLimit,
        facet: Facet,
        moment: Timestamp,
    ) -> CountedLimit<'a> {
        let tally = self.tally(&facet, limit.window, moment);
        self.counted_in(id, limit, facet, tally)
    }

    fn counted_in<'a>(
        &self,
        id: &'a AccountId,
        limit: &TenantLimit,
        facet: Facet,
        tally: WindowTally,
    ) -> CountedLimit<'a> {
        let unit = limit.max.unit();
        let since = self.counted_since.iter().find(|(scope, _)| *scope == limit.scope);
        // A limit on requests at once counts only open ones, so what was before does not matter.
        let is_late = |since: &Timestamp| {
            tally.start < *since && unit != Unit::Concurrency && !tally.lease(unit).has_prior_usage
        };
        let counted_since = since.map(|(_, since)| *since).filter(is_late);
        CountedLimit { account: id, facet, max: limit.max, tally, counted_since }
    }

    pub(crate) fn tally(&self, facet: &Facet, window: Window, moment: Timestamp) -> WindowTally {
        let tallies = match facet {
            Facet::Whole => Some(&self.whole),
            facet => self.facets.get(facet),
        };
        let known = tallies.and_then(|tallies| tallies.at(window, moment));
        known.unwrap_or_else(|| WindowTally::new(window, moment, &self.zone))
    }

    /// Fails with the first limit that the demand exceeds. Where replicas share the account, `needs` collects the quota
    /// that this replica lacks under limits that may still have room.
    pub(crate) fn check(
        &self,
        demand: &ExtraDemand<'_>,
        id: &AccountId,
        needs: &mut Option<Vec<QuotaNeed>>,
        now: Timestamp,
    ) -> Result<(), Shortfall> {
        for limit in &self.limits {
            let Some((facet, more)) = demand.demand_under(&limit.scope) else { continue };
            let counted = self.counted(id, limit, facet, demand.admitted);
            counted.check(more.of(limit.max.unit()), demand.account, needs, now)?;
        }
        Ok(())
    }

    /// Reserves what was checked before.
    pub(crate) fn reserve(&mut self, demand: &ExtraDemand<'_>) {
        match demand.previous {
            None => self.whole.open(demand.more, demand.admitted),
            Some(_) => self.whole.extend(demand.more, demand.admitted),
        }
        let was_in = demand.previous.map(|(about, _)| self.facets_of(about)).unwrap_or_default();
        let is_in = self.facets_of(demand.about);
        let held = demand.previous.map_or(Amounts::ZERO, |(_, held)| held);
        for left in was_in.iter().filter(|facet| !is_in.contains(facet)) {
            self.facet(left, demand.admitted).close(held, Amounts::ZERO, demand.admitted);
        }
        for facet in is_in {
            let tallies = self.facet(&facet, demand.admitted);
            if was_in.contains(&facet) {
                tallies.extend(demand.more, demand.admitted);
            } else {
                tallies.open(held + demand.more, demand.admitted);
            }
        }
    }

    /// Counts an open reservation in parts of the account that were not counted before.
    pub(crate) fn adopt(
        &mut self,
        scopes: &[LimitSelector],
        about: &RequestScope,
        held: Amounts,
        admitted: Timestamp,
    ) {
        for facet in scopes.iter().filter_map(|scope| about.facet(scope)) {
            self.facet(&facet, admitted).open(held, admitted);
        }
    }

    pub(crate) fn resolve(
        &mut self,
        about: &RequestScope,
        admitted: Timestamp,
        held: Amounts,
        spent: Amounts,
        how: ResolutionKind,
    ) {
        self.whole.close(held, spent, admitted);
        for facet in self.facets_of(about) {
            self.facet(&facet, admitted).close(held, spent, admitted);
        }
        self.overrun += spent.saturating_sub(held).money;
        self.settled += u64::from(how == ResolutionKind::Settled);
    }

    /// The facets that limits ask for and a request belongs to. If there are none, it allocates nothing.
    fn facets_of(&self, about: &RequestScope) -> Vec<Facet> {
        let mut facets = Vec::new();
        for limit in self.limits.iter().filter(|limit| limit.scope != LimitSelector::All) {
            facets.extend(about.facet(&limit.scope).filter(|facet| !facets.contains(facet)));
        }
        facets
    }

    pub(crate) fn tallies_mut(&mut self, facet: &Facet) -> Option<&mut WindowTallies> {
        match facet {
            Facet::Whole => Some(&mut self.whole),
            facet => self.facets.get_mut(facet),
        }
    }

    fn facet(&mut self, facet: &Facet, now: Timestamp) -> &mut WindowTallies {
        let tallies = self.facets.entry(facet.clone()).or_default();
        tallies.roll(now, &self.zone);
        tallies
    }

    /// Begins to count a part of the account, if that is new.
    pub(crate) fn count(&mut self, facet: &Facet, now: Timestamp) {
        match facet {
            Facet::Whole => {
                self.whole.roll(now, &self.zone);
            }
            // Episodes are counted from their first step on.
            Facet::Episode(_) | Facet::Tool(..) => {}
            facet => {
                self.facet(facet, now);
            }
        }
    }

    /// The tally of a quota window, if it is counted here.
    pub(crate) fn tally_for(&mut self, window: &QuotaWindow) -> Option<&mut WindowTally> {
        if let Facet::Episode(episode) | Facet::Tool(episode, _) = &window.facet {
            return self.episodes.get_mut(episode).map(|known| known.tally_mut(&window.facet));
        }
        let tally = self.tallies_mut(&window.facet)?.at_mut(window.window, window.begins);
        tally.filter(|tally| tally.start == window.begins)
    }

    /// Adds, once, what was used of a window before this part of the account was counted. Does nothing unless it is counted
    /// since exactly `since`.
    pub(crate) fn add_prior_usage(
        &mut self,
        window: &QuotaWindow,
        since: Timestamp,
        before: u64,
        now: Timestamp,
    ) {
        let is_since = match &window.facet {
            Facet::Episode(episode) | Facet::Tool(episode, _) => {
                self.episodes.get(episode).is_some_and(|known| known.counted_since == Some(since))
            }
            facet => self.counted_since.iter().any(|(scope, at)| scope.covers(facet) && *at == since),
        };
        if !is_since {
            return;
        }
        self.count(&window.facet, now);
        if let Some(tally) = self.tally_for(window) {
            tally.add_prior_usage(window.unit, before);
        }
    }

    /// Marks every lease as stale: the coordinator is asked before more is taken of it.
    pub(crate) fn mark_stale(&mut self) {
        let facets = self.facets.values_mut().flat_map(WindowTallies::iter_mut);
        self.whole.iter_mut().chain(facets).for_each(WindowTally::mark_stale);
    }

    /// Adds what the journal says was spent on some requests, in these windows.
    pub(crate) fn recover(&mut self, spent: &AccountSpend, windows: &[Window], now: Timestamp) {
        self.roll(now);
        self.whole.recover(windows, spent, now);
        for facet in self.facets_of(&spent.about) {
            self.facet(&facet, now).recover(windows, spent, now);
        }
        if windows.contains(&Window::Total) {
            self.overrun += spent.overrun;
            self.settled += spent.settled;
        }
    }

    #[cfg(test)]
    pub(crate) fn facets(&self) -> usize {
        self.facets.len()
    }

    pub(crate) fn totals(&self, account: AccountId, now: Timestamp) -> AccountTotals {
        let all = self.tally(&Facet::Whole, Window::Total, now);
        let (overrun, settled) = (self.overrun, self.settled);
        AccountTotals { account, spent: all.spent, reserved: all.reserved, overrun, settled }
    }
}

/// The order in which limits are checked and shown.
fn rank(limit: &TenantLimit) -> (Unit, Window, &LimitSelector) {
    (limit.max.unit(), limit.window, &limit.scope)
}
