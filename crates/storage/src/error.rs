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
    /// This build has no PostgreSQL.
    #[error(
        "this stint was built without PostgreSQL: build it with the feature `postgres`, or name a file (`path` in `[ledger]`)"
    )]
    NoPostgres,
    /// A server does not let us in.
    #[error(
        "cannot connect to PostgreSQL at {place}: check that it runs, and the user, password and database in the url"
    )]
    Connect {
        /// Where it is, without the password.
        place: String,
        /// Its error.
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
    #[error(
        "cannot create {path}: check that its folder exists and may be written to, and that the disk has room"
    )]
    Create {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// It belongs to another user, or is for reading only.
    #[error("{path} may not be written to: give it to the user that runs stint (chown, chmod u+w)")]
    NotWritable {
        /// The database.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// An older version of Stint wrote it, and it is only to be read.
    #[error("{0} was written by an older stint: start this one once, which brings its tables up to date")]
    Older(PathBuf),
    /// An older version of Stint wrote it, and it is to be copied with PostgreSQL's programs and verified.
    #[error("{0} was written by an older stint: make the backup with that one, which knows its tables")]
    OlderToCopy(PathBuf),
    /// It is there and cannot be opened.
    #[error(
        "cannot open {path} as a database: check that it is one of stint's and may be written to, and that the disk has room"
    )]
    Open {
        /// The database.
        path: PathBuf,
        /// The database's error.
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
    /// It cannot be read to its end.
    #[error("cannot read {path} to its end: if the file is broken, restore a backup")]
    Read {
        /// The database.
        path: PathBuf,
        /// The database's error.
        source: sqlx::Error,
    },
    /// What was read cannot be passed on.
    #[error("cannot write to standard output")]
    Output {
        /// The system's error.
        source: std::io::Error,
    },
    /// A copy of it cannot be written.
    #[error("cannot write {path}: check that there is no such file, and that its folder may be written to")]
    Write {
        /// The file to write.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A copy of it broke off.
    #[error("cannot copy the database to {path}: check that there is room for it")]
    Copy {
        /// The file to write.
        path: PathBuf,
        /// The database's error.
        source: sqlx::Error,
    },
    /// It is a file of another kind, or a part of it lacks.
    #[error("{path} is no whole database of stint's: name a backup that is, or restore one")]
    Broken {
        /// The database.
        path: PathBuf,
        /// The database's error.
        source: sqlx::Error,
    },
    /// The rows of a file cannot be copied into a server's database.
    #[error("cannot copy {path} into PostgreSQL, where nothing has changed")]
    Import {
        /// The file.
        path: PathBuf,
        /// The database's error.
        source: sqlx::Error,
    },
    /// What is to be restored is wrong in itself.
    #[error("{path} is not restored, for its books are wrong: {first} ({found} differences in all)")]
    Wrong {
        /// The backup.
        path: PathBuf,
        /// The first difference.
        first: String,
        /// How many there are.
        found: usize,
    },
    /// There is a database where one is to be restored.
    #[error("{0} is there already: `--force` moves it aside")]
    Exists(PathBuf),
    /// Nothing was ever written there.
    #[error("there are no books at {0} yet: the first start of `stint serve` makes them")]
    NoBooks(PathBuf),
    /// They end with the process that keeps them.
    #[error("the ledger is \":memory:\", so its books are in the server alone: give it a file or a database")]
    InMemory,
    /// There is something in the database where one is to be restored.
    #[error(
        "the database at {0} is not empty: make a new one (`createdb`) and name that; nothing is moved aside there"
    )]
    NotEmpty(String),
    /// A file that is to be restored is empty, or a database of something else.
    #[error("{0} holds no books: it is empty, or no backup of stint's; nothing of it is restored")]
    Bookless(PathBuf),
    /// What is to be restored has nothing of ours.
    #[error("{0} holds no books, or those of another schema than the database's: nothing of it is restored")]
    Foreign(PathBuf),
    /// PostgreSQL's own programs are not there.
    #[error(
        "{tool} cannot be run: install PostgreSQL's client programs (on Debian the package postgresql-client)"
    )]
    NoTool {
        /// The program.
        tool: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// PostgreSQL's own programs do not know so new a server.
    #[error(
        "{tool} is of PostgreSQL {version}, older than the server's {server}: install that one's client programs (on Debian \
         the package postgresql-client-{server})"
    )]
    OldTool {
        /// The program.
        tool: &'static str,
        /// Its version.
        version: i32,
        /// The server's.
        server: i32,
    },
    /// One of PostgreSQL's own programs failed.
    #[error("{tool} failed:\n  {errors}")]
    Tool {
        /// The program.
        tool: &'static str,
        /// Its error.
        errors: String,
    },
}
