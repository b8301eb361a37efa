//! Runs of agents, in PostgreSQL.

use std::sync::Arc;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{PgConnection, Postgres as Kind};

use crate::agent::{AnsweredStep, EpisodeLength, HistoryHash, IdenticalEpisode, StoredEpisode};
use crate::chat::{EpisodeLimits, EpisodeRaise};
use crate::storage::episodes::{episode_statements, episode_store};
use crate::units::{AccountId, EpisodeId, Timestamp};

use super::Postgres;

episode_statements!(Kind, PgArguments, PgConnection, PgRow);
episode_store!(PostgresEpisodes);

/// Until the transaction ends, nobody else lowers them.
const LOCK: &str = "\
    SELECT id, limits, model, class, context, reading, ended, route_used, route_most, steps, used_at \
    FROM episodes WHERE account = $1 AND id = $2 FOR UPDATE";

/// Whoever asks at the same moment is handed another one, where there is one. A row that was handed out meanwhile is looked at
/// again, by this condition alone and not by its place in the order: so it must say that nobody has had it.
const HAND_OUT: &str = "\
    UPDATE episode_links SET continued = continued + 1 \
    WHERE account = $1 AND link = $2 AND episode = \
        (SELECT episode FROM episode_links \
         WHERE account = $1 AND link = $2 AND at >= $3 AND continued = 0 \
         ORDER BY at DESC, episode LIMIT 1 FOR UPDATE SKIP LOCKED) \
    RETURNING episode";

/// Where all were handed out, the one that was least often.
const HAND_OUT_ANY: &str = "\
    UPDATE episode_links SET continued = continued + 1 \
    WHERE account = $1 AND link = $2 AND episode = \
        (SELECT episode FROM episode_links WHERE account = $1 AND link = $2 AND at >= $3 \
         ORDER BY continued, at DESC, episode LIMIT 1) \
    RETURNING episode";

/// Runs in a PostgreSQL database, which all replicas share.
#[derive(Debug)]
pub struct PostgresEpisodes {
    database: Arc<Postgres>,
}

impl PostgresEpisodes {
    /// The runs of this database.
    pub fn new(database: Arc<Postgres>) -> PostgresEpisodes {
        PostgresEpisodes { database }
    }

    async fn reader(&self) -> Result<PoolConnection<Kind>, sqlx::Error> {
        self.database.pool.acquire().await
    }

    async fn slow_reader(&self) -> Result<PoolConnection<Kind>, sqlx::Error> {
        self.reader().await
    }

    async fn writer(&self) -> Result<PoolConnection<Kind>, sqlx::Error> {
        self.reader().await
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
        let mut transaction = self.database.pool.begin().await?;
        let episode = lower_limits(LOCK, run, limits, now, &mut transaction).await?;
        transaction.commit().await?;
        Ok(episode)
    }

    async fn hand_out(
        &self,
        account: &AccountId,
        link: &HistoryHash,
        since: Timestamp,
    ) -> Result<Option<EpisodeId>, sqlx::Error> {
        let mut connection = self.writer().await?;
        for statement in [HAND_OUT, HAND_OUT_ANY] {
            let query = sqlx::query(statement).bind(account.as_str()).bind(link.0.to_vec());
            if let Some(row) = query.bind(since.0).fetch_optional(&mut *connection).await? {
                return row.try_get::<&str, _>("episode")?.parse().map(Some).map_err(decode);
            }
        }
        Ok(None)
    }

    async fn commit_step(&self, step: &AnsweredStep) -> Result<(), sqlx::Error> {
        let mut transaction = self.database.pool.begin().await?;
        write_step(step, &mut transaction).await?;
        transaction.commit().await
    }

    async fn commit_raise(
        &self,
        run: (&AccountId, &EpisodeId),
        more: &EpisodeRaise,
        now: Timestamp,
    ) -> Result<Option<StoredEpisode>, sqlx::Error> {
        let mut transaction = self.database.pool.begin().await?;
        let raised = raise_limits(LOCK, run, more, now, &mut transaction).await?;
        transaction.commit().await?;
        Ok(raised)
    }

    fn failed(&self, source: sqlx::Error) -> EpisodesError {
        EpisodesError::caused(format!("the database {} failed", self.database.place), source)
    }
}
