//! The tree of accounts. A demand is checked against and counted in an account and all its ancestors.

use std::collections::HashMap;

use crate::rows::RequestScope;
use stint_types::chat::EpisodeLimits;
use stint_types::tenant::{AccountTerms, LimitSelector};
use stint_types::units::{AccountId, EpisodeId, Holder, Limit, Timestamp};

use super::account::AccountState;
use super::counted_limit::CountedLimit;
use super::demand::ExtraDemand;
use super::error::{QuotaNeed, ReserveError};
use super::statement::{AccountTotals, LimitStatus};
use super::warnings::{LimitWarning, warn_nearly_used_up, warn_refused};

/// The index of an account in its tree. That of an account that was forgotten is given to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AccountIndex(usize);

/// The limits that a query is about.
#[derive(Debug, Clone)]
pub(crate) enum LimitsOn {
    /// Those of an account and its ancestors on requests of this scope.
    Requests(RequestScope),
    /// Those of an episode.
    Episode(EpisodeId),
}

/// All accounts, by their paths. A path is looked up once; from there on its ancestors are known.
#[derive(Debug, Default)]
pub(crate) struct AccountTree {
    nodes: Vec<AccountNode>,
    places: HashMap<AccountId, AccountIndex>,
    /// The places of accounts that were forgotten.
    free: Vec<AccountIndex>,
    /// True if limits are shared with other replicas, and only what quota leases cover may be granted.
    pub(crate) is_shared: bool,
}

#[derive(Debug)]
struct AccountNode {
    id: AccountId,
    /// The places of its ancestors, the root first, and its own last.
    lineage: Box<[AccountIndex]>,
    /// How many accounts stand right below it.
    children: usize,
    account: AccountState,
}

impl AccountTree {
    pub(crate) fn find(&self, id: &AccountId) -> Option<AccountIndex> {
        self.places.get(id).copied()
    }

    /// The index of an account. It is created with its ancestors if it is unknown.
    pub(crate) fn find_or_insert(&mut self, id: &AccountId) -> AccountIndex {
        if let Some(place) = self.find(id) {
            return place;
        }
        let mut lineage: Vec<AccountIndex> = Vec::new();
        for path in id.lineage() {
            let known = self.places.get(path).copied();
            lineage.push(known.unwrap_or_else(|| self.insert(AccountId::new(path), &lineage)));
        }
        lineage.last().copied().unwrap_or(AccountIndex(0))
    }

    fn insert(&mut self, id: AccountId, ancestors: &[AccountIndex]) -> AccountIndex {
        let place = self.free.pop().unwrap_or(AccountIndex(self.nodes.len()));
        let lineage = ancestors.iter().copied().chain([place]).collect();
        self.places.insert(id.clone(), place);
        if let Some(AccountIndex(parent)) = ancestors.last() {
            self.nodes[*parent].children += 1;
        }
        let node = AccountNode { id, lineage, children: 0, account: AccountState::default() };
        match self.nodes.get_mut(place.0) {
            Some(forgotten) => *forgotten = node,
            None => self.nodes.push(node),
        }
        place
    }

    /// Forgets an account that may not reserve and never spent anything, and its ancestors of that kind that have no other account
    /// below them. So callers who come once and spend nothing take no memory for ever.
    pub(crate) fn forget_unused(&mut self, id: &AccountId) {
        let mut next = self.find(id);
        while let Some(place) = next {
            let node = &self.nodes[place.0];
            if node.children > 0 || !node.account.is_unused() {
                return;
            }
            next = node.lineage.iter().rev().nth(1).copied();
            self.places.remove(&node.id);
            self.free.push(place);
            if let Some(AccountIndex(parent)) = next {
                self.nodes[parent].children -= 1;
            }
        }
    }

    /// Takes every account the right to reserve, until it is declared again.
    pub(crate) fn withdraw(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.account.withdraw());
    }

    /// Forgets the limits of accounts that were not declared again.
    pub(crate) fn sweep(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.account.sweep());
    }

    /// Puts terms in force; returns which parts of the account were not counted before.
    pub(crate) fn declare(
        &mut self,
        terms: &AccountTerms,
        now: Timestamp,
    ) -> (&mut AccountState, Vec<LimitSelector>) {
        let AccountIndex(at) = self.find_or_insert(&terms.account);
        let account = &mut self.nodes[at].account;
        let scopes = account.declare(terms, now);
        (account, scopes)
    }

    pub(crate) fn is_declared(&self, place: AccountIndex) -> bool {
        self.nodes[place.0].account.is_declared()
    }

    /// All limits of a lineage or none, the root's first.
    pub(crate) fn grant(
        &mut self,
        place: AccountIndex,
        demand: &ExtraDemand<'_>,
        now: Timestamp,
    ) -> Result<Vec<LimitWarning>, ReserveError> {
        self.for_lineage(place, |_, account| account.roll(now));
        let mut needs: Option<Vec<QuotaNeed>> = self.is_shared.then(Vec::new);
        for AccountNode { id, account, .. } in self.lineage(place) {
            account.check(demand, id, &mut needs, now)?;
        }
        if let Some(episode) = &demand.about.episode {
            let is_shared = self.is_shared;
            let AccountNode { id, account, .. } = &mut self.nodes[place.0];
            account.episodes.track(episode, demand.step.map(|step| &step.limits), now, is_shared);
            account.episodes.check(demand, id, &mut needs, now)?;
        }
        if let Some(needs) = needs.filter(|needs| !needs.is_empty()) {
            return Err(ReserveError::NeedsQuota(needs));
        }
        self.reserve(place, demand, now);
        Ok(self.warn(place, demand, now))
    }

    /// Reserves what was checked before.
    pub(crate) fn reserve(&mut self, place: AccountIndex, demand: &ExtraDemand<'_>, now: Timestamp) {
        self.for_lineage(place, |_, account| account.reserve(demand));
        self.account_at(place).episodes.reserve(demand, now);
    }

    /// The account at a place.
    pub(crate) fn account_at(&mut self, place: AccountIndex) -> &mut AccountState {
        &mut self.nodes[place.0].account
    }

    /// How the limits of an episode stand, these included.
    pub(crate) fn episode_limit_statuses(
        &self,
        id: &AccountId,
        episode: &EpisodeId,
        limits: &EpisodeLimits,
    ) -> Vec<LimitStatus> {
        let account = self.find_account(id);
        account.map(|account| account.episodes.limit_statuses(id, episode, limits)).unwrap_or_default()
    }

    /// An account that is known, to be looked at.
    pub(crate) fn find_account(&self, id: &AccountId) -> Option<&AccountState> {
        self.find(id).map(|AccountIndex(at)| &self.nodes[at].account)
    }

    /// An account and its ancestors, the root first.
    fn lineage(&self, place: AccountIndex) -> impl Iterator<Item = &AccountNode> {
        self.nodes[place.0].lineage.iter().map(|place| &self.nodes[place.0])
    }

    /// Calls `each` with an account and all its ancestors, the root first.
    pub(crate) fn for_lineage(
        &mut self,
        place: AccountIndex,
        mut each: impl FnMut(&AccountId, &mut AccountState),
    ) {
        for depth in 0..self.nodes[place.0].lineage.len() {
            let AccountIndex(at) = self.nodes[place.0].lineage[depth];
            let AccountNode { id, account, .. } = &mut self.nodes[at];
            each(id, account);
        }
    }

    /// An account that is known.
    pub(crate) fn find_account_mut(&mut self, id: &AccountId) -> Option<&mut AccountState> {
        let AccountIndex(at) = self.find(id)?;
        self.nodes.get_mut(at).map(|node| &mut node.account)
    }

    /// The limits on such requests of an account and its ancestors, or those of an episode of its.
    pub(crate) fn limits_on<'a>(
        &'a self,
        id: &'a AccountId,
        limits: &'a LimitsOn,
        now: Timestamp,
    ) -> Vec<CountedLimit<'a>> {
        let Some(place) = self.find(id) else { return Vec::new() };
        match limits {
            LimitsOn::Requests(about) => {
                let lineage = self.lineage(place);
                lineage.flat_map(|node| node.account.limits_on(&node.id, about, now)).collect()
            }
            LimitsOn::Episode(episode) => self.nodes[place.0].account.episodes.limits_of(id, episode),
        }
    }

    /// All limits of which this replica holds a lease; of one account, or of all.
    pub(crate) fn leased<'a>(&'a self, of: Option<&AccountId>) -> impl Iterator<Item = CountedLimit<'a>> {
        let nodes = match of.map(|id| self.find(id)) {
            None => &self.nodes[..],
            Some(None) => &[],
            Some(Some(AccountIndex(at))) => &self.nodes[at..=at],
        };
        nodes.iter().flat_map(|node| node.account.leased(&node.id))
    }

    /// All accounts.
    pub(crate) fn accounts_mut(&mut self) -> impl Iterator<Item = &mut AccountState> {
        self.nodes.iter_mut().map(|node| &mut node.account)
    }

    /// Forgets episodes that were not used since then; returns whether there were any, and adds when the others were
    /// last used.
    pub(crate) fn evict_episodes(&mut self, since: Timestamp, used: &mut Vec<Timestamp>) -> bool {
        let evicted = self.accounts_mut().map(|account| account.episodes.evict(since, used));
        evicted.sum::<usize>() > 0
    }

    /// How every limit of an account and its ancestors stands, the root's first.
    pub(crate) fn limit_statuses(
        &self,
        id: &AccountId,
        about: &RequestScope,
        moment: Timestamp,
    ) -> Vec<LimitStatus> {
        let Some(place) = self.find(id) else { return Vec::new() };
        let lineage = self.lineage(place);
        lineage.flat_map(|node| node.account.limit_statuses(&node.id, id, about, moment)).collect()
    }

    /// The limits of a lineage on such requests that are nearly used up since they were last looked at.
    pub(crate) fn warn(
        &mut self,
        place: AccountIndex,
        demand: &ExtraDemand<'_>,
        now: Timestamp,
    ) -> Vec<LimitWarning> {
        let mut warnings = Vec::new();
        self.for_lineage(place, |id, account| {
            warn_nearly_used_up(account, demand, id, now, &mut warnings);
        });
        warnings
    }

    /// A limit refused a request of this account: the warning about it.
    pub(crate) fn record_refusal(
        &mut self,
        asker: &AccountId,
        limit: &Limit,
        now: Timestamp,
    ) -> Option<LimitWarning> {
        let id = match &limit.holder {
            Holder::Request | Holder::Episode => return None,
            Holder::Key => asker,
            Holder::Account(id) => id,
        };
        warn_refused(self.find_account_mut(id)?, limit, id, asker, now)
    }

    #[cfg(test)]
    pub(crate) fn facets(&self) -> usize {
        self.nodes.iter().map(|node| node.account.facets()).sum()
    }

    #[cfg(test)]
    pub(crate) fn places(&self) -> usize {
        self.nodes.len()
    }

    /// Every account over all time, by name.
    pub(crate) fn totals(&self, now: Timestamp) -> Vec<AccountTotals> {
        let known = self.places.iter();
        let totals = known.map(|(id, AccountIndex(at))| self.nodes[*at].account.totals(id.clone(), now));
        let mut totals: Vec<AccountTotals> = totals.collect();
        totals.sort_by(|one, other| one.account.cmp(&other.account));
        totals
    }
}
