//! Runs of agents, in `SQLite`.

use std::sync::Arc;

use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Sqlite as Kind, SqliteConnection};
use tokio::sync::MutexGuard;

use crate::agent::{AnsweredStep, EpisodeLength, HistoryHash, IdenticalEpisode, StoredEpisode};
use crate::chat::{EpisodeLimits, EpisodeRaise};
use crate::storage::episodes::{episode_statements, episode_store};
use crate::units::{AccountId, EpisodeId, Timestamp};

use super::Sqlite;

episode_statements!(Kind, SqliteArguments, SqliteConnection, SqliteRow);
episode_store!(SqliteEpisodes);

/// Only one connection writes, so nobody else hands out the same.
const HAND_OUT: &str = "\
    UPDATE episode_links SET continued = continued + 1 \
    WHERE account = $1 AND link = $2 AND episode = \
        (SELECT episode FROM episode_links WHERE account = $1 AND link = $2 AND at >= $3 \
         ORDER BY continued, at DESC, episode LIMIT 1) \
    RETURNING episode";

/// Runs in a `SQLite` file.
#[derive(Debug)]
pub struct SqliteEpisodes {
    database: Arc<Sqlite>,
}

impl SqliteEpisodes {
    /// The runs of this file.
    pub fn new(database: Arc<Sqlite>) -> SqliteEpisodes {
        SqliteEpisodes { database }
    }

    async fn reader(&self) -> Result<MutexGuard<'_, SqliteConnection>, sqlx::Error> {
        Ok(self.database.reader().await)
    }

    async fn slow_reader(&self) -> Result<MutexGuard<'_, SqliteConnection>, sqlx::Error> {
        Ok(self.database.slow_reader().await)
    }

    async fn writer(&self) -> Result<MutexGuard<'_, SqliteConnection>, sqlx::Error> {
        self.database.writer().await
    }

    async fn begin(
        &self,
        run: (&AccountId, &EpisodeId),
        limits: &EpisodeLimits,
        now: Timestamp,
    ) -> Result<StoredEpisode, sqlx::Error> {
        if let Some(episode) = unchanged(run, limits, &mut *self.reader().await?).await? {
            return Ok(episode);
        }
        let mut writer = self.database.writer().await?;
        let mut transaction = self.database.begin(&mut writer).await?;
        let episode = lower_limits(READ, run, limits, now, &mut transaction).await?;
        transaction.commit().await?;
        Ok(episode)
    }

    async fn hand_out(
        &self,
        account: &AccountId,
        link: &HistoryHash,
        since: Timestamp,
    ) -> Result<Option<EpisodeId>, sqlx::Error> {
        let query = sqlx::query(HAND_OUT).bind(account.as_str()).bind(link.0.to_vec()).bind(since.0);
        // To the end: what fails after the first row, as the commit may, is told only to who reads on.
        let rows = query.fetch_all(&mut *self.database.writer().await?).await?;
        rows.first().map(|row| row.try_get::<&str, _>("episode")?.parse().map_err(decode)).transpose()
    }

    async fn commit_step(&self, step: &AnsweredStep) -> Result<(), sqlx::Error> {
        let mut writer = self.database.writer().await?;
        let mut transaction = self.database.begin(&mut writer).await?;
        write_step(step, &mut transaction).await?;
        transaction.commit().await
    }

    async fn commit_raise(
        &self,
        run: (&AccountId, &EpisodeId),
        more: &EpisodeRaise,
        now: Timestamp,
    ) -> Result<Option<StoredEpisode>, sqlx::Error> {
        let mut writer = self.database.writer().await?;
        let mut transaction = self.database.begin(&mut writer).await?;
        let raised = raise_limits(READ, run, more, now, &mut transaction).await?;
        transaction.commit().await?;
        Ok(raised)
    }

    fn failed(&self, source: sqlx::Error) -> EpisodesError {
        EpisodesError::caused(
            format!("the database {} failed", self.database.settings.path.display()),
            source,
        )
    }
}
