//! PostgreSQL, for any number of replicas: one pool of connections.

mod address;
mod archive;
mod changes;
mod clock;
mod coordinator;
mod database;
mod import;
mod imported_tables;
mod insert;
mod journal;
mod migrations;
mod quota_windows;
mod reclaim;
mod restore;
mod seals;
mod text;
mod tools;
mod verify;
mod window_opening;

pub use archive::PostgresArchive;
pub use changes::ChangeListener;
pub(super) use changes::keys_changed_notice;
pub use coordinator::PostgresCoordinator;
pub use database::Postgres;
#[cfg(test)]
pub(super) use imported_tables::{CellKind, ImportedTable, RESERVATIONS, TABLES};
pub use journal::PostgresJournal;
#[cfg(test)]
pub(super) use migrations::MIGRATIONS;
#[cfg(test)]
pub(super) use reclaim::RELEASE_EPISODE_LEASES;
pub(super) use restore::restore;
#[cfg(test)]
pub(super) use window_opening::{STEPS, STEPS_BEFORE};
