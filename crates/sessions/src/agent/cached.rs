//! Keeps the latest episodes in memory in front of a store that no other process writes. Most steps need not ask the store.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use stint_types::chat::{EpisodeLimits, EpisodeRaise};
use stint_types::units::{AccountId, EpisodeId, Timestamp};

use super::{
    AnsweredStep, BrokenOffStep, EpisodeLength, EpisodeOwner, EpisodeStore, EpisodesError, HistoryHash,
    IdenticalEpisode, MemoryEpisodes, StoredEpisode,
};

/// A store, and what is known of it without asking. What is written goes through to it.
pub struct CachedEpisodes {
    cache: MemoryEpisodes,
    store: Arc<dyn EpisodeStore>,
}

impl CachedEpisodes {
    /// In front of a store that only this process writes.
    pub fn new(store: Arc<dyn EpisodeStore>) -> CachedEpisodes {
        CachedEpisodes { cache: MemoryEpisodes::default(), store }
    }

    async fn open_cached(
        &self,
        owner: &EpisodeOwner,
        id: &EpisodeId,
        limits: &EpisodeLimits,
        now: Timestamp,
    ) -> Result<StoredEpisode, EpisodesError> {
        if let Some(mut known) = self.cache.known(&owner.account, id)
            && (!owner.owns(&known) || !known.lower(limits))
        {
            return Ok(known);
        }
        let episode = self.store.open(owner, id, limits, now).await?;
        self.cache.remember(&owner.account, episode.clone());
        Ok(episode)
    }

    async fn raise_through(
        &self,
        account: &AccountId,
        id: &EpisodeId,
        more: &EpisodeRaise,
        now: Timestamp,
    ) -> Result<Option<StoredEpisode>, EpisodesError> {
        let raised = self.store.raise(account, id, more, now).await?;
        if let Some(episode) = &raised {
            self.cache.remember(account, episode.clone());
        }
        Ok(raised)
    }

    async fn find_cached(
        &self,
        owner: &EpisodeOwner,
        link: &HistoryHash,
        since: Timestamp,
    ) -> Result<Option<EpisodeId>, EpisodesError> {
        if let Some(fresh) = self.cache.check_out(owner, link, since, true) {
            return Ok(Some(fresh));
        }
        // One of before the start may be there that nobody went on from yet.
        let identical = self.store.identical_episodes(owner, link, since).await?;
        self.cache.remember_identical(&owner.account, link, identical);
        Ok(self.cache.check_out(owner, link, since, false))
    }
}

impl EpisodeStore for CachedEpisodes {
    fn open<'a>(
        &'a self,
        owner: &'a EpisodeOwner,
        id: &'a EpisodeId,
        limits: &'a EpisodeLimits,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<StoredEpisode, EpisodesError>> {
        self.open_cached(owner, id, limits, now).boxed()
    }

    fn raise<'a>(
        &'a self,
        account: &'a AccountId,
        id: &'a EpisodeId,
        more: &'a EpisodeRaise,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<StoredEpisode>, EpisodesError>> {
        self.raise_through(account, id, more, now).boxed()
    }

    fn list<'a>(
        &'a self,
        account: Option<&'a AccountId>,
        after: Option<&'a (AccountId, EpisodeId)>,
        most: u32,
    ) -> BoxFuture<'a, Result<Vec<(AccountId, StoredEpisode)>, EpisodesError>> {
        self.store.list(account, after, most)
    }

    fn recent<'a>(
        &'a self,
        account: Option<&'a AccountId>,
        most: u32,
    ) -> BoxFuture<'a, Result<Vec<(AccountId, StoredEpisode)>, EpisodesError>> {
        self.store.recent(account, most)
    }

    fn read<'a>(
        &'a self,
        account: &'a AccountId,
        id: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<Option<StoredEpisode>, EpisodesError>> {
        match self.cache.known(account, id) {
            Some(known) => std::future::ready(Ok(Some(known))).boxed(),
            None => self.store.read(account, id),
        }
    }

    fn find<'a>(
        &'a self,
        owner: &'a EpisodeOwner,
        link: &'a HistoryHash,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Option<EpisodeId>, EpisodesError>> {
        self.find_cached(owner, link, since).boxed()
    }

    fn release<'a>(
        &'a self,
        account: &'a AccountId,
        link: &'a HistoryHash,
        id: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<(), EpisodesError>> {
        // The store behind it does not know that the episode was handed out.
        self.cache.undo_check_out(account, link, id);
        std::future::ready(Ok(())).boxed()
    }

    fn identical_episodes<'a>(
        &'a self,
        owner: &'a EpisodeOwner,
        link: &'a HistoryHash,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<IdenticalEpisode>, EpisodesError>> {
        self.store.identical_episodes(owner, link, since)
    }

    fn record_step<'a>(&'a self, step: &'a AnsweredStep) -> BoxFuture<'a, Result<(), EpisodesError>> {
        self.cache.note_step(step);
        self.store.record_step(step)
    }

    fn record_broken_off<'a>(&'a self, step: &'a BrokenOffStep) -> BoxFuture<'a, Result<(), EpisodesError>> {
        self.cache.note_broken_off(step);
        self.store.record_broken_off(step)
    }

    fn take_back<'a>(
        &'a self,
        step: &'a BrokenOffStep,
        is_first: bool,
    ) -> BoxFuture<'a, Result<(), EpisodesError>> {
        self.cache.note_taken_back(step, is_first);
        self.store.take_back(step, is_first)
    }

    fn episode_lengths(&self, most: u32) -> BoxFuture<'_, Result<Vec<EpisodeLength>, EpisodesError>> {
        self.store.episode_lengths(most)
    }

    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, EpisodesError>> {
        self.cache.forget(before, usize::try_from(most).unwrap_or(usize::MAX));
        self.store.purge(before, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::conformance;

    #[tokio::test]
    async fn runs_that_are_remembered_conform_too() {
        conformance::conforms(&CachedEpisodes::new(Arc::new(MemoryEpisodes::default()))).await;
    }

    #[tokio::test]
    async fn after_a_start_the_store_says_what_was_before() {
        let store: Arc<dyn EpisodeStore> = Arc::new(MemoryEpisodes::default());
        conformance::limits_are_only_lowered(&CachedEpisodes::new(store.clone()), "before").await;
        let again = CachedEpisodes::new(store);
        conformance::limits_stay(&again, "before").await;
    }
}
