//! The embedded default: one `SQLite` file in WAL mode, one connection that writes, two that read, and one that
//! moves what was written from the log into the file.

mod archive;
mod background_checkpoints;
mod database;
mod journal;
mod migrations;
mod restore;
mod seals;
mod verify;

pub use archive::SqliteArchive;
pub use database::Sqlite;
pub use journal::SqliteJournal;
#[cfg(test)]
pub(super) use journal::UNRESOLVED;
#[cfg(test)]
pub(super) use migrations::MIGRATIONS;
#[cfg(feature = "postgres")]
pub(super) use restore::VerifiedCopy;
pub(super) use restore::restore;
