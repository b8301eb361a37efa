//! Runs in memory, so many at most: where there is no database, for tests, and in front of a database that nobody else
//! writes.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::chat::{EpisodeLimits, EpisodeRaise};
use crate::units::{AccountId, Count, EpisodeId, Timestamp};

use super::{Course, Episode, Episodes, EpisodesError, Extension, Link, Twin};

/// Runs that are remembered where nothing else is said, and histories for each of them on average.
const EPISODES_MAX: usize = 16_384;
const LINKS_EACH: usize = 4;

/// Runs in memory.
#[derive(Debug)]
pub struct MemoryEpisodes {
    kept: Mutex<Kept>,
}

type Run = (AccountId, EpisodeId);
type End = (AccountId, [u8; 16]);

#[derive(Debug)]
struct Kept {
    most: usize,
    episodes: HashMap<Run, Episode>,
    /// Those that were not heard of for longest come first.
    episodes_by_age: BTreeSet<(Timestamp, Run)>,
    links: HashMap<End, Vec<Twin>>,
    /// By their latest.
    links_by_age: BTreeSet<(Timestamp, End)>,
}

impl Default for MemoryEpisodes {
    fn default() -> MemoryEpisodes {
        MemoryEpisodes::up_to(EPISODES_MAX)
    }
}

impl MemoryEpisodes {
    /// Remembers so many runs; of more, those that were not heard of for longest are forgotten.
    pub fn up_to(most: usize) -> MemoryEpisodes {
        let kept = Kept {
            most,
            episodes: HashMap::new(),
            episodes_by_age: BTreeSet::new(),
            links: HashMap::new(),
            links_by_age: BTreeSet::new(),
        };
        MemoryEpisodes { kept: Mutex::new(kept) }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run as it is known; nothing where it is not here.
    pub(super) fn known(&self, account: &AccountId, id: &EpisodeId) -> Option<Episode> {
        self.kept().episodes.get(&(account.clone(), id.clone())).cloned()
    }

    /// Remembers a run as it was read. What has become known of it meanwhile stays.
    pub(super) fn remember(&self, account: &AccountId, mut episode: Episode) {
        let (mut kept, run) = (self.kept(), (account.clone(), episode.id.clone()));
        if let Some(known) = kept.episodes.get(&run) {
            if known.raised.raises > episode.raised.raises {
                episode = episode.with_raise(known.raised.clone());
            }
            episode.lower(&known.stated);
            episode.used = episode.used.max(known.used);
            if known.steps > episode.steps {
                (episode.steps, episode.last) = (known.steps, known.last.clone());
            }
        }
        kept.put(run, episode);
    }

    /// Remembers runs that end with some history, beside those that are known to.
    pub(super) fn remember_twins(&self, account: &AccountId, link: &Link, twins: Vec<Twin>) {
        let mut kept = self.kept();
        for twin in twins {
            kept.tie((account.clone(), link.0), twin);
        }
    }

    /// Hands out a run that ends with this history. `fresh` takes none that was gone on from before.
    pub(super) fn hand_out(
        &self,
        account: &AccountId,
        link: &Link,
        since: Timestamp,
        fresh: bool,
    ) -> Option<EpisodeId> {
        let mut kept = self.kept();
        let twins = kept.links.get_mut(&(account.clone(), link.0))?;
        let first = Twin::first(twins.iter_mut().filter(|twin| twin.at >= since))?;
        if fresh && first.continued > Count::ZERO {
            return None;
        }
        first.continued += Count::ONE;
        Some(first.id.clone())
    }

    /// Takes back that a run was handed out.
    pub(super) fn take_back(&self, account: &AccountId, link: &Link, id: &EpisodeId) {
        let mut kept = self.kept();
        let twins = kept.links.get_mut(&(account.clone(), link.0));
        if let Some(twin) = twins.into_iter().flatten().find(|twin| twin.id == *id) {
            twin.continued = twin.continued.saturating_sub(Count::ONE);
        }
    }

    /// Notes a step; of a run that is neither known nor new, only how it is known again.
    pub(super) fn step(&self, step: &Extension) {
        let mut kept = self.kept();
        if step.is_first || kept.episodes.contains_key(&(step.account.clone(), step.id.clone())) {
            kept.go_on(step);
        }
        kept.link(step);
    }

    pub(super) fn forget(&self, before: Timestamp, most: usize) -> usize {
        self.kept().purge(before, most)
    }
}

impl Kept {
    fn put(&mut self, run: Run, episode: Episode) {
        let used = episode.used;
        self.episodes_by_age.insert((used, run.clone()));
        if let Some(before) = self.episodes.insert(run.clone(), episode)
            && before.used != used
        {
            self.episodes_by_age.remove(&(before.used, run));
        }
        while self.episodes.len() > self.most
            && let Some((_, oldest)) = self.episodes_by_age.pop_first()
        {
            self.episodes.remove(&oldest);
        }
    }

    fn tie(&mut self, end: End, twin: Twin) {
        let twins = self.links.entry(end.clone()).or_default();
        let before = twins.iter().map(|twin| twin.at).max();
        match twins.iter_mut().find(|known| known.id == twin.id) {
            Some(known) => known.at = known.at.max(twin.at),
            None => twins.push(twin),
        }
        if let Some(at) = Twin::surplus(twins) {
            twins.swap_remove(at);
        }
        let latest = twins.iter().map(|twin| twin.at).max();
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

    fn open(&mut self, run: &Run, limits: &EpisodeLimits, now: Timestamp) -> Episode {
        let known = self.episodes.get(run).cloned();
        let mut episode = known.unwrap_or_else(|| Episode::new(run.1.clone(), EpisodeLimits::default(), now));
        episode.lower(limits);
        episode.used = episode.used.max(now);
        self.put(run.clone(), episode.clone());
        episode
    }

    fn go_on(&mut self, step: &Extension) {
        let run = (step.account.clone(), step.id.clone());
        let mut episode = self.open(&run, &EpisodeLimits::default(), step.at);
        episode.steps += Count::ONE;
        episode.last = Some(step.last.clone());
        self.put(run, episode);
    }

    fn link(&mut self, step: &Extension) {
        if let Some(from) = step.from
            && let Some(twins) = self.links.get_mut(&(step.account.clone(), from.0))
            && let Some(twin) = twins.iter_mut().find(|twin| twin.id == step.id)
        {
            twin.continued = twin.continued.max(Count::ONE);
        }
        for link in &step.to {
            let twin = Twin { id: step.id.clone(), continued: Count::ZERO, at: step.at };
            self.tie((step.account.clone(), link.0), twin);
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

impl Episodes for MemoryEpisodes {
    fn open<'a>(
        &'a self,
        account: &'a AccountId,
        id: &'a EpisodeId,
        limits: &'a EpisodeLimits,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Episode, EpisodesError>> {
        async move { Ok(self.kept().open(&(account.clone(), id.clone()), limits, now)) }.boxed()
    }

    fn raise<'a>(
        &'a self,
        account: &'a AccountId,
        id: &'a EpisodeId,
        more: &'a EpisodeRaise,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Episode>, EpisodesError>> {
        async move {
            let mut kept = self.kept();
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
    ) -> BoxFuture<'a, Result<Vec<(AccountId, Episode)>, EpisodesError>> {
        async move {
            let kept = self.kept();
            let is_wanted = |run: &&Run| {
                account.is_none_or(|account| run.0 == *account) && after.is_none_or(|after| *run > after)
            };
            let mut runs: Vec<&Run> = kept.episodes.keys().filter(is_wanted).collect();
            runs.sort_unstable();
            runs.truncate(usize::try_from(most).unwrap_or(usize::MAX));
            let known = |run: &Run| Some((run.0.clone(), kept.episodes.get(run)?.clone()));
            Ok(runs.into_iter().filter_map(known).collect())
        }
        .boxed()
    }

    fn read<'a>(
        &'a self,
        account: &'a AccountId,
        id: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<Option<Episode>, EpisodesError>> {
        async move { Ok(self.known(account, id)) }.boxed()
    }

    fn find<'a>(
        &'a self,
        account: &'a AccountId,
        link: &'a Link,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Option<EpisodeId>, EpisodesError>> {
        async move { Ok(self.hand_out(account, link, since, false)) }.boxed()
    }

    fn release<'a>(
        &'a self,
        account: &'a AccountId,
        link: &'a Link,
        id: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<(), EpisodesError>> {
        self.take_back(account, link, id);
        std::future::ready(Ok(())).boxed()
    }

    fn twins<'a>(
        &'a self,
        account: &'a AccountId,
        link: &'a Link,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<Twin>, EpisodesError>> {
        async move {
            let twins = self.kept().links.get(&(account.clone(), link.0)).cloned().unwrap_or_default();
            Ok(twins.into_iter().filter(|twin| twin.at >= since).collect())
        }
        .boxed()
    }

    fn extend<'a>(&'a self, step: &'a Extension) -> BoxFuture<'a, Result<(), EpisodesError>> {
        async move {
            let mut kept = self.kept();
            kept.go_on(step);
            kept.link(step);
            Ok(())
        }
        .boxed()
    }

    fn courses(&self, most: u32) -> BoxFuture<'_, Result<Vec<Course>, EpisodesError>> {
        async move {
            let kept = self.kept();
            let latest = kept.episodes_by_age.iter().rev().filter_map(|(_, run)| kept.episodes.get(run));
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            Ok(latest.filter_map(Episode::course).take(most).collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn runs_in_memory_conform() {
        crate::agent::conformance::conforms(&MemoryEpisodes::default()).await;
    }

    #[test]
    fn of_too_many_those_are_forgotten_that_were_not_heard_of_for_longest() {
        let (store, account) = (MemoryEpisodes::up_to(2), AccountId::new("a"));
        let id = |name: &str| name.parse::<EpisodeId>().unwrap();
        for (name, at) in [("one", 1), ("two", 2), ("one", 3), ("three", 4)] {
            store.kept().open(&(account.clone(), id(name)), &EpisodeLimits::default(), Timestamp(at));
        }
        let is_known = ["one", "two", "three"].map(|name| store.known(&account, &id(name)).is_some());
        assert_eq!(is_known, [true, false, true]);
        assert_eq!(store.kept().episodes_by_age.len(), 2);
    }
}
