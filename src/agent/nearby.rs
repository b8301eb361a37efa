//! The latest runs in memory in front of a store that nobody else writes: most steps are answered without asking it.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::chat::{EpisodeLimits, EpisodeRaise};
use crate::units::{AccountId, EpisodeId, Timestamp};

use super::{Course, Episode, Episodes, EpisodesError, Extension, Link, MemoryEpisodes, Twin};

/// A store, and what is known of it without asking. What is written goes through to it.
pub struct NearbyEpisodes {
    near: MemoryEpisodes,
    far: Arc<dyn Episodes>,
}

impl NearbyEpisodes {
    /// In front of a store that only this process writes.
    pub fn new(far: Arc<dyn Episodes>) -> NearbyEpisodes {
        NearbyEpisodes { near: MemoryEpisodes::default(), far }
    }

    async fn opened(
        &self,
        account: &AccountId,
        id: &EpisodeId,
        limits: &EpisodeLimits,
        now: Timestamp,
    ) -> Result<Episode, EpisodesError> {
        if let Some(mut known) = self.near.known(account, id)
            && !known.lower(limits)
        {
            return Ok(known);
        }
        let episode = self.far.open(account, id, limits, now).await?;
        self.near.remember(account, episode.clone());
        Ok(episode)
    }

    async fn raised(
        &self,
        account: &AccountId,
        id: &EpisodeId,
        more: &EpisodeRaise,
        now: Timestamp,
    ) -> Result<Option<Episode>, EpisodesError> {
        let raised = self.far.raise(account, id, more, now).await?;
        if let Some(episode) = &raised {
            self.near.remember(account, episode.clone());
        }
        Ok(raised)
    }

    async fn found(
        &self,
        account: &AccountId,
        link: &Link,
        since: Timestamp,
    ) -> Result<Option<EpisodeId>, EpisodesError> {
        if let Some(fresh) = self.near.hand_out(account, link, since, true) {
            return Ok(Some(fresh));
        }
        // One of before the start may be there that nobody went on from yet.
        let twins = self.far.twins(account, link, since).await?;
        self.near.remember_twins(account, link, twins);
        Ok(self.near.hand_out(account, link, since, false))
    }
}

impl Episodes for NearbyEpisodes {
    fn open<'a>(
        &'a self,
        account: &'a AccountId,
        id: &'a EpisodeId,
        limits: &'a EpisodeLimits,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Episode, EpisodesError>> {
        self.opened(account, id, limits, now).boxed()
    }

    fn raise<'a>(
        &'a self,
        account: &'a AccountId,
        id: &'a EpisodeId,
        more: &'a EpisodeRaise,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Episode>, EpisodesError>> {
        self.raised(account, id, more, now).boxed()
    }

    fn list<'a>(
        &'a self,
        account: Option<&'a AccountId>,
        after: Option<&'a (AccountId, EpisodeId)>,
        most: u32,
    ) -> BoxFuture<'a, Result<Vec<(AccountId, Episode)>, EpisodesError>> {
        self.far.list(account, after, most)
    }

    fn read<'a>(
        &'a self,
        account: &'a AccountId,
        id: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<Option<Episode>, EpisodesError>> {
        match self.near.known(account, id) {
            Some(known) => std::future::ready(Ok(Some(known))).boxed(),
            None => self.far.read(account, id),
        }
    }

    fn find<'a>(
        &'a self,
        account: &'a AccountId,
        link: &'a Link,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Option<EpisodeId>, EpisodesError>> {
        self.found(account, link, since).boxed()
    }

    fn release<'a>(
        &'a self,
        account: &'a AccountId,
        link: &'a Link,
        id: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<(), EpisodesError>> {
        // The store behind it was not told that it was handed out.
        self.near.take_back(account, link, id);
        std::future::ready(Ok(())).boxed()
    }

    fn twins<'a>(
        &'a self,
        account: &'a AccountId,
        link: &'a Link,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<Twin>, EpisodesError>> {
        self.far.twins(account, link, since)
    }

    fn extend<'a>(&'a self, step: &'a Extension) -> BoxFuture<'a, Result<(), EpisodesError>> {
        self.near.step(step);
        self.far.extend(step)
    }

    fn courses(&self, most: u32) -> BoxFuture<'_, Result<Vec<Course>, EpisodesError>> {
        self.far.courses(most)
    }

    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, EpisodesError>> {
        self.near.forget(before, usize::try_from(most).unwrap_or(usize::MAX));
        self.far.purge(before, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::conformance;

    #[tokio::test]
    async fn runs_that_are_remembered_conform_too() {
        conformance::conforms(&NearbyEpisodes::new(Arc::new(MemoryEpisodes::default()))).await;
    }

    #[tokio::test]
    async fn after_a_start_the_store_says_what_was_before() {
        let far: Arc<dyn Episodes> = Arc::new(MemoryEpisodes::default());
        conformance::limits_are_only_lowered(&NearbyEpisodes::new(far.clone()), "before").await;
        let again = NearbyEpisodes::new(far);
        conformance::limits_stay(&again, "before").await;
    }
}
