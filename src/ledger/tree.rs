//! The tree of accounts.

use std::collections::HashMap;

use crate::chat::EpisodeLimits;
use crate::tenant::{Scope, Terms};
use crate::units::{EpisodeId, Holder, Timestamp};

use super::account::Account;
use super::wish::Wish;
use super::{About, AccountId, EpisodeStanding, Line, Need, Refused, Totals, Warning};

/// Where an account stands in its tree; accounts never leave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(usize);

/// All accounts, by their paths. A path is looked up once; from there on its ancestors are known.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    places: HashMap<AccountId, Place>,
    /// True where limits are shared with other replicas, and only what slices cover may be granted.
    pub(super) is_shared: bool,
}

#[derive(Debug)]
struct Node {
    pub(super) id: AccountId,
    /// The places of its ancestors, the root first, and its own last.
    lineage: Box<[Place]>,
    account: Account,
}

impl Tree {
    pub(super) fn find(&self, id: &AccountId) -> Option<Place> {
        self.places.get(id).copied()
    }

    /// The place of an account, which is made with its ancestors where nothing is known of it.
    pub(super) fn place(&mut self, id: &AccountId) -> Place {
        if let Some(place) = self.find(id) {
            return place;
        }
        let mut lineage: Vec<Place> = Vec::new();
        for path in id.lineage() {
            let known = self.places.get(path).copied();
            lineage.push(known.unwrap_or_else(|| self.plant(AccountId::new(path), &lineage)));
        }
        lineage.last().copied().unwrap_or(Place(0))
    }

    fn plant(&mut self, id: AccountId, ancestors: &[Place]) -> Place {
        let place = Place(self.nodes.len());
        let lineage = ancestors.iter().copied().chain([place]).collect();
        self.places.insert(id.clone(), place);
        self.nodes.push(Node { id, lineage, account: Account::default() });
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
    pub(super) fn declare(&mut self, terms: &Terms, now: Timestamp) -> (&mut Account, Vec<Scope>) {
        let Place(at) = self.place(&terms.account);
        let account = &mut self.nodes[at].account;
        let scopes = account.declare(terms, now);
        (account, scopes)
    }

    pub(super) fn is_declared(&self, place: Place) -> bool {
        self.nodes[place.0].account.is_declared()
    }

    /// All limits of a lineage or none, the root's first.
    pub(super) fn grant(
        &mut self,
        place: Place,
        wish: &Wish<'_>,
        now: Timestamp,
    ) -> Result<Vec<Warning>, Refused> {
        self.lineage(place, |account| account.roll(now));
        let mut needs: Option<Vec<Need>> = self.is_shared.then(Vec::new);
        for Place(at) in &*self.nodes[place.0].lineage {
            let Node { id, account, .. } = &self.nodes[*at];
            account.check(wish, id, needs.as_mut(), now)?;
        }
        if let Some(episode) = &wish.about.episode {
            let is_shared = self.is_shared;
            let Node { id, account, .. } = &mut self.nodes[place.0];
            account.know(episode, wish.step.map(|step| &step.limits), now, is_shared);
            account.check_step(episode, wish, id, needs.as_mut(), now)?;
        }
        if let Some(needs) = needs.filter(|needs| !needs.is_empty()) {
            return Err(Refused::Needs(needs));
        }
        self.reserve(place, wish, now);
        Ok(self.warn(place, wish, now))
    }

    /// Sets the wish aside, which was checked before.
    pub(super) fn reserve(&mut self, place: Place, wish: &Wish<'_>, now: Timestamp) {
        self.lineage(place, |account| account.reserve(wish));
        self.of(place).reserve_step(wish, now);
    }

    /// The account at a place.
    pub(super) fn of(&mut self, place: Place) -> &mut Account {
        &mut self.nodes[place.0].account
    }

    /// How the limits of a run stand, with these beside those that are known.
    pub(super) fn episode_lines(
        &self,
        id: &AccountId,
        episode: &EpisodeId,
        limits: &EpisodeLimits,
    ) -> Vec<Line> {
        self.known(id).map(|account| account.episode_lines(episode, limits)).unwrap_or_default()
    }

    /// An account that is known, to be looked at.
    pub(super) fn known(&self, id: &AccountId) -> Option<&Account> {
        self.find(id).map(|Place(at)| &self.nodes[at].account)
    }

    /// How a run stands.
    pub(super) fn episode(&self, id: &AccountId, episode: &EpisodeId) -> EpisodeStanding {
        self.known(id).map(|account| account.episode(episode)).unwrap_or_default()
    }

    /// Does it with an account and all its ancestors, the root first.
    pub(super) fn lineage(&mut self, place: Place, mut each: impl FnMut(&mut Account)) {
        self.each_of(place, |_, account| each(account));
    }

    /// The same, by name.
    pub(super) fn each_of(&mut self, place: Place, mut each: impl FnMut(&AccountId, &mut Account)) {
        for depth in 0..self.nodes[place.0].lineage.len() {
            let Place(at) = self.nodes[place.0].lineage[depth];
            let Node { id, account, .. } = &mut self.nodes[at];
            each(id, account);
        }
    }

    /// An account that is known.
    pub(super) fn account(&mut self, id: &AccountId) -> Option<&mut Account> {
        let Place(at) = self.find(id)?;
        self.nodes.get_mut(at).map(|node| &mut node.account)
    }

    /// As if more was needed than there can be of every limit of a lineage on such requests.
    pub(super) fn all_of(&mut self, id: &AccountId, about: &About, now: Timestamp) -> Vec<Need> {
        let Some(place) = self.find(id) else { return Vec::new() };
        self.lineage(place, |account| account.roll(now));
        let lineage = self.nodes[place.0].lineage.iter().map(|place| &self.nodes[place.0]);
        lineage.flat_map(|Node { id, account, .. }| account.all_of(id, about, now)).collect()
    }

    /// Whether it is known of every limit of a lineage on such requests what others leave of it.
    pub(super) fn knows(&self, id: &AccountId, about: &About, now: Timestamp) -> bool {
        let Some(Place(at)) = self.find(id) else { return true };
        let mut lineage = self.nodes[at].lineage.iter();
        lineage.all(|place| self.nodes[place.0].account.knows(about, now))
    }

    /// All accounts.
    pub(super) fn accounts(&mut self) -> impl Iterator<Item = (&AccountId, &mut Account)> {
        self.nodes.iter_mut().map(|node| (&node.id, &mut node.account))
    }

    /// How every limit of an account and its ancestors stands, the root's first.
    pub(super) fn lines(&self, id: &AccountId, about: &About, moment: Timestamp) -> Vec<Line> {
        let Some(Place(at)) = self.find(id) else { return Vec::new() };
        let lineage = self.nodes[at].lineage.iter().map(|place| &self.nodes[place.0]);
        let lines = lineage.flat_map(|node| {
            let holder = if node.id == *id { Holder::Key } else { Holder::Account(node.id.clone()) };
            node.account.lines(&holder, about, moment)
        });
        lines.collect()
    }

    #[cfg(test)]
    pub(super) fn facets(&self) -> usize {
        self.nodes.iter().map(|node| node.account.facets()).sum()
    }

    /// Every account over all time, by name.
    pub(super) fn totals(&self, now: Timestamp) -> Vec<Totals> {
        let totals = self.nodes.iter().map(|node| node.account.totals(node.id.clone(), now));
        let mut totals: Vec<Totals> = totals.collect();
        totals.sort_by(|one, other| one.account.cmp(&other.account));
        totals
    }
}
