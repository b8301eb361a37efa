//! The episodes under one account. An episode that is not in use is forgotten, and loaded from the journal when it is used
//! again.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::rows::{EpisodeBalance, EpisodeUsage, RequestScope};
use stint_types::chat::EpisodeLimits;
use stint_types::units::{AccountId, EpisodeId, Timestamp};

use super::counted_limit::CountedLimit;
use super::demand::ExtraDemand;
use super::episode_account::{EpisodeAccount, StepAmounts};
use super::error::{QuotaNeed, Shortfall};
use super::statement::LimitStatus;

/// The episodes of an account that are known here.
#[derive(Debug, Default)]
pub(crate) struct Episodes(HashMap<EpisodeId, EpisodeAccount>);

impl Episodes {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, id: &EpisodeId) -> bool {
        self.0.contains_key(id)
    }

    pub(crate) fn get(&self, id: &EpisodeId) -> Option<&EpisodeAccount> {
        self.0.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &EpisodeId) -> Option<&mut EpisodeAccount> {
        self.0.get_mut(id)
    }

    /// Begins to count an episode, if it is new, and holds it to these limits from now on.
    pub(crate) fn track(
        &mut self,
        id: &EpisodeId,
        limits: Option<&EpisodeLimits>,
        now: Timestamp,
        is_shared: bool,
    ) {
        let known = self.0.entry(id.clone());
        let known = known.or_insert_with(|| EpisodeAccount::new(now, is_shared.then_some(now)));
        known.used_at = known.used_at.max(now);
        if let Some(limits) = limits {
            known.limits.lower(limits);
        }
    }

    /// The limits of an episode and what they count.
    pub(crate) fn limits_of<'a>(&self, account: &'a AccountId, id: &EpisodeId) -> Vec<CountedLimit<'a>> {
        self.0.get(id).map(|known| known.counted_limits(account, id)).unwrap_or_default()
    }

    /// How the limits of an episode stand, these included.
    pub(crate) fn limit_statuses(
        &self,
        account: &AccountId,
        id: &EpisodeId,
        limits: &EpisodeLimits,
    ) -> Vec<LimitStatus> {
        let unknown = EpisodeAccount::new(Timestamp::default(), None);
        let episode = self.0.get(id).unwrap_or(&unknown);
        let mut all = episode.limits.clone();
        all.lower(limits);
        episode.count(account, id, &all).iter().map(|limit| limit.status(account)).collect()
    }

    /// All limits of episodes of which this replica holds a lease.
    pub(crate) fn leased<'a>(&'a self, account: &'a AccountId) -> impl Iterator<Item = CountedLimit<'a>> {
        let open = self.0.iter().filter(|(_, episode)| !episode.is_finished());
        let limits = open.flat_map(move |(id, episode)| episode.counted_limits(account, id));
        limits.filter(CountedLimit::is_leased)
    }

    /// Fails with the first limit of the demand's episode under which it does not fit. `needs` takes what this replica
    /// lacks of limits under which it may fit.
    pub(crate) fn check(
        &self,
        demand: &ExtraDemand<'_>,
        account: &AccountId,
        needs: &mut Option<Vec<QuotaNeed>>,
        now: Timestamp,
    ) -> Result<(), Shortfall> {
        let Some(id) = &demand.about.episode else { return Ok(()) };
        for limit in self.limits_of(account, id) {
            let needed = demand.step_amount(&limit.facet, limit.max.unit());
            limit.check(needed, demand.account, needs, now)?;
        }
        Ok(())
    }

    /// Reserves what was checked before.
    pub(crate) fn reserve(&mut self, demand: &ExtraDemand<'_>, now: Timestamp) {
        let Some(id) = &demand.about.episode else { return };
        let episode = self.0.entry(id.clone()).or_insert_with(|| EpisodeAccount::new(now, None));
        episode.used_at = episode.used_at.max(now);
        episode.reserve(demand);
    }

    /// A step of an episode has ended: what was reserved for it, and what it used.
    pub(crate) fn resolve(
        &mut self,
        about: &RequestScope,
        held: StepAmounts<'_>,
        spent: StepAmounts<'_>,
        now: Timestamp,
    ) {
        let Some(episode) = about.episode.as_ref().and_then(|id| self.0.get_mut(id)) else { return };
        episode.used_at = episode.used_at.max(now);
        let counted = |step: StepAmounts<'_>| about.episode_amounts(step.all);
        episode.resolve(
            StepAmounts { all: counted(held), ..held },
            StepAmounts { all: counted(spent), ..spent },
        );
    }

    /// Takes over what an episode used by the journal: if it is not known here, or, where replicas share it, as what all
    /// of them wrote.
    pub(crate) fn restore(&mut self, id: &EpisodeId, used: &EpisodeUsage, now: Timestamp, is_shared: bool) {
        match self.0.entry(id.clone()) {
            Entry::Occupied(mut known) if is_shared => known.get_mut().journal_usage = used.clone(),
            Entry::Vacant(new) if !is_shared => {
                new.insert(EpisodeAccount::restored(used, now));
            }
            _ => {}
        }
    }

    /// Forgets episodes that were not used since then; returns how many, and adds when the others were last used.
    pub(crate) fn evict(&mut self, since: Timestamp, used: &mut Vec<Timestamp>) -> usize {
        let before = self.0.len();
        self.0.retain(|_, episode| episode.used_at >= since || !episode.is_finished());
        used.extend(self.0.values().map(|episode| episode.used_at));
        before - self.0.len()
    }

    /// How an episode stands.
    pub(crate) fn balance(&self, id: &EpisodeId) -> EpisodeBalance {
        self.0.get(id).map(EpisodeAccount::balance).unwrap_or_default()
    }
}
