//! A database that is only read, while gateways write it.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use sqlx::{Connection, PgConnection, Row};

use crate::audit::VerifyReport;
use crate::journal::{each_record, usage};
use crate::keys::has_account;
use crate::sql::BEGIN_SNAPSHOT;
use crate::{PostgresSettings, StorageError, file};
use stint_ledger::{AccountId, GroupUsage, ResolutionRecord, UsageQuery};

use super::address::PostgresAddress;
use super::migrations::MIGRATIONS;
use super::tools::PostgresTool;
use super::verify::verify;

/// Reading everything may take long, and so may a slow reader at the other end of a pipe.
const SESSION: [(&str, &str); 4] = [
    ("statement_timeout", "0"),
    ("lock_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "0"),
    ("client_min_messages", "warning"),
];

/// A database in PostgreSQL that is read as it was when the reading began, while gateways write it.
#[derive(Debug)]
pub struct PostgresArchive {
    connection: PgConnection,
    address: PostgresAddress,
}

impl PostgresArchive {
    /// Connects to a database whose tables are as this version has them.
    ///
    /// # Errors
    /// When it cannot be reached, or has no books, or is of another version.
    pub async fn open(settings: &PostgresSettings) -> Result<PostgresArchive, StorageError> {
        let mut archive = PostgresArchive::open_any(settings).await?;
        let versions = archive.versions().await.map_err(|source| archive.read_error(source))?;
        let known: Vec<i64> = MIGRATIONS.iter().map(|(version, _, _)| *version).collect();
        match versions.iter().find(|version| !known.contains(version)) {
            Some(&version) => Err(StorageError::Newer { path: archive.address.place.into(), version }),
            None if versions.is_empty() => Err(StorageError::NoBooks(archive.address.place.into())),
            None if versions.len() < known.len() => Err(StorageError::Older(archive.address.place.into())),
            None => Ok(archive),
        }
    }

    /// Connects, whatever is there.
    pub(super) async fn open_any(settings: &PostgresSettings) -> Result<PostgresArchive, StorageError> {
        let address = PostgresAddress::of(&settings.url)?;
        Ok(PostgresArchive { connection: address.connect(&SESSION).await?, address })
    }

    /// What brought the tables up to date; nothing, where there are none.
    pub(super) async fn versions(&mut self) -> Result<Vec<i64>, sqlx::Error> {
        let is_there = sqlx::query_scalar("SELECT to_regclass('_sqlx_migrations') IS NOT NULL");
        if !is_there.fetch_one(&mut self.connection).await? {
            return Ok(Vec::new());
        }
        let sql = "SELECT version FROM _sqlx_migrations WHERE success ORDER BY version";
        sqlx::query_scalar(sql).fetch_all(&mut self.connection).await
    }

    /// The schema that our tables are in, and the first number of the server's version.
    pub(super) async fn home(&mut self) -> Result<(String, i32), StorageError> {
        let sql = "SELECT coalesce(current_schema(), 'public')::text AS schema, \
                          current_setting('server_version_num')::int / 10000 AS version";
        let row = sqlx::query(sql).fetch_one(&mut self.connection).await;
        let read = row.and_then(|row| Ok((row.try_get("schema")?, row.try_get("version")?)));
        read.map_err(|source| self.read_error(source))
    }

    pub(super) fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    pub(super) fn address(&self) -> &PostgresAddress {
        &self.address
    }

    pub(super) fn read_error(&self, source: sqlx::Error) -> StorageError {
        StorageError::Read { path: self.address.place.clone().into(), source }
    }

    /// Recomputes everything from all entries.
    ///
    /// # Errors
    /// When it cannot be read; what differs is in the report.
    pub async fn verify(&mut self) -> Result<VerifyReport, StorageError> {
        let verified = async { verify(&mut *self.connection.begin_with(BEGIN_SNAPSHOT).await?).await };
        verified.await.map_err(|source| self.read_error(source))
    }

    /// What was used, by group, in the order of the groups.
    ///
    /// # Errors
    /// When it cannot be read.
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
    /// When it cannot be read, or what it was shown to fails.
    pub async fn each(
        &mut self,
        show: impl FnMut(&ResolutionRecord) -> io::Result<()>,
    ) -> Result<(), StorageError> {
        let shown =
            async { each_record(&mut *self.connection.begin_with(BEGIN_SNAPSHOT).await?, show).await };
        shown.await.map_err(|source| self.read_error(source))
    }

    /// Writes all that is committed now to a new file in the form of `pg_dump`, which only its owner may read. Returns what
    /// verifying it came to.
    ///
    /// # Errors
    /// When that file exists or cannot be written, or `pg_dump` cannot be had; it is not left there half done.
    pub async fn back_up(&mut self, to: &Path) -> Result<VerifyReport, StorageError> {
        let (schema, version) = self.home().await?;
        PostgresTool::Dump.check(&self.address, version).await?;
        PostgresTool::Restore.check(&self.address, version).await?;
        file::create_new(to).map_err(|source| StorageError::Write { path: to.to_owned(), source })?;
        let done = self.dump(&schema, to).await;
        if done.is_err() {
            // The error of the copy matters more than that of the removal.
            let _ = std::fs::remove_file(to);
        }
        done
    }

    async fn dump(&mut self, schema: &str, to: &Path) -> Result<VerifyReport, StorageError> {
        let place = self.address.place.clone();
        let read_error = |source| StorageError::Read { path: place.clone().into(), source };
        let write_error = |source| StorageError::Write { path: to.to_owned(), source };
        let mut snapshot = self.connection.begin_with(BEGIN_SNAPSHOT).await.map_err(read_error)?;
        // The copy and the verification see the same snapshot.
        let snapshot_name = sqlx::query_scalar::<_, String>("SELECT pg_export_snapshot()");
        let snapshot_name = snapshot_name.fetch_one(&mut *snapshot).await.map_err(read_error)?;
        let arguments = [
            "--format=custom".to_owned(),
            "--no-owner".to_owned(),
            "--no-privileges".to_owned(),
            "--lock-wait-timeout=5s".to_owned(),
            format!("--snapshot={snapshot_name}"),
            format!("--schema={}", quoted(schema)),
        ];
        let file = OpenOptions::new().write(true).open(to).map_err(write_error)?;
        let arguments = arguments.into_iter().map(Into::into).collect();
        PostgresTool::Dump.run(&self.address, arguments, Some(file)).await?;
        file::sync(to).map_err(write_error)?;
        // Reading it to its end finds what the disk did not take.
        let arguments = vec!["--file=/dev/null".into(), to.into()];
        PostgresTool::Restore.run(&self.address, arguments, None).await?;
        verify(&mut snapshot).await.map_err(read_error)
    }
}

/// As a pattern that means this schema alone.
fn quoted(schema: &str) -> String {
    format!("\"{}\"", schema.replace('"', "\"\""))
}
