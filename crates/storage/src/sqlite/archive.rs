//! A file that is only read, whether a server writes it at the same time or not.

use std::io;
use std::path::{Path, PathBuf};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, Row, SqliteConnection};

use crate::audit::VerifyReport;
use crate::fault::fault_of;
use crate::journal::{each_record, usage};
use crate::keys::has_account;
use crate::{StorageError, file};
use stint_ledger::{AccountId, DatabaseFault, GroupUsage, ResolutionRecord, UsageQuery};

use super::database::BUSY_MAX;
use super::migrations::MIGRATIONS;
use super::verify::verify;

/// A `SQLite` file that is read without its lock, while a server may write it. What is read is what was committed when the
/// reading began.
#[derive(Debug)]
pub struct SqliteArchive {
    connection: SqliteConnection,
    path: PathBuf,
}

impl SqliteArchive {
    /// Opens a file whose tables are as this version has them.
    ///
    /// # Errors
    /// When it is not there, or is none of ours, or of another version.
    pub async fn open(path: &Path) -> Result<SqliteArchive, StorageError> {
        let is_nothing = |file: std::fs::Metadata| file.is_file() && file.len() == 0;
        if !path.exists() || path.metadata().is_ok_and(is_nothing) {
            return Err(StorageError::NoBooks(path.to_owned()));
        }
        let mut archive = SqliteArchive::open_any_version(path).await?;
        let versions = archive.versions().await.map_err(|source| archive.open_error(source))?;
        let known: Vec<i64> = MIGRATIONS.iter().map(|(version, _, _)| *version).collect();
        if let Some(&version) = versions.iter().find(|version| !known.contains(version)) {
            return Err(StorageError::Newer { path: path.to_owned(), version });
        }
        if versions.len() == known.len() { Ok(archive) } else { Err(StorageError::Older(path.to_owned())) }
    }

    pub(crate) async fn open_any_version(path: &Path) -> Result<SqliteArchive, StorageError> {
        let opened = SqliteConnectOptions::new()
            .filename(path)
            .read_only(true)
            .busy_timeout(BUSY_MAX)
            .disable_statement_logging()
            .connect()
            .await;
        let path = path.to_owned();
        match opened {
            Ok(connection) => Ok(SqliteArchive { connection, path }),
            Err(source) => Err(StorageError::Open { path, source }),
        }
    }

    #[cfg(feature = "postgres")]
    pub(super) fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }

    /// True if some version of Stint made its tables. An empty file is a database too, without any.
    pub(super) async fn has_migrations(&mut self) -> Result<bool, StorageError> {
        let sql = "SELECT count(*) FROM sqlite_master WHERE name = '_sqlx_migrations'";
        let found: Result<i64, sqlx::Error> = sqlx::query_scalar(sql).fetch_one(&mut self.connection).await;
        match found {
            Ok(tables) => Ok(tables > 0),
            Err(source) if fault_of(&source) == Some(DatabaseFault::Damaged) => {
                Err(StorageError::Broken { path: self.path.clone(), source })
            }
            Err(source) => Err(self.read_error(source)),
        }
    }

    async fn versions(&mut self) -> Result<Vec<i64>, sqlx::Error> {
        let sql = "SELECT version FROM _sqlx_migrations WHERE success ORDER BY version";
        let rows = sqlx::query(sql).fetch_all(&mut self.connection).await?;
        rows.iter().map(|row| row.try_get(0)).collect()
    }

    fn open_error(&self, source: sqlx::Error) -> StorageError {
        StorageError::Open { path: self.path.clone(), source }
    }

    fn read_error(&self, source: sqlx::Error) -> StorageError {
        StorageError::Read { path: self.path.clone(), source }
    }

    fn copy_error(&self, source: sqlx::Error, to: &Path) -> StorageError {
        match fault_of(&source) {
            Some(DatabaseFault::Damaged) => StorageError::Broken { path: self.path.clone(), source },
            _ => StorageError::Copy { path: to.to_owned(), source },
        }
    }

    /// Recomputes everything from all entries.
    ///
    /// # Errors
    /// When the file cannot be read; what differs is in the report.
    pub async fn verify(&mut self) -> Result<VerifyReport, StorageError> {
        let verified = async { verify(&mut *self.connection.begin().await?).await };
        verified.await.map_err(|source| self.read_error(source))
    }

    /// Writes all that is committed now to a new file, for its owner's eyes only.
    ///
    /// # Errors
    /// When that file exists, or cannot be written; it is not left there half done.
    pub async fn back_up(&mut self, to: &Path) -> Result<(), StorageError> {
        let write_error = |source| StorageError::Write { path: to.to_owned(), source };
        file::create_new(to).map_err(write_error)?;
        let name = to.to_string_lossy().into_owned();
        let copied = sqlx::query("VACUUM INTO ?").bind(name).execute(&mut self.connection).await;
        let copied = copied.map_err(|source| self.copy_error(source, to));
        let safe = copied.and_then(|_| file::sync(to).map_err(write_error));
        if safe.is_err() {
            // The error of the copy matters more than that of the removal.
            let _ = std::fs::remove_file(to);
        }
        safe
    }

    /// What was used, by group, in the order of the groups.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub async fn usage(&mut self, query: &UsageQuery) -> Result<Vec<GroupUsage>, StorageError> {
        usage(query, &mut self.connection).await.map_err(|source| self.read_error(source))
    }

    /// True if it names an account, or one below it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn has_account(&mut self, account: &AccountId) -> Result<bool, StorageError> {
        has_account(account, &mut self.connection).await.map_err(|source| self.read_error(source))
    }

    /// Shows every resolution with all that led to it, in their order, as they were when it began.
    ///
    /// # Errors
    /// When the file cannot be read, or what it was shown to fails.
    pub async fn each(
        &mut self,
        show: impl FnMut(&ResolutionRecord) -> io::Result<()>,
    ) -> Result<(), StorageError> {
        let shown = async { each_record(&mut *self.connection.begin().await?, show).await };
        shown.await.map_err(|source| self.read_error(source))
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// When the connection cannot be closed.
    pub async fn close(self) -> Result<(), StorageError> {
        let SqliteArchive { connection, path } = self;
        connection.close().await.map_err(|source| StorageError::Read { path, source })
    }
}
