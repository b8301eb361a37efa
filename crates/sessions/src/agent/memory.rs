//! An episode store in memory, of bounded size: for use without a database, for tests, and as a cache in front of a
//! database that no other process writes.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use stint_types::chat::{EpisodeLimits, EpisodeRaise};
use stint_types::units::{AccountId, Count, EpisodeId, Timestamp};

use super::{
    Addition, AnsweredStep, BrokenOffStep, EpisodeLength, EpisodeOwner, EpisodeStore, EpisodesError,
    HistoryHash, IdenticalEpisode, StoredEpisode,
};

/// The default number of episodes that are remembered, and of histories for each of them on average.
const EPISODES_MAX: usize = 16_384;
const LINKS_EACH: usize = 4;

/// Runs in memory.
#[derive(Debug)]
pub struct MemoryEpisodes {
    table: Mutex<EpisodeTable>,
}

type EpisodeKey = (AccountId, EpisodeId);
type HistoryKey = (AccountId, [u8; 16]);

#[derive(Debug)]
struct EpisodeTable {
    most: usize,
    episodes: HashMap<EpisodeKey, StoredEpisode>,
    /// Those that were not used for longest come first.
    episodes_by_age: BTreeSet<(Timestamp, EpisodeKey)>,
    links: HashMap<HistoryKey, Vec<IdenticalEpisode>>,
    /// By their latest.
    links_by_age: BTreeSet<(Timestamp, HistoryKey)>,
}

impl Default for MemoryEpisodes {
    fn default() -> MemoryEpisodes {
        MemoryEpisodes::up_to(EPISODES_MAX)
    }
}

impl MemoryEpisodes {
    /// Remembers so many episodes; of more, those that were not used for longest are forgotten.
    pub fn up_to(most: usize) -> MemoryEpisodes {
        let kept = EpisodeTable {
            most,
            episodes: HashMap::new(),
            episodes_by_age: BTreeSet::new(),
            links: HashMap::new(),
            links_by_age: BTreeSet::new(),
        };
        MemoryEpisodes { table: Mutex::new(kept) }
    }

    fn table(&self) -> MutexGuard<'_, EpisodeTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The episode as it is known; nothing if it is not here.
    pub(super) fn known(&self, account: &AccountId, id: &EpisodeId) -> Option<StoredEpisode> {
        self.table().episodes.get(&(account.clone(), id.clone())).cloned()
    }

    /// Remembers an episode as it was read. What has become known of it meanwhile stays.
    pub(super) fn remember(&self, account: &AccountId, mut episode: StoredEpisode) {
        let (mut kept, run) = (self.table(), (account.clone(), episode.id.clone()));
        if let Some(known) = kept.episodes.get(&run) {
            if known.raised.raises > episode.raised.raises {
                episode = episode.with_raise(known.raised.clone());
            }
            episode.lower(&known.stated);
            episode.key = episode.key.or(known.key);
            episode.last_used = episode.last_used.max(known.last_used);
            let read: Vec<Addition> = episode.added.iter().cloned().collect();
            episode.added = known.added.clone();
            if known.steps > episode.steps {
                // What was read is older: it may have what was taken back since.
                (episode.steps, episode.last) = (known.steps, known.last.clone());
            } else {
                episode.added.extend(&read);
            }
        }
        kept.insert(run, episode);
    }

    /// Remembers runs that end with some history, beside those that are known to.
    pub(super) fn remember_identical(
        &self,
        account: &AccountId,
        link: &HistoryHash,
        identical: Vec<IdenticalEpisode>,
    ) {
        let mut kept = self.table();
        for episode in identical {
            kept.insert_identical((account.clone(), link.0), episode);
        }
    }

    /// Hands out an episode that ends with this history. `fresh` takes none that was gone on from before.
    pub(super) fn check_out(
        &self,
        owner: &EpisodeOwner,
        link: &HistoryHash,
        since: Timestamp,
        fresh: bool,
    ) -> Option<EpisodeId> {
        let mut kept = self.table();
        let EpisodeTable { links, episodes, .. } = &mut *kept;
        let identical = links.get_mut(&(owner.account.clone(), link.0))?;
        let is_wanted =
            |episode: &&mut IdenticalEpisode| episode.at >= since && may_own(owner, episodes, episode);
        let first = IdenticalEpisode::first(identical.iter_mut().filter(is_wanted))?;
        if fresh && first.continued > Count::ZERO {
            return None;
        }
        first.continued += Count::ONE;
        Some(first.id.clone())
    }

    /// Takes back that an episode was handed out.
    pub(super) fn undo_check_out(&self, account: &AccountId, link: &HistoryHash, id: &EpisodeId) {
        let mut kept = self.table();
        let identical = kept.links.get_mut(&(account.clone(), link.0));
        if let Some(episode) = identical.into_iter().flatten().find(|episode| episode.id == *id) {
            episode.continued = episode.continued.saturating_sub(Count::ONE);
        }
    }

    /// Notes a step; of an episode that is neither known nor new, only how it is known again.
    pub(super) fn note_step(&self, step: &AnsweredStep) {
        let mut kept = self.table();
        if step.is_first || kept.episodes.contains_key(&(step.owner.account.clone(), step.id.clone())) {
            kept.count_step(step);
        }
        kept.link(step);
    }

    /// Notes a step that broke off, of an episode that is known.
    pub(super) fn note_broken_off(&self, step: &BrokenOffStep) {
        self.table().break_off(step);
    }

    /// Takes back what was noted of a step that began.
    pub(super) fn note_taken_back(&self, step: &BrokenOffStep, is_first: bool) {
        self.table().take_back(step, is_first);
    }

    pub(super) fn forget(&self, before: Timestamp, most: usize) -> usize {
        self.table().purge(before, most)
    }
}

impl EpisodeTable {
    fn insert(&mut self, run: EpisodeKey, episode: StoredEpisode) {
        let used = episode.last_used;
        self.episodes_by_age.insert((used, run.clone()));
        if let Some(before) = self.episodes.insert(run.clone(), episode)
            && before.last_used != used
        {
            self.episodes_by_age.remove(&(before.last_used, run));
        }
        while self.episodes.len() > self.most
            && let Some((_, oldest)) = self.episodes_by_age.pop_first()
        {
            self.episodes.remove(&oldest);
        }
    }

    fn insert_identical(&mut self, end: HistoryKey, episode: IdenticalEpisode) {
        let identical = self.links.entry(end.clone()).or_default();
        let before = identical.iter().map(|episode| episode.at).max();
        match identical.iter_mut().find(|known| known.id == episode.id) {
            Some(known) => known.at = known.at.max(episode.at),
            None => identical.push(episode),
        }
        if let Some(at) = IdenticalEpisode::surplus(identical) {
            identical.swap_remove(at);
        }
        let latest = identical.iter().map(|episode| episode.at).max();
        if before != latest {
            before.map(|before| self.links_by_age.remove(&(before, end.clone())));
            latest.map(|latest| self.links_by_age.insert((latest, end)));
        }
        while self.links.len() > self.most * LINKS_EACH
            && let Some((_, oldest)) = self.links_by_age.pop_first()
        {
            self.links.remove(&oldest);
        }
    }

    fn remove_identical(&mut self, end: &HistoryKey, id: &EpisodeId) {
        let Some(identical) = self.links.get_mut(end) else { return };
        let before = identical.iter().map(|episode| episode.at).max();
        identical.retain(|episode| episode.id != *id);
        let latest = identical.iter().map(|episode| episode.at).max();
        if before != latest {
            before.map(|before| self.links_by_age.remove(&(before, end.clone())));
            latest.map(|latest| self.links_by_age.insert((latest, end.clone())));
        }
        if latest.is_none() {
            self.links.remove(end);
        }
    }

    fn open(
        &mut self,
        owner: &EpisodeOwner,
        id: &EpisodeId,
        limits: &EpisodeLimits,
        now: Timestamp,
    ) -> StoredEpisode {
        let run = (owner.account.clone(), id.clone());
        let begun = || StoredEpisode::new(id.clone(), Some(owner.key), EpisodeLimits::default(), now);
        let mut episode = self.episodes.get(&run).cloned().unwrap_or_else(begun);
        if !owner.owns(&episode) {
            return episode;
        }
        episode.lower(limits);
        episode.last_used = episode.last_used.max(now);
        self.insert(run, episode.clone());
        episode
    }

    fn count_step(&mut self, step: &AnsweredStep) {
        let run = (step.owner.account.clone(), step.id.clone());
        let mut episode = self.open(&step.owner, &step.id, &EpisodeLimits::default(), step.at);
        episode.key = episode.key.or(Some(step.owner.key));
        episode.steps += Count::ONE;
        episode.last = Some(step.last.clone());
        step.begun.iter().for_each(|begun| episode.added.remove(begun));
        episode.added.extend(&step.added);
        self.insert(run, episode);
    }

    fn break_off(&mut self, step: &BrokenOffStep) {
        let BrokenOffStep { owner: EpisodeOwner { account, .. }, id, link, added, at, .. } = step;
        if let Some(episode) = self.episodes.get_mut(&(account.clone(), id.clone())) {
            episode.added.extend(added);
            let (end, id) = ((account.clone(), link.0), id.clone());
            self.remove_identical(&end, &id);
            self.insert_identical(end, IdenticalEpisode { id, continued: step.continued(), at: *at });
        }
    }

    fn take_back(&mut self, step: &BrokenOffStep, is_first: bool) {
        self.remove_identical(&(step.owner.account.clone(), step.link.0), &step.id);
        let run = (step.owner.account.clone(), step.id.clone());
        let Some(episode) = self.episodes.get_mut(&run) else { return };
        step.added.iter().for_each(|added| episode.added.remove(added));
        let is_bare = episode.steps == Count::ZERO
            && episode.stated == EpisodeLimits::default()
            && episode.raised == EpisodeRaise::default();
        if is_first && is_bare {
            self.episodes_by_age.remove(&(episode.last_used, run.clone()));
            self.episodes.remove(&run);
        }
    }

    fn link(&mut self, step: &AnsweredStep) {
        if let Some(from) = step.from
            && let Some(identical) = self.links.get_mut(&(step.owner.account.clone(), from.0))
            && let Some(episode) = identical.iter_mut().find(|episode| episode.id == step.id)
        {
            episode.continued = episode.continued.max(Count::ONE);
        }
        if let Some(begun) = &step.begun {
            self.remove_identical(&(step.owner.account.clone(), begun.before.broken_off().0), &step.id);
        }
        for link in &step.to {
            let episode = IdenticalEpisode { id: step.id.clone(), continued: Count::ZERO, at: step.at };
            self.insert_identical((step.owner.account.clone(), link.0), episode);
        }
    }

    fn purge(&mut self, before: Timestamp, most: usize) -> usize {
        let (mut runs, mut ends) = (0, 0);
        while runs < most && self.episodes_by_age.first().is_some_and(|(used, _)| *used < before) {
            let oldest = self.episodes_by_age.pop_first();
            oldest.map(|(_, run)| self.episodes.remove(&run));
            runs += 1;
        }
        while ends < most && self.links_by_age.first().is_some_and(|(at, _)| *at < before) {
            let oldest = self.links_by_age.pop_first();
            oldest.map(|(_, end)| self.links.remove(&end));
            ends += 1;
        }
        runs.max(ends)
    }
}

impl EpisodeStore for MemoryEpisodes {
    fn open<'a>(
        &'a self,
        owner: &'a EpisodeOwner,
        id: &'a EpisodeId,
        limits: &'a EpisodeLimits,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<StoredEpisode, EpisodesError>> {
        async move { Ok(self.table().open(owner, id, limits, now)) }.boxed()
    }

    fn raise<'a>(
        &'a self,
        account: &'a AccountId,
        id: &'a EpisodeId,
        more: &'a EpisodeRaise,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<Option<StoredEpisode>, EpisodesError>> {
        async move {
            let mut kept = self.table();
            let known = kept.episodes.get_mut(&(account.clone(), id.clone()));
            Ok(known.map(|episode| {
                episode.raise(more);
                episode.clone()
            }))
        }
        .boxed()
    }

    fn list<'a>(
        &'a self,
        account: Option<&'a AccountId>,
        after: Option<&'a (AccountId, EpisodeId)>,
        most: u32,
    ) -> BoxFuture<'a, Result<Vec<(AccountId, StoredEpisode)>, EpisodesError>> {
        async move {
            let kept = self.table();
            let is_wanted = |run: &&EpisodeKey| {
                account.is_none_or(|account| run.0 == *account) && after.is_none_or(|after| *run > after)
            };
            let mut runs: Vec<&EpisodeKey> = kept.episodes.keys().filter(is_wanted).collect();
            runs.sort_unstable();
            runs.truncate(usize::try_from(most).unwrap_or(usize::MAX));
            let known = |run: &EpisodeKey| Some((run.0.clone(), kept.episodes.get(run)?.clone()));
            Ok(runs.into_iter().filter_map(known).collect())
        }
        .boxed()
    }

    fn recent<'a>(
        &'a self,
        account: Option<&'a AccountId>,
        most: u32,
    ) -> BoxFuture<'a, Result<Vec<(AccountId, StoredEpisode)>, EpisodesError>> {
        async move {
            let kept = self.table();
            let of_account =
                |(_, run): &&(Timestamp, EpisodeKey)| account.is_none_or(|account| run.0 == *account);
            let latest = kept.episodes_by_age.iter().rev().filter(of_account);
            let latest = latest.take(usize::try_from(most).unwrap_or(usize::MAX));
            let known = |run: &EpisodeKey| Some((run.0.clone(), kept.episodes.get(run)?.clone()));
            Ok(latest.filter_map(|(_, run)| known(run)).collect())
        }
        .boxed()
    }

    fn read<'a>(
        &'a self,
        account: &'a AccountId,
        id: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<Option<StoredEpisode>, EpisodesError>> {
        async move { Ok(self.known(account, id)) }.boxed()
    }

    fn find<'a>(
        &'a self,
        owner: &'a EpisodeOwner,
        link: &'a HistoryHash,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Option<EpisodeId>, EpisodesError>> {
        async move { Ok(self.check_out(owner, link, since, false)) }.boxed()
    }

    fn release<'a>(
        &'a self,
        account: &'a AccountId,
        link: &'a HistoryHash,
        id: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<(), EpisodesError>> {
        self.undo_check_out(account, link, id);
        std::future::ready(Ok(())).boxed()
    }

    fn identical_episodes<'a>(
        &'a self,
        owner: &'a EpisodeOwner,
        link: &'a HistoryHash,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<IdenticalEpisode>, EpisodesError>> {
        async move {
            let kept = self.table();
            let identical = kept.links.get(&(owner.account.clone(), link.0)).into_iter().flatten();
            let is_wanted =
                |episode: &&IdenticalEpisode| episode.at >= since && may_own(owner, &kept.episodes, episode);
            Ok(identical.filter(is_wanted).cloned().collect())
        }
        .boxed()
    }

    fn record_step<'a>(&'a self, step: &'a AnsweredStep) -> BoxFuture<'a, Result<(), EpisodesError>> {
        async move {
            let mut kept = self.table();
            kept.count_step(step);
            kept.link(step);
            Ok(())
        }
        .boxed()
    }

    fn record_broken_off<'a>(&'a self, step: &'a BrokenOffStep) -> BoxFuture<'a, Result<(), EpisodesError>> {
        self.note_broken_off(step);
        std::future::ready(Ok(())).boxed()
    }

    fn take_back<'a>(
        &'a self,
        step: &'a BrokenOffStep,
        is_first: bool,
    ) -> BoxFuture<'a, Result<(), EpisodesError>> {
        self.note_taken_back(step, is_first);
        std::future::ready(Ok(())).boxed()
    }

    fn episode_lengths(&self, most: u32) -> BoxFuture<'_, Result<Vec<EpisodeLength>, EpisodesError>> {
        async move {
            let kept = self.table();
            let latest = kept.episodes_by_age.iter().rev().filter_map(|(_, run)| kept.episodes.get(run));
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            Ok(latest.filter_map(StoredEpisode::length).take(most).collect())
        }
        .boxed()
    }

    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, EpisodesError>> {
        async move {
            let forgotten = self.forget(before, usize::try_from(most).unwrap_or(usize::MAX));
            Ok(u64::try_from(forgotten).unwrap_or(u64::MAX))
        }
        .boxed()
    }
}

/// Whether an episode may be this key's: of one that is not known here, only its store knows.
fn may_own(
    owner: &EpisodeOwner,
    episodes: &HashMap<EpisodeKey, StoredEpisode>,
    episode: &IdenticalEpisode,
) -> bool {
    let known = episodes.get(&(owner.account.clone(), episode.id.clone()));
    known.is_none_or(|episode| owner.owns(episode))
}

#[cfg(test)]
mod tests {
    use stint_types::tenant::KeyId;

    use super::*;

    #[tokio::test]
    async fn runs_in_memory_conform() {
        crate::agent::conformance::conforms(&MemoryEpisodes::default()).await;
    }

    #[test]
    fn of_too_many_those_are_forgotten_that_were_not_heard_of_for_longest() {
        let (store, account) = (MemoryEpisodes::up_to(2), AccountId::new("a"));
        let owner = EpisodeOwner { key: KeyId::of_declared(&account), account: account.clone() };
        let id = |name: &str| name.parse::<EpisodeId>().unwrap();
        for (name, at) in [("one", 1), ("two", 2), ("one", 3), ("three", 4)] {
            store.table().open(&owner, &id(name), &EpisodeLimits::default(), Timestamp(at));
        }
        let is_known = ["one", "two", "three"].map(|name| store.known(&account, &id(name)).is_some());
        assert_eq!(is_known, [true, false, true]);
        assert_eq!(store.table().episodes_by_age.len(), 2);
    }
}
