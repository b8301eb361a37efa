//! The tree of accounts.

use std::collections::HashMap;

use crate::chat::EpisodeLimits;
use crate::tenant::{AccountTerms, LimitSelector};
use crate::units::{EpisodeId, Holder, Timestamp};

use super::account::AccountState;
use super::extra_demand::ExtraDemand;
use super::{
    AccountId, AccountTotals, EpisodeBalance, LimitStatus, LimitWarning, QuotaNeed, RequestScope,
    ReserveError,
};

/// Where an account stands in its tree; accounts never leave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AccountIndex(usize);

/// All accounts, by their paths. A path is looked up once; from there on its ancestors are known.
#[derive(Debug, Default)]
pub(super) struct AccountTree {
    nodes: Vec<AccountNode>,
    places: HashMap<AccountId, AccountIndex>,
    /// True where limits are shared with other replicas, and only what slices cover may be granted.
    pub(super) is_shared: bool,
}

#[derive(Debug)]
struct AccountNode {
    pub(super) id: AccountId,
    /// The places of its ancestors, the root first, and its own last.
    lineage: Box<[AccountIndex]>,
    account: AccountState,
}

impl AccountTree {
    pub(super) fn find(&self, id: &AccountId) -> Option<AccountIndex> {
        self.places.get(id).copied()
    }

    /// The place of an account, which is made with its ancestors where nothing is known of it.
    pub(super) fn find_or_insert(&mut self, id: &AccountId) -> AccountIndex {
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
        let place = AccountIndex(self.nodes.len());
        let lineage = ancestors.iter().copied().chain([place]).collect();
        self.places.insert(id.clone(), place);
        self.nodes.push(AccountNode { id, lineage, account: AccountState::default() });
        place
    }

    /// Takes every account the right to reserve, until it is declared again.
    pub(super) fn withdraw(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.account.withdraw());
    }

    /// Forgets the limits of accounts that were not declared again.
    pub(super) fn sweep(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.account.sweep());
    }

    /// Puts terms in force; says which parts of the account were not counted before.
    pub(super) fn declare(
        &mut self,
        terms: &AccountTerms,
        now: Timestamp,
    ) -> (&mut AccountState, Vec<LimitSelector>) {
        let AccountIndex(at) = self.find_or_insert(&terms.account);
        let account = &mut self.nodes[at].account;
        let scopes = account.declare(terms, now);
        (account, scopes)
    }

    pub(super) fn is_declared(&self, place: AccountIndex) -> bool {
        self.nodes[place.0].account.is_declared()
    }

    /// All limits of a lineage or none, the root's first.
    pub(super) fn grant(
        &mut self,
        place: AccountIndex,
        wish: &ExtraDemand<'_>,
        now: Timestamp,
    ) -> Result<Vec<LimitWarning>, ReserveError> {
        self.for_lineage(place, |account| account.roll(now));
        let mut needs: Option<Vec<QuotaNeed>> = self.is_shared.then(Vec::new);
        for AccountIndex(at) in &*self.nodes[place.0].lineage {
            let AccountNode { id, account, .. } = &self.nodes[*at];
            account.check(wish, id, needs.as_mut(), now)?;
        }
        if let Some(episode) = &wish.about.episode {
            let is_shared = self.is_shared;
            let AccountNode { id, account, .. } = &mut self.nodes[place.0];
            account.track_episode(episode, wish.step.map(|step| &step.limits), now, is_shared);
            account.check_step(episode, wish, id, needs.as_mut(), now)?;
        }
        if let Some(needs) = needs.filter(|needs| !needs.is_empty()) {
            return Err(ReserveError::NeedsQuota(needs));
        }
        self.reserve(place, wish, now);
        Ok(self.warn(place, wish, now))
    }

    /// Sets the wish aside, which was checked before.
    pub(super) fn reserve(&mut self, place: AccountIndex, wish: &ExtraDemand<'_>, now: Timestamp) {
        self.for_lineage(place, |account| account.reserve(wish));
        self.account_at(place).reserve_step(wish, now);
    }

    /// The account at a place.
    pub(super) fn account_at(&mut self, place: AccountIndex) -> &mut AccountState {
        &mut self.nodes[place.0].account
    }

    /// How the limits of a run stand, with these beside those that are known.
    pub(super) fn episode_limit_statuses(
        &self,
        id: &AccountId,
        episode: &EpisodeId,
        limits: &EpisodeLimits,
    ) -> Vec<LimitStatus> {
        self.find_account(id)
            .map(|account| account.episode_limit_statuses(episode, limits))
            .unwrap_or_default()
    }

    /// An account that is known, to be looked at.
    pub(super) fn find_account(&self, id: &AccountId) -> Option<&AccountState> {
        self.find(id).map(|AccountIndex(at)| &self.nodes[at].account)
    }

    /// How a run stands.
    pub(super) fn episode(&self, id: &AccountId, episode: &EpisodeId) -> EpisodeBalance {
        self.find_account(id).map(|account| account.episode(episode)).unwrap_or_default()
    }

    /// Does it with an account and all its ancestors, the root first.
    pub(super) fn for_lineage(&mut self, place: AccountIndex, mut each: impl FnMut(&mut AccountState)) {
        self.for_lineage_with_id(place, |_, account| each(account));
    }

    /// The same, by name.
    pub(super) fn for_lineage_with_id(
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
    pub(super) fn find_account_mut(&mut self, id: &AccountId) -> Option<&mut AccountState> {
        let AccountIndex(at) = self.find(id)?;
        self.nodes.get_mut(at).map(|node| &mut node.account)
    }

    /// As if more was needed than there can be of every limit of a lineage on such requests.
    pub(super) fn all_needs(
        &mut self,
        id: &AccountId,
        about: &RequestScope,
        now: Timestamp,
    ) -> Vec<QuotaNeed> {
        let Some(place) = self.find(id) else { return Vec::new() };
        self.for_lineage(place, |account| account.roll(now));
        let lineage = self.nodes[place.0].lineage.iter().map(|place| &self.nodes[place.0]);
        lineage.flat_map(|AccountNode { id, account, .. }| account.all_needs(id, about, now)).collect()
    }

    /// Whether it is known of every limit of a lineage on such requests what others leave of it.
    pub(super) fn has_fresh_balances(&self, id: &AccountId, about: &RequestScope, now: Timestamp) -> bool {
        let Some(AccountIndex(at)) = self.find(id) else { return true };
        let mut lineage = self.nodes[at].lineage.iter();
        lineage.all(|place| self.nodes[place.0].account.has_fresh_balances(about, now))
    }

    /// All accounts.
    pub(super) fn accounts(&mut self) -> impl Iterator<Item = (&AccountId, &mut AccountState)> {
        self.nodes.iter_mut().map(|node| (&node.id, &mut node.account))
    }

    /// How every limit of an account and its ancestors stands, the root's first.
    pub(super) fn limit_statuses(
        &self,
        id: &AccountId,
        about: &RequestScope,
        moment: Timestamp,
    ) -> Vec<LimitStatus> {
        let Some(AccountIndex(at)) = self.find(id) else { return Vec::new() };
        let lineage = self.nodes[at].lineage.iter().map(|place| &self.nodes[place.0]);
        let lines = lineage.flat_map(|node| {
            let holder = if node.id == *id { Holder::Key } else { Holder::Account(node.id.clone()) };
            node.account.limit_statuses(&holder, about, moment)
        });
        lines.collect()
    }

    #[cfg(test)]
    pub(super) fn facets(&self) -> usize {
        self.nodes.iter().map(|node| node.account.facets()).sum()
    }

    /// Every account over all time, by name.
    pub(super) fn totals(&self, now: Timestamp) -> Vec<AccountTotals> {
        let totals = self.nodes.iter().map(|node| node.account.totals(node.id.clone(), now));
        let mut totals: Vec<AccountTotals> = totals.collect();
        totals.sort_by(|one, other| one.account.cmp(&other.account));
        totals
    }
}
