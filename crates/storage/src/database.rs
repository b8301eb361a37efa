//! An open database, and the stores in it.

use std::sync::Arc;

use stint_ledger::{
    Journal, JournalError, LedgerState, MemoryJournal, QuotaCoordinator, accounts_from_journal,
};
use stint_sessions::agent::conversations::{ConversationStore, MemoryConversations};
use stint_sessions::agent::stored::{MemoryResponses, ResponseStore};
use stint_sessions::agent::{CachedEpisodes, EpisodeStore, MemoryEpisodes};
use stint_sessions::history::{HistoryStore, MemoryHistoryStore};
use stint_sessions::idempotency::{IdempotencyStore, MemoryIdempotencyStore};
use stint_types::tenant::{AccountTerms, KeyStore, MemoryKeyStore};
use stint_types::units::Timestamp;

use super::conversations::SqlConversationStore;
use super::episodes::SqlEpisodeStore;
use super::error::StorageError;
use super::history::SqlHistoryStore;
use super::idempotency::SqlIdempotencyStore;
use super::keys::SqlKeyStore;
#[cfg(feature = "postgres")]
use super::postgres::{ChangeListener, Postgres, PostgresCoordinator, PostgresJournal};
use super::responses::SqlResponseStore;
use super::settings::Settings;
use super::sql::SqlDatabase;
use super::sqlite::{Sqlite, SqliteJournal};
#[cfg(not(feature = "postgres"))]
use super::without_postgres::ChangeListener;

/// An open database. The stores keep in it what they must not lose.
#[derive(Debug, Clone)]
pub enum Database {
    /// Nothing survives the process.
    Memory,
    /// A file of this machine.
    Sqlite(Arc<Sqlite>),
    /// A server, which other replicas may use too.
    #[cfg(feature = "postgres")]
    Postgres(Arc<Postgres>),
}

impl Database {
    /// Opens it, making it and bringing its tables up to date where needed.
    ///
    /// # Errors
    /// When it cannot be used; the error says what to do about it.
    pub async fn open(settings: &Settings) -> Result<Database, StorageError> {
        Ok(match settings {
            Settings::Memory => Database::Memory,
            Settings::Sqlite(settings) => Database::Sqlite(Arc::new(Sqlite::open(settings).await?)),
            #[cfg(feature = "postgres")]
            Settings::Postgres(settings) => Database::Postgres(Arc::new(Postgres::open(settings).await?)),
            #[cfg(not(feature = "postgres"))]
            Settings::Postgres(_) => return Err(StorageError::NoPostgres),
        })
    }

    /// The same for all but the server: they do not bring its tables up to date, since an older server would not know them any more.
    /// One that is not there yet is made.
    ///
    /// # Errors
    /// As `open`'s, and where an older version wrote it.
    pub async fn open_as_it_is(settings: &Settings) -> Result<Database, StorageError> {
        Ok(match settings {
            Settings::Memory => Database::Memory,
            Settings::Sqlite(settings) => Database::Sqlite(Arc::new(Sqlite::open_as_it_is(settings).await?)),
            #[cfg(feature = "postgres")]
            Settings::Postgres(settings) => {
                Database::Postgres(Arc::new(Postgres::open_as_it_is(settings).await?))
            }
            #[cfg(not(feature = "postgres"))]
            Settings::Postgres(_) => return Err(StorageError::NoPostgres),
        })
    }

    /// What hands out leases of the quota windows, where replicas share the accounts.
    pub fn coordinator(&self) -> Option<Arc<dyn QuotaCoordinator>> {
        match self {
            Database::Memory | Database::Sqlite(_) => None,
            #[cfg(feature = "postgres")]
            Database::Postgres(database) => Some(Arc::new(PostgresCoordinator::new(database.clone()))),
        }
    }

    /// The ledger's journal, for a process that shares the accounts with nobody.
    pub fn journal(&self) -> Arc<dyn Journal> {
        match self {
            Database::Memory => Arc::new(MemoryJournal::default()),
            Database::Sqlite(database) => Arc::new(SqliteJournal::new(database.clone())),
            #[cfg(feature = "postgres")]
            Database::Postgres(database) => Arc::new(PostgresJournal::new(database.clone())),
        }
    }

    /// How accounts under these terms stand by the journals of all replicas; and as of when.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn accounts_from_journal(
        &self,
        terms: &[AccountTerms],
    ) -> Result<(LedgerState, Timestamp), JournalError> {
        let (journal, now) = (self.journal(), self.now().await?);
        let open = match self {
            Database::Memory | Database::Sqlite(_) => journal.unresolved().await?,
            #[cfg(feature = "postgres")]
            Database::Postgres(database) => {
                PostgresJournal::new(database.clone()).unresolved_of_all().await?
            }
        };
        Ok((accounts_from_journal(&*journal, &open, terms, now).await?, now))
    }

    /// The time by which what is in it counts: a server's own, else this machine's.
    ///
    /// # Errors
    /// When the server cannot be asked.
    pub async fn now(&self) -> Result<Timestamp, JournalError> {
        match self {
            Database::Memory | Database::Sqlite(_) => Ok(Timestamp::now()),
            #[cfg(feature = "postgres")]
            Database::Postgres(database) => database.now().await,
        }
    }

    /// Keeps the file beside a database's one file (`-wal`) short until then, while others write; nothing where there is none.
    pub async fn run_checkpoints(self, until: impl Future<Output = ()>) {
        match self {
            Database::Sqlite(database) => database.run_checkpoints(until).await,
            Database::Memory => {}
            #[cfg(feature = "postgres")]
            Database::Postgres(_) => {}
        }
    }

    /// At the end: leaves all that was written where a copy of the database's one file has it, where that is one.
    ///
    /// # Errors
    /// When something of it is only in the file beside it, whose name ends in `-wal`. Nothing is lost: who opens the database reads both.
    pub async fn checkpoint(&self) -> Result<(), JournalError> {
        match self {
            Database::Sqlite(database) => database.checkpoint().await,
            Database::Memory => Ok(()),
            #[cfg(feature = "postgres")]
            Database::Postgres(_) => Ok(()),
        }
    }

    /// The notices of other processes' changes, where there are any.
    pub fn change_listener(&self) -> Option<ChangeListener> {
        match self {
            Database::Memory | Database::Sqlite(_) => None,
            #[cfg(feature = "postgres")]
            Database::Postgres(database) => Some(database.listen()),
        }
    }

    /// The keys and terms that were made while the gateway ran.
    pub fn keys(&self) -> Arc<dyn KeyStore> {
        match self.sql() {
            None => Arc::new(MemoryKeyStore::default()),
            Some(database) => Arc::new(SqlKeyStore::new(database)),
        }
    }

    /// The requests that were made with idempotency keys, and their answers.
    pub fn idempotency(&self) -> Arc<dyn IdempotencyStore> {
        match self.sql() {
            None => Arc::new(MemoryIdempotencyStore::default()),
            Some(database) => Arc::new(SqlIdempotencyStore::new(database)),
        }
    }

    /// Responses that callers may continue from.
    pub fn responses(&self) -> Arc<dyn ResponseStore> {
        match self.sql() {
            None => Arc::new(MemoryResponses::default()),
            Some(database) => Arc::new(SqlResponseStore::new(database)),
        }
    }

    /// Conversations that callers come back to.
    pub fn conversations(&self) -> Arc<dyn ConversationStore> {
        match self.sql() {
            None => Arc::new(MemoryConversations::default()),
            Some(database) => Arc::new(SqlConversationStore::new(database)),
        }
    }

    /// Agents' episodes. Where no other process writes them, the latest are cached beside the database.
    pub fn episodes(&self) -> Arc<dyn EpisodeStore> {
        let Some(database) = self.sql() else { return Arc::new(MemoryEpisodes::default()) };
        let store = SqlEpisodeStore::new(database);
        match self {
            #[cfg(feature = "postgres")]
            Database::Postgres(_) => Arc::new(store),
            Database::Memory | Database::Sqlite(_) => Arc::new(CachedEpisodes::new(Arc::new(store))),
        }
    }

    /// Records of requests, verdicts on them, and what was learned.
    pub fn history(&self) -> Arc<dyn HistoryStore> {
        match self.sql() {
            None => Arc::new(MemoryHistoryStore::default()),
            Some(database) => Arc::new(SqlHistoryStore::new(database)),
        }
    }

    fn sql(&self) -> Option<Arc<dyn SqlDatabase>> {
        match self {
            Database::Memory => None,
            Database::Sqlite(database) => Some(database.clone()),
            #[cfg(feature = "postgres")]
            Database::Postgres(database) => Some(database.clone()),
        }
    }
}
