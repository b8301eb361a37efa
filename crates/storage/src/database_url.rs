//! The address of a PostgreSQL database, as it is written.

use std::fmt;

#[cfg(feature = "postgres")]
use sqlx::postgres::PgConnectOptions;

use super::error::StorageError;

/// The address of a database. It has a password in it, so it does not show itself.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// An address as it is written: `postgres://user:password@host:port/database`.
    pub fn new(url: impl Into<String>) -> DatabaseUrl {
        DatabaseUrl(url.into())
    }

    /// Sees whether it is one.
    ///
    /// # Errors
    /// When it is not; the error says how it is written.
    pub fn check(&self) -> Result<(), StorageError> {
        #[cfg(feature = "postgres")]
        return self.options().map(drop);
        #[cfg(not(feature = "postgres"))]
        Err(StorageError::NoPostgres)
    }

    /// How to connect.
    ///
    /// # Errors
    /// When it is no address of a PostgreSQL database.
    #[cfg(feature = "postgres")]
    pub(super) fn options(&self) -> Result<PgConnectOptions, StorageError> {
        let is_ours = ["postgres://", "postgresql://"].iter().any(|scheme| self.0.starts_with(scheme));
        let options = if is_ours { self.0.parse::<PgConnectOptions>().ok() } else { None };
        Ok(options.ok_or(StorageError::Url)?.application_name("stint"))
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabaseUrl(..)")
    }
}
