//! Why a database cannot be used.

use std::path::PathBuf;

/// Why a database cannot be used. Each says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// Another process has it open.
    #[error(
        "another stint process uses {0}: stop it, or give this one a database of its own (`path` in `[ledger]`, or STINT_LEDGER)"
    )]
    InUse(PathBuf),
    /// The address of a server is none.
    #[error(
        "the ledger's url is no address of a PostgreSQL database: write postgres://user:password@host/database"
    )]
    Url,
    /// A server does not let us in.
    #[error(
        "cannot connect to PostgreSQL at {place}: check that it runs, and the user, password and database in the url"
    )]
    Connect {
        /// Where it is, without the password.
        place: String,
        /// What it said.
        source: sqlx::Error,
    },
    /// A newer version of Stint wrote it.
    #[error(
        "{path} was written by a newer stint (its migration {version} is unknown here): upgrade this one"
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// The first migration in it that this version does not have.
        version: i64,
    },
    /// Its folder or files cannot be made.
    #[error("cannot create {path}: check that its folder exists and may be written to")]
    Create {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is there and cannot be opened.
    #[error("cannot open {path} as a database: check that it is one of stint's and may be written to")]
    Open {
        /// The database.
        path: PathBuf,
        /// What the database said.
        source: sqlx::Error,
    },
    /// Its tables cannot be brought up to date.
    #[error("cannot bring the tables of {path} up to date: restore a backup, or move the file away")]
    Migrate {
        /// The database.
        path: PathBuf,
        /// What went wrong.
        source: sqlx::migrate::MigrateError,
    },
}
