//! What decisions leave behind, in `SQLite`.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Sqlite as Kind, SqliteConnection};

use crate::catalog::Verdict;
use crate::history::{HistoryStore, HistoryStoreError, ReplicaId, ReplicaState, RequestRecord};
use crate::storage::stories::story_statements;
use crate::units::{RequestId, Timestamp};

use super::Sqlite;

story_statements!(Kind, SqliteArguments, SqliteConnection, SqliteRow);

/// Stories in a `SQLite` file.
#[derive(Debug)]
pub struct SqliteHistoryStore {
    database: Arc<Sqlite>,
}

impl SqliteHistoryStore {
    /// The stories of this file.
    pub fn new(database: Arc<Sqlite>) -> SqliteHistoryStore {
        SqliteHistoryStore { database }
    }

    async fn commit_stories(&self, stories: &[Arc<RequestRecord>]) -> Result<(), sqlx::Error> {
        let mut writer = self.database.writer().await?;
        let mut transaction = self.database.begin(&mut writer).await?;
        write_stories(stories, &mut transaction).await?;
        transaction.commit().await
    }

    async fn read(&self, id: RequestId, since: Timestamp) -> Result<Option<RequestRecord>, sqlx::Error> {
        read_story(id, since, &mut *self.database.reader().await).await
    }

    async fn commit_verdict(&self, verdict: &Verdict) -> Result<Option<Verdict>, sqlx::Error> {
        let mut writer = self.database.writer().await?;
        let mut transaction = self.database.begin(&mut writer).await?;
        let before = write_verdict(verdict, &mut transaction).await?;
        transaction.commit().await?;
        Ok(before)
    }

    async fn read_learned(&self) -> Result<Vec<ReplicaState>, sqlx::Error> {
        let rows = sqlx::query(LEARNED).fetch_all(&mut *self.database.reader().await).await?;
        rows.iter().map(saved).collect()
    }

    async fn commit_learned(&self, own: &ReplicaState, gone: &[ReplicaState]) -> Result<bool, sqlx::Error> {
        let mut writer = self.database.writer().await?;
        let mut transaction = self.database.begin(&mut writer).await?;
        let is_done = write_learned(own, gone, &mut transaction).await?;
        if is_done {
            transaction.commit().await?;
        } else {
            transaction.rollback().await?;
        }
        Ok(is_done)
    }

    async fn read_bound(&self, most: u32) -> Result<Option<Timestamp>, sqlx::Error> {
        read_beyond(most, &mut *self.database.reader().await).await
    }

    async fn delete(&self, before: Timestamp, most: u32) -> Result<u64, sqlx::Error> {
        delete_before(before, most, &mut *self.database.writer().await?).await
    }

    async fn forget(&self, replica: &ReplicaId) -> Result<(), sqlx::Error> {
        let query = sqlx::query(UNLEARN).bind(replica.as_str().to_owned());
        run(query, &mut *self.database.writer().await?).await.map(drop)
    }

    fn failed(&self, source: sqlx::Error) -> HistoryStoreError {
        HistoryStoreError::caused(
            format!("the database {} failed", self.database.settings.path.display()),
            source,
        )
    }
}

impl HistoryStore for SqliteHistoryStore {
    fn insert<'a>(
        &'a self,
        stories: &'a [Arc<RequestRecord>],
    ) -> BoxFuture<'a, Result<(), HistoryStoreError>> {
        async move { self.commit_stories(stories).await.map_err(|source| self.failed(source)) }.boxed()
    }

    fn find(
        &self,
        id: RequestId,
        since: Timestamp,
    ) -> BoxFuture<'_, Result<Option<RequestRecord>, HistoryStoreError>> {
        async move { self.read(id, since).await.map_err(|source| self.failed(source)) }.boxed()
    }

    fn set_verdict<'a>(
        &'a self,
        verdict: &'a Verdict,
    ) -> BoxFuture<'a, Result<Option<Verdict>, HistoryStoreError>> {
        async move { self.commit_verdict(verdict).await.map_err(|source| self.failed(source)) }.boxed()
    }

    fn retention_cutoff(&self, most: u32) -> BoxFuture<'_, Result<Option<Timestamp>, HistoryStoreError>> {
        async move { self.read_bound(most).await.map_err(|source| self.failed(source)) }.boxed()
    }

    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, HistoryStoreError>> {
        async move { self.delete(before, most).await.map_err(|source| self.failed(source)) }.boxed()
    }

    fn replica_states(&self) -> BoxFuture<'_, Result<Vec<ReplicaState>, HistoryStoreError>> {
        async move { self.read_learned().await.map_err(|source| self.failed(source)) }.boxed()
    }

    fn save_state<'a>(
        &'a self,
        own: &'a ReplicaState,
        in_place_of: &'a [ReplicaState],
    ) -> BoxFuture<'a, Result<bool, HistoryStoreError>> {
        async move { self.commit_learned(own, in_place_of).await.map_err(|source| self.failed(source)) }
            .boxed()
    }

    fn delete_state<'a>(&'a self, replica: &'a ReplicaId) -> BoxFuture<'a, Result<(), HistoryStoreError>> {
        async move { self.forget(replica).await.map_err(|source| self.failed(source)) }.boxed()
    }
}
