//! What a store needs of a database.

use std::fmt;

use futures_util::future::BoxFuture;

use stint_types::units::Timestamp;

use super::session::Session;

/// A database that stores share.
pub(crate) trait SqlDatabase: fmt::Debug + Send + Sync {
    /// Where it is, for people; without a password.
    fn place(&self) -> String;

    /// A connection to read with. `SQLite` has one for all.
    fn reader(&self) -> BoxFuture<'_, Result<Session<'_>, sqlx::Error>>;

    /// A connection for what may take long, so that no request waits for it.
    fn slow_reader(&self) -> BoxFuture<'_, Result<Session<'_>, sqlx::Error>>;

    /// A connection to write with. `SQLite` has one for all.
    fn writer(&self) -> BoxFuture<'_, Result<Session<'_>, sqlx::Error>>;

    /// A moment of this machine's clock by the database's, where it has one of its own that is far from it.
    fn by_own_clock(&self, at: Timestamp) -> BoxFuture<'_, Result<Timestamp, sqlx::Error>> {
        Box::pin(std::future::ready(Ok(at)))
    }
}

impl dyn SqlDatabase {
    /// The message of a store's error.
    pub(crate) fn failure(&self) -> String {
        format!("the database {} failed", self.place())
    }
}
