//! One account: its limits, its windows, and those of the facets that limits ask for.

use std::collections::HashMap;

use crate::tenant::{AccountTerms, LimitSelector, Percent, TenantLimit};
use crate::units::{Amount, EpisodeId, Facet, Holder, Limit, Money, Timestamp, Unit, Window, Zone};

use super::episode_account::EpisodeAccount;
use super::extra_demand::ExtraDemand;
use super::quota_windows::quota_window;
use super::tally::{WindowTallies, WindowTally};
use super::{
    AccountId, AccountSpend, AccountTotals, Amounts, LimitStatus, QuotaNeed, QuotaWindow, RequestScope,
    ResolutionKind, Shortfall,
};

/// One account. All its times come from the accounts, whose clock never goes back.
#[derive(Debug, Default)]
pub(super) struct AccountState {
    /// In the order in which they are checked.
    pub(super) limits: Vec<TenantLimit>,
    /// A change of it holds from each window's next boundary on.
    zone: Zone,
    pub(super) warn_at: Percent,
    /// False where nobody may reserve any more.
    is_declared: bool,
    pub(super) whole: WindowTallies,
    /// Only those that a limit asks for.
    pub(super) facets: HashMap<Facet, WindowTallies>,
    /// Runs of agents.
    pub(super) episodes: HashMap<EpisodeId, EpisodeAccount>,
    /// From when on they are counted, where something was spent before.
    pub(super) counted_since: Vec<(LimitSelector, Timestamp)>,
    overrun: Money,
    settled: u64,
}

impl AccountState {
    /// Puts terms in force; says which parts of the account were not counted before, and are from now on.
    pub(super) fn declare(&mut self, terms: &AccountTerms, now: Timestamp) -> Vec<LimitSelector> {
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
    pub(super) fn withdraw(&mut self) {
        self.is_declared = false;
    }

    /// Forgets the limits of an account that was not declared again.
    pub(super) fn sweep(&mut self) {
        if !self.is_declared {
            self.limits.clear();
            self.facets.clear();
            self.counted_since.clear();
        }
    }

    pub(super) fn is_declared(&self) -> bool {
        self.is_declared
    }

    /// Opens the windows that hold `now`. Facets roll when they are next asked for; once a minute those are forgotten
    /// of which no limit's window remembers anything, or every end user who ever called would stay.
    pub(super) fn roll(&mut self, now: Timestamp) {
        if self.whole.roll(now, &self.zone) {
            let limits = &self.limits;
            self.facets.retain(|facet, tallies| {
                let mut theirs = limits.iter().filter(|limit| limit.scope.covers(facet));
                theirs.any(|limit| tallies.is_in_use(limit.max.unit(), limit.window, now))
            });
        }
    }

    /// How each limit stands in the window that holds `moment`, in the order in which they are checked.
    pub(super) fn limit_statuses(
        &self,
        holder: &Holder,
        about: &RequestScope,
        moment: Timestamp,
    ) -> Vec<LimitStatus> {
        let facet = |scope: &LimitSelector| match scope {
            LimitSelector::Model(name) => Some(Facet::Model(name.clone())),
            LimitSelector::Tag(name) => Some(Facet::Tag(name.clone())),
            scope => about.facet(scope),
        };
        let line = |limit: &TenantLimit| Some(self.limit_status(limit, holder, facet(&limit.scope)?, moment));
        self.limits.iter().filter_map(line).collect()
    }

    pub(super) fn limit_status(
        &self,
        limit: &TenantLimit,
        holder: &Holder,
        facet: Facet,
        moment: Timestamp,
    ) -> LimitStatus {
        let (unit, max, window) = (limit.max.unit(), limit.max, limit.window);
        let tally = self.tally(&facet, window, moment);
        let (spent, reserved) = tally.used(unit);
        let others = tally.lease(unit).others;
        let used = tally.size(unit).saturating_add(others);
        let left = Amount::new(unit, max.size().saturating_sub(used));
        let limit = Limit { holder: holder.clone(), facet, unit, window };
        // What others hold counts as spent: they may have, and what is not used of it they hand back.
        let spent = Amount::new(unit, spent.size().saturating_add(others));
        LimitStatus { limit, max, spent, reserved, left, resets_at: tally.end }
    }

    pub(super) fn tally(&self, facet: &Facet, window: Window, moment: Timestamp) -> WindowTally {
        let tallies = match facet {
            Facet::Whole => Some(&self.whole),
            facet => self.facets.get(facet),
        };
        let known = tallies.and_then(|tallies| tallies.at(window, moment));
        known.unwrap_or_else(|| WindowTally::new(window, moment, &self.zone))
    }

    /// The first limit under which the wish does not fit. Where replicas share the account, also what it `needs` of
    /// limits under which it may fit, but of which this replica's slice is too small.
    pub(super) fn check(
        &self,
        wish: &ExtraDemand<'_>,
        id: &AccountId,
        needs: Option<&mut Vec<QuotaNeed>>,
        now: Timestamp,
    ) -> Result<(), Shortfall> {
        let mut missing = Vec::new();
        for limit in &self.limits {
            let Some((facet, more)) = wish.demand_under(&limit.scope) else { continue };
            let needed = more.of(limit.max.unit());
            let (unit, tally) = (needed.unit(), self.tally(&facet, limit.window, wish.admitted));
            let wanted = tally.size(unit).saturating_add(needed.size());
            let max = limit.max.size();
            let is_too_much = wanted > max || tally.is_spent(unit, wanted, max, now);
            if needed.size() == 0 || !(is_too_much || (needs.is_some() && !tally.covers(unit, wanted, max))) {
                continue;
            }
            let line = self.limit_status(limit, &wish.holder(id), facet.clone(), wish.admitted);
            let shortfall =
                Shortfall { limit: line.limit, needed, left: line.left, resets_at: line.resets_at };
            if is_too_much {
                return Err(shortfall);
            }
            let counted_since = self.counted_since(&limit.scope, unit, &tally);
            missing.push(QuotaNeed {
                window: quota_window(id, facet, unit, &tally),
                max,
                counted_since,
                shortfall,
            });
        }
        needs.into_iter().for_each(|needs| needs.append(&mut missing));
        Ok(())
    }

    /// Sets the wish aside, which was checked before.
    pub(super) fn reserve(&mut self, wish: &ExtraDemand<'_>) {
        match wish.previous {
            None => self.whole.open(wish.more, wish.admitted),
            Some(_) => self.whole.extend(wish.more, wish.admitted),
        }
        let was_in = wish.previous.map(|(about, _)| self.facets_of(about)).unwrap_or_default();
        let is_in = self.facets_of(wish.about);
        let held = wish.previous.map_or(Amounts::ZERO, |(_, held)| held);
        for left in was_in.iter().filter(|facet| !is_in.contains(facet)) {
            self.facet(left, wish.admitted).close(held, Amounts::ZERO, wish.admitted);
        }
        for facet in is_in {
            match was_in.contains(&facet) {
                true => self.facet(&facet, wish.admitted).extend(wish.more, wish.admitted),
                false => self.facet(&facet, wish.admitted).open(held + wish.more, wish.admitted),
            }
        }
    }

    /// Counts an open reservation in parts of the account that were not counted before.
    pub(super) fn adopt(
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

    pub(super) fn resolve(
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

    /// The parts that limits ask for and a request falls into. Empty, it allocates nothing.
    fn facets_of(&self, about: &RequestScope) -> Vec<Facet> {
        let mut facets = Vec::new();
        for limit in self.limits.iter().filter(|limit| limit.scope != LimitSelector::All) {
            facets.extend(about.facet(&limit.scope).filter(|facet| !facets.contains(facet)));
        }
        facets
    }

    pub(super) fn tallies_mut(&mut self, facet: &Facet) -> Option<&mut WindowTallies> {
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
    pub(super) fn count(&mut self, facet: &Facet, now: Timestamp) {
        match facet {
            Facet::Whole => {
                self.whole.roll(now, &self.zone);
            }
            // Runs are counted from their first step on.
            Facet::Episode(_) | Facet::Tool(..) => {}
            facet => {
                self.facet(facet, now);
            }
        }
    }

    /// The window that a purse is of, where it is counted here.
    pub(super) fn tally_for(&mut self, purse: &QuotaWindow) -> Option<&mut WindowTally> {
        if let Facet::Episode(episode) | Facet::Tool(episode, _) = &purse.facet {
            return self.episodes.get_mut(episode).map(|known| known.tally_mut(&purse.facet));
        }
        let tally = self.tallies_mut(&purse.facet)?.at_mut(purse.window, purse.begins);
        tally.filter(|tally| tally.start == purse.begins)
    }

    /// Has every slice looked at anew before anything is taken of it.
    pub(super) fn mark_stale(&mut self) {
        let facets = self.facets.values_mut().flat_map(WindowTallies::iter_mut);
        self.whole.iter_mut().chain(facets).for_each(WindowTally::mark_stale);
    }

    /// Takes over what the journal says about requests that were admitted from some moment on.
    pub(super) fn recover(&mut self, spent: &AccountSpend, windows: &[Window], now: Timestamp) {
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
    pub(super) fn facets(&self) -> usize {
        self.facets.len()
    }

    pub(super) fn totals(&self, account: AccountId, now: Timestamp) -> AccountTotals {
        let all = self.tally(&Facet::Whole, Window::Total, now);
        let (overrun, settled) = (self.overrun, self.settled);
        AccountTotals { account, spent: all.spent, reserved: all.reserved, overrun, settled }
    }
}

/// The order in which limits are checked and shown.
fn rank(limit: &TenantLimit) -> (Unit, Window, &LimitSelector) {
    (limit.max.unit(), limit.window, &limit.scope)
}
