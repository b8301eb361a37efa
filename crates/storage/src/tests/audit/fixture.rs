//! Books of a test: in a file, or in a server's database.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, SqliteConnection};
use tempfile::TempDir;

use crate::tests::cluster::cluster;
use crate::tests::{patiently, settings};
use crate::{Archive, Database, DatabaseUrl, PostgresSettings, Settings, VerifyReport};
use stint_ledger::Journal;
use stint_types::tenant::AuditEntry;
use stint_types::units::Timestamp;

/// Books of one test.
pub(super) struct BooksFixture {
    /// For a file, and for backups.
    folder: TempDir,
    url: Option<String>,
}

/// Entries are fixed by these.
const FIXED: [&str; 7] =
    ["reservations", "extensions", "meterings", "resolutions", "resolution_parts", "seals", "admin_changes"];

/// Takes every constraint away, as somebody could who owns the tables.
const UNCHECKED: &str = "\
    SET session_replication_role = replica; \
    DO $$ DECLARE one record; BEGIN \
        FOR one IN SELECT conrelid::regclass AS place, conname AS name FROM pg_constraint \
                   WHERE connamespace = 'public'::regnamespace AND contype IN ('c', 'f', 'u') LOOP \
            EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', one.place, one.name); \
        END LOOP; \
    END $$";

impl BooksFixture {
    pub(super) fn file() -> BooksFixture {
        BooksFixture { folder: tempfile::tempdir().unwrap(), url: None }
    }

    pub(super) fn server() -> BooksFixture {
        BooksFixture { folder: tempfile::tempdir().unwrap(), url: Some(cluster().database()) }
    }

    pub(super) fn is_server(&self) -> bool {
        self.url.is_some()
    }

    /// Where the server's database is.
    pub(super) fn url(&self) -> &str {
        self.url.as_deref().unwrap()
    }

    /// One of each kind.
    pub(super) fn both() -> [BooksFixture; 2] {
        [BooksFixture::file(), BooksFixture::server()]
    }

    pub(super) fn settings(&self) -> Settings {
        match &self.url {
            None => Settings::Sqlite(settings(&self.path("stint.db"))),
            Some(url) => Settings::Postgres(PostgresSettings {
                url: DatabaseUrl::new(url),
                lease: Duration::from_secs(10),
            }),
        }
    }

    /// The same database, where our tables are in a schema of their own.
    pub(super) async fn in_schema(&self, name: &str) -> Settings {
        let url = self.url.as_deref().unwrap();
        let mut connection = PgConnection::connect(url).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE SCHEMA {name}"))).execute(&mut connection).await.unwrap();
        let url = DatabaseUrl::new(format!("{url}?options[search_path]={name}"));
        Settings::Postgres(PostgresSettings { url, lease: Duration::from_secs(10) })
    }

    /// A path in a folder of its own.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) async fn journal(&self) -> Arc<dyn Journal> {
        patiently(async || Database::open(&self.settings()).await).await.journal()
    }

    pub(super) async fn archive(&self) -> Archive {
        Archive::open(&self.settings()).await.unwrap()
    }

    pub(super) async fn verify(&self) -> VerifyReport {
        self.archive().await.verify().await.unwrap()
    }

    /// So many changes of admins.
    pub(super) async fn keep_changes(&self, count: usize) {
        let keys = patiently(async || Database::open(&self.settings()).await).await.keys();
        let entry = |number: usize| AuditEntry {
            at: Timestamp(1_000),
            who: "token".to_owned(),
            action: "key.change".to_owned(),
            subject: format!("acme/{number}"),
            before: None,
            after: Some("{}".to_owned()),
        };
        keys.append_audit(&(0..count).map(entry).collect::<Vec<_>>()).await.unwrap();
    }

    /// Does something that must be refused; returns in which words.
    pub(super) async fn refusal(&self, sql: String) -> String {
        let refused = match &self.url {
            None => sqlx::query(AssertSqlSafe(sql)).execute(&mut self.connect().await).await.map(drop),
            Some(url) => {
                let mut connection = PgConnection::connect(url).await.unwrap();
                sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await.map(drop)
            }
        };
        refused.unwrap_err().to_string()
    }

    async fn connect(&self) -> SqliteConnection {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(self.path("stint.db"));
        options.foreign_keys(false).connect().await.unwrap()
    }

    /// Changes the books behind the ledger's back.
    pub(super) async fn tamper(&self, sql: &'static str) {
        if let Some(url) = &self.url {
            let mut connection = PgConnection::connect(url).await.unwrap();
            sqlx::raw_sql(UNCHECKED).execute(&mut connection).await.unwrap();
            sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
            return connection.close().await.unwrap();
        }
        let mut connection = self.connect().await;
        for table in FIXED {
            for trigger in ["kept", "fixed"] {
                let drop = format!("DROP TRIGGER IF EXISTS {table}_{trigger}");
                sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut connection).await.unwrap();
            }
        }
        let unchecked = "PRAGMA ignore_check_constraints = ON";
        sqlx::raw_sql(unchecked).execute(&mut connection).await.unwrap();
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }
}
