//! Databases behind the traits of the stores, which `ledger`, `sessions` and `types` define. The only SQL is here.
//!
//! [`Database`] opens one and gives out its stores. The stores write their statements once for both databases, over the small
//! layer in `sql`. What only one of them does is in `sqlite` and `postgres`.

mod account_table;
mod archive;
mod audit;
mod conversations;
mod database;
mod database_url;
mod episodes;
mod error;
mod fault;
mod file;
mod history;
mod idempotency;
mod journal;
mod keys;
mod migrations;
mod packed_record;
#[cfg(feature = "postgres")]
mod postgres;
mod responses;
mod settings;
mod sql;
mod sqlite;
#[cfg(test)]
mod tests;
#[cfg(not(feature = "postgres"))]
mod without_postgres;

pub use archive::{Archive, RestoreReport, back_up, restore};
pub use audit::VerifyReport;
pub use database::Database;
pub use database_url::DatabaseUrl;
pub use error::StorageError;
#[cfg(feature = "postgres")]
pub use postgres::{ChangeListener, Postgres, PostgresArchive, PostgresCoordinator, PostgresJournal};
pub use settings::{PostgresSettings, Settings, SqliteSettings, Synchronous};
pub use sqlite::{Sqlite, SqliteArchive, SqliteJournal};
#[cfg(not(feature = "postgres"))]
pub use without_postgres::ChangeListener;
