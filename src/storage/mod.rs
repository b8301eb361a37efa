//! Databases behind the traits of the modules below; the only SQL.

mod answers;
mod archive;
mod books;
mod calls;
mod conversations;
mod episode_limits_row;
mod episodes;
mod error;
mod file;
mod keys;
mod postgres;
mod responses;
mod settings;
mod sqlite;
mod stories;
#[cfg(test)]
mod tests;
mod usage;

use std::sync::Arc;

pub use archive::{Archive, RestoreReport, restore};
pub use books::VerifyReport;
pub use error::StorageError;
pub use postgres::{
    ChangeListener, Postgres, PostgresArchive, PostgresConversations, PostgresCoordinator, PostgresEpisodes,
    PostgresHistoryStore, PostgresIdempotencyStore, PostgresJournal, PostgresKeyStore, PostgresResponses,
};
pub use settings::{DatabaseUrl, PostgresSettings, Settings, SqliteSettings, Synchronous};
pub use sqlite::{
    Sqlite, SqliteArchive, SqliteConversations, SqliteEpisodes, SqliteHistoryStore, SqliteIdempotencyStore,
    SqliteJournal, SqliteKeyStore, SqliteResponses,
};

use crate::agent::conversations::{ConversationStore, MemoryConversations};
use crate::agent::stored::{MemoryResponses, ResponseStore};
use crate::agent::{CachedEpisodes, EpisodeStore, MemoryEpisodes};
use crate::history::{HistoryStore, MemoryHistoryStore};
use crate::idempotency::{IdempotencyStore, MemoryIdempotencyStore};
use crate::ledger::{
    Journal, JournalError, LedgerState, MemoryJournal, QuotaCoordinator, accounts_from_journal,
};
use crate::tenant::{AccountTerms, KeyStore, MemoryKeyStore};
use crate::units::Timestamp;

/// An open database, in which each module below keeps what it must not lose.
#[derive(Debug, Clone)]
pub enum Database {
    /// Nothing survives the process.
    Memory,
    /// A file of this machine.
    Sqlite(Arc<Sqlite>),
    /// A server, which other replicas may use too.
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
            Settings::Postgres(settings) => Database::Postgres(Arc::new(Postgres::open(settings).await?)),
        })
    }

    /// Who hands out slices of the limits, where replicas share the accounts.
    pub fn coordinator(&self) -> Option<Arc<dyn QuotaCoordinator>> {
        match self {
            Database::Memory | Database::Sqlite(_) => None,
            Database::Postgres(database) => Some(Arc::new(PostgresCoordinator::new(database.clone()))),
        }
    }

    /// The ledger's journal, for one that shares the accounts with nobody.
    pub fn journal(&self) -> Arc<dyn Journal> {
        match self {
            Database::Memory => Arc::new(MemoryJournal::default()),
            Database::Sqlite(database) => Arc::new(SqliteJournal::new(database.clone())),
            Database::Postgres(database) => Arc::new(PostgresJournal::new(database.clone())),
        }
    }

    /// How accounts under these terms stand by what is written down, whoever wrote it; and as of when.
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
            Database::Postgres(database) => {
                PostgresJournal::new(database.clone()).unresolved_of_all().await?
            }
        };
        Ok((accounts_from_journal(&*journal, &open, terms, now).await?, now))
    }

    /// The time by which what is in it counts: a server's own, else this machine's.
    ///
    /// # Errors
    /// When the server does not say.
    pub async fn now(&self) -> Result<Timestamp, JournalError> {
        match self {
            Database::Memory | Database::Sqlite(_) => Ok(Timestamp::now()),
            Database::Postgres(database) => database.now().await,
        }
    }

    /// What other processes tell of their changes, where they can.
    pub fn change_listener(&self) -> Option<ChangeListener> {
        match self {
            Database::Memory | Database::Sqlite(_) => None,
            Database::Postgres(database) => Some(database.listen()),
        }
    }

    /// The keys and terms that were made while the gateway ran.
    pub fn keys(&self) -> Arc<dyn KeyStore> {
        match self {
            Database::Memory => Arc::new(MemoryKeyStore::default()),
            Database::Sqlite(database) => Arc::new(SqliteKeyStore::new(database.clone())),
            Database::Postgres(database) => Arc::new(PostgresKeyStore::new(database.clone())),
        }
    }

    /// What idempotency keys stand for.
    pub fn answers(&self) -> Arc<dyn IdempotencyStore> {
        match self {
            Database::Memory => Arc::new(MemoryIdempotencyStore::default()),
            Database::Sqlite(database) => Arc::new(SqliteIdempotencyStore::new(database.clone())),
            Database::Postgres(database) => Arc::new(PostgresIdempotencyStore::new(database.clone())),
        }
    }

    /// Responses that callers may come back to.
    pub fn responses(&self) -> Arc<dyn ResponseStore> {
        match self {
            Database::Memory => Arc::new(MemoryResponses::default()),
            Database::Sqlite(database) => Arc::new(SqliteResponses::new(database.clone())),
            Database::Postgres(database) => Arc::new(PostgresResponses::new(database.clone())),
        }
    }

    /// Conversations that callers come back to.
    pub fn conversations(&self) -> Arc<dyn ConversationStore> {
        match self {
            Database::Memory => Arc::new(MemoryConversations::default()),
            Database::Sqlite(database) => Arc::new(SqliteConversations::new(database.clone())),
            Database::Postgres(database) => Arc::new(PostgresConversations::new(database.clone())),
        }
    }

    /// Runs of agents. Where nobody else writes them, the latest are remembered beside it.
    pub fn episodes(&self) -> Arc<dyn EpisodeStore> {
        match self {
            Database::Memory => Arc::new(MemoryEpisodes::default()),
            Database::Sqlite(database) => {
                Arc::new(CachedEpisodes::new(Arc::new(SqliteEpisodes::new(database.clone()))))
            }
            Database::Postgres(database) => Arc::new(PostgresEpisodes::new(database.clone())),
        }
    }

    /// What decisions leave behind.
    pub fn stories(&self) -> Arc<dyn HistoryStore> {
        match self {
            Database::Memory => Arc::new(MemoryHistoryStore::default()),
            Database::Sqlite(database) => Arc::new(SqliteHistoryStore::new(database.clone())),
            Database::Postgres(database) => Arc::new(PostgresHistoryStore::new(database.clone())),
        }
    }
}
