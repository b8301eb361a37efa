//! Databases behind the traits of the modules below; the only SQL.

mod answers;
mod archive;
mod books;
mod calls;
mod conversations;
mod episode_row;
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

pub use archive::{Archive, Restored, restore};
pub use books::Report;
pub use error::StorageError;
pub use postgres::{
    Changes, Postgres, PostgresAnswers, PostgresArchive, PostgresBank, PostgresConversations,
    PostgresEpisodes, PostgresJournal, PostgresKeyStore, PostgresResponses, PostgresStories,
};
pub use settings::{DatabaseUrl, PostgresSettings, Settings, SqliteSettings, Synchronous};
pub use sqlite::{
    Sqlite, SqliteAnswers, SqliteArchive, SqliteConversations, SqliteEpisodes, SqliteJournal, SqliteKeyStore,
    SqliteResponses, SqliteStories,
};

use crate::agent::conversations::{Conversations, MemoryConversations};
use crate::agent::stored::{MemoryResponses, Responses};
use crate::agent::{Episodes, MemoryEpisodes, NearbyEpisodes};
use crate::history::{MemoryStories, Stories};
use crate::idempotency::{Answers, MemoryAnswers};
use crate::ledger::{Accounts, Bank, Journal, JournalError, MemoryJournal, standing};
use crate::tenant::{KeyStore, MemoryKeyStore, Terms};
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
    pub fn bank(&self) -> Option<Arc<dyn Bank>> {
        match self {
            Database::Memory | Database::Sqlite(_) => None,
            Database::Postgres(database) => Some(Arc::new(PostgresBank::new(database.clone()))),
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
    pub async fn standing(&self, terms: &[Terms]) -> Result<(Accounts, Timestamp), JournalError> {
        let (journal, now) = (self.journal(), self.now().await?);
        let open = match self {
            Database::Memory | Database::Sqlite(_) => journal.unresolved().await?,
            Database::Postgres(database) => {
                PostgresJournal::new(database.clone()).unresolved_of_all().await?
            }
        };
        Ok((standing(&*journal, &open, terms, now).await?, now))
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
    pub fn changes(&self) -> Option<Changes> {
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
    pub fn answers(&self) -> Arc<dyn Answers> {
        match self {
            Database::Memory => Arc::new(MemoryAnswers::default()),
            Database::Sqlite(database) => Arc::new(SqliteAnswers::new(database.clone())),
            Database::Postgres(database) => Arc::new(PostgresAnswers::new(database.clone())),
        }
    }

    /// Responses that callers may come back to.
    pub fn responses(&self) -> Arc<dyn Responses> {
        match self {
            Database::Memory => Arc::new(MemoryResponses::default()),
            Database::Sqlite(database) => Arc::new(SqliteResponses::new(database.clone())),
            Database::Postgres(database) => Arc::new(PostgresResponses::new(database.clone())),
        }
    }

    /// Conversations that callers come back to.
    pub fn conversations(&self) -> Arc<dyn Conversations> {
        match self {
            Database::Memory => Arc::new(MemoryConversations::default()),
            Database::Sqlite(database) => Arc::new(SqliteConversations::new(database.clone())),
            Database::Postgres(database) => Arc::new(PostgresConversations::new(database.clone())),
        }
    }

    /// Runs of agents. Where nobody else writes them, the latest are remembered beside it.
    pub fn episodes(&self) -> Arc<dyn Episodes> {
        match self {
            Database::Memory => Arc::new(MemoryEpisodes::default()),
            Database::Sqlite(database) => {
                Arc::new(NearbyEpisodes::new(Arc::new(SqliteEpisodes::new(database.clone()))))
            }
            Database::Postgres(database) => Arc::new(PostgresEpisodes::new(database.clone())),
        }
    }

    /// What decisions leave behind.
    pub fn stories(&self) -> Arc<dyn Stories> {
        match self {
            Database::Memory => Arc::new(MemoryStories::default()),
            Database::Sqlite(database) => Arc::new(SqliteStories::new(database.clone())),
            Database::Postgres(database) => Arc::new(PostgresStories::new(database.clone())),
        }
    }
}
