//! The trait `EpisodeStore` for a database.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryFutureExt};

use crate::sql::SqlDatabase;
use stint_sessions::agent::{
    AnsweredStep, BrokenOffStep, EpisodeLength, EpisodeOwner, EpisodeStore, EpisodesError, HistoryHash,
    IdenticalEpisode, StoredEpisode,
};
use stint_types::chat::{EpisodeLimits, EpisodeRaise};
use stint_types::units::{AccountId, EpisodeId, Timestamp};

use super::records::EpisodeRowKey;
use super::{links, records};

/// Episodes in a database.
#[derive(Debug)]
pub(crate) struct SqlEpisodeStore {
    database: Arc<dyn SqlDatabase>,
}

impl SqlEpisodeStore {
    pub(crate) fn new(database: Arc<dyn SqlDatabase>) -> SqlEpisodeStore {
        SqlEpisodeStore { database }
    }

    async fn open_episode(
        &self,
        owner: &EpisodeOwner,
        id: &EpisodeId,
        limits: &EpisodeLimits,
        now: Timestamp,
    ) -> Result<StoredEpisode, sqlx::Error> {
        // Most requests would change nothing about it, and wait for no writer.
        let key = EpisodeRowKey { account: &owner.account, id };
        let found = records::read_episode(key, &mut *self.database.reader().await?).await?;
        let stays = |episode: &StoredEpisode| !owner.owns(episode) || !episode.clone().lower(limits);
        if let Some(episode) = found.filter(stays) {
            return Ok(episode);
        }
        let mut writer = self.database.writer().await?;
        let mut transaction = writer.begin().await?;
        let episode = records::lower_limits(owner, id, limits, now, &mut *transaction).await?;
        transaction.commit().await?;
        Ok(episode)
    }

    async fn raise_episode(
        &self,
        key: EpisodeRowKey<'_>,
        more: &EpisodeRaise,
        now: Timestamp,
    ) -> Result<Option<StoredEpisode>, sqlx::Error> {
        let mut writer = self.database.writer().await?;
        let mut transaction = writer.begin().await?;
        let raised = records::raise_limits(key, more, now, &mut *transaction).await?;
        transaction.commit().await?;
        Ok(raised)
    }

    async fn write_step(&self, step: &AnsweredStep) -> Result<(), sqlx::Error> {
        let mut writer = self.database.writer().await?;
        let mut transaction = writer.begin().await?;
        records::record_step(step, &mut *transaction).await?;
        links::link_step(step, &mut *transaction).await?;
        transaction.commit().await
    }

    async fn write_broken_off(&self, step: &BrokenOffStep) -> Result<(), sqlx::Error> {
        let BrokenOffStep { owner: EpisodeOwner { account, .. }, id, added, .. } = step;
        let mut writer = self.database.writer().await?;
        let mut transaction = writer.begin().await?;
        let key = EpisodeRowKey { account, id };
        if records::record_additions(key, added, &mut *transaction).await? {
            links::link_beginning(step, &mut *transaction).await?;
        }
        transaction.commit().await
    }

    async fn delete_beginning(&self, step: &BrokenOffStep, is_first: bool) -> Result<(), sqlx::Error> {
        let BrokenOffStep { owner: EpisodeOwner { account, .. }, id, added, .. } = step;
        let mut writer = self.database.writer().await?;
        let mut transaction = writer.begin().await?;
        transaction.execute(links::unlink_beginning(step)).await?;
        records::delete_beginning(EpisodeRowKey { account, id }, added, is_first, &mut *transaction).await?;
        transaction.commit().await
    }

    async fn delete_before(&self, before: Timestamp, most: u32) -> Result<u64, sqlx::Error> {
        let before = self.database.by_own_clock(before).await?;
        let mut writer = self.database.writer().await?;
        let links = links::delete_before(before, most, &mut *writer).await?;
        Ok(records::delete_before(before, most, &mut *writer).await?.max(links))
    }

    fn answer<'a, T: 'a>(
        &'a self,
        done: impl Future<Output = Result<T, sqlx::Error>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, EpisodesError>> {
        done.map_err(|source| EpisodesError::caused(self.database.failure(), source)).boxed()
    }
}

impl EpisodeStore for SqlEpisodeStore {
    fn open<'a>(
        &'a self,
        owner: &'a EpisodeOwner,
        id: &'a EpisodeId,
        limits: &'a EpisodeLimits,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<StoredEpisode, EpisodesError>> {
        self.answer(self.open_episode(owner, id, limits, now))
    }

    fn raise<'a>(
        &'a self,
        account: &'a AccountId,
        id: &'a EpisodeId,
        more: &'a EpisodeRaise,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<StoredEpisode>, EpisodesError>> {
        self.answer(self.raise_episode(EpisodeRowKey { account, id }, more, now))
    }

    fn list<'a>(
        &'a self,
        account: Option<&'a AccountId>,
        after: Option<&'a (AccountId, EpisodeId)>,
        most: u32,
    ) -> BoxFuture<'a, Result<Vec<(AccountId, StoredEpisode)>, EpisodesError>> {
        self.answer(async move {
            records::read_list(account, after, most, &mut *self.database.slow_reader().await?).await
        })
    }

    fn recent<'a>(
        &'a self,
        account: Option<&'a AccountId>,
        most: u32,
    ) -> BoxFuture<'a, Result<Vec<(AccountId, StoredEpisode)>, EpisodesError>> {
        self.answer(async move {
            records::read_recent(account, most, &mut *self.database.slow_reader().await?).await
        })
    }

    fn read<'a>(
        &'a self,
        account: &'a AccountId,
        id: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<Option<StoredEpisode>, EpisodesError>> {
        let key = EpisodeRowKey { account, id };
        self.answer(async move { records::read_episode(key, &mut *self.database.reader().await?).await })
    }

    fn find<'a>(
        &'a self,
        owner: &'a EpisodeOwner,
        link: &'a HistoryHash,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Option<EpisodeId>, EpisodesError>> {
        self.answer(
            async move { links::give_out(owner, link, since, &mut *self.database.writer().await?).await },
        )
    }

    fn release<'a>(
        &'a self,
        account: &'a AccountId,
        link: &'a HistoryHash,
        id: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<(), EpisodesError>> {
        let release = links::release(account, link, id);
        self.answer(async move { self.database.writer().await?.execute(release).await.map(drop) })
    }

    fn identical_episodes<'a>(
        &'a self,
        owner: &'a EpisodeOwner,
        link: &'a HistoryHash,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<IdenticalEpisode>, EpisodesError>> {
        self.answer(async move {
            links::read_identical(owner, link, since, &mut *self.database.reader().await?).await
        })
    }

    fn record_step<'a>(&'a self, step: &'a AnsweredStep) -> BoxFuture<'a, Result<(), EpisodesError>> {
        self.answer(self.write_step(step))
    }

    fn record_broken_off<'a>(&'a self, step: &'a BrokenOffStep) -> BoxFuture<'a, Result<(), EpisodesError>> {
        self.answer(self.write_broken_off(step))
    }

    fn take_back<'a>(
        &'a self,
        step: &'a BrokenOffStep,
        is_first: bool,
    ) -> BoxFuture<'a, Result<(), EpisodesError>> {
        self.answer(self.delete_beginning(step, is_first))
    }

    fn episode_lengths(&self, most: u32) -> BoxFuture<'_, Result<Vec<EpisodeLength>, EpisodesError>> {
        self.answer(
            async move { records::read_lengths(most, &mut *self.database.slow_reader().await?).await },
        )
    }

    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, EpisodesError>> {
        self.answer(self.delete_before(before, most))
    }
}
