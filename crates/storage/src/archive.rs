//! Reading the books of either database without a gateway, and restoring a backup of them.

use std::io;
use std::path::{Path, PathBuf};

use stint_ledger::{AccountId, GroupUsage, ResolutionRecord, UsageQuery};

#[cfg(feature = "postgres")]
use super::{PostgresArchive, postgres};
use super::{Settings, SqliteArchive, StorageError, VerifyReport, sqlite};

/// Books that are only read, while a gateway may write them. What is read is what was committed when the reading began.
#[derive(Debug)]
pub enum Archive {
    /// In a file of this machine.
    Sqlite(SqliteArchive),
    /// In a server's database.
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresArchive>),
}

/// A backup that was put in place.
#[derive(Debug)]
pub struct RestoreReport {
    /// Where it is now.
    pub place: String,
    /// Where the database is now that was there before.
    pub aside: Option<PathBuf>,
    /// What verifying the books came to.
    pub report: VerifyReport,
}

impl Archive {
    /// Opens books whose tables are as this version has them.
    ///
    /// # Errors
    /// When there are none, or they cannot be read, or are of another version.
    pub async fn open(settings: &Settings) -> Result<Archive, StorageError> {
        match settings {
            Settings::Memory => Err(StorageError::InMemory),
            Settings::Sqlite(settings) => Ok(Archive::Sqlite(SqliteArchive::open(&settings.path).await?)),
            #[cfg(feature = "postgres")]
            Settings::Postgres(settings) => {
                Ok(Archive::Postgres(Box::new(PostgresArchive::open(settings).await?)))
            }
            #[cfg(not(feature = "postgres"))]
            Settings::Postgres(_) => Err(StorageError::NoPostgres),
        }
    }

    /// Recomputes everything from all entries.
    ///
    /// # Errors
    /// When they cannot be read; what differs is in the report.
    pub async fn verify(&mut self) -> Result<VerifyReport, StorageError> {
        match self {
            Archive::Sqlite(archive) => archive.verify().await,
            #[cfg(feature = "postgres")]
            Archive::Postgres(archive) => archive.verify().await,
        }
    }

    /// Writes all that is committed now to a new file, which only its owner may read. Returns what verifying it came to.
    ///
    /// # Errors
    /// When that file exists, or cannot be written; it is not left there half done.
    pub async fn back_up(&mut self, to: &Path) -> Result<VerifyReport, StorageError> {
        match self {
            Archive::Sqlite(archive) => {
                archive.back_up(to).await?;
                SqliteArchive::open(to).await?.verify().await
            }
            #[cfg(feature = "postgres")]
            Archive::Postgres(archive) => archive.back_up(to).await,
        }
    }

    /// What was used, by group, in the order of the groups.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn usage(&mut self, query: &UsageQuery) -> Result<Vec<GroupUsage>, StorageError> {
        match self {
            Archive::Sqlite(archive) => archive.usage(query).await,
            #[cfg(feature = "postgres")]
            Archive::Postgres(archive) => archive.usage(query).await,
        }
    }

    /// True if an account, or one below it, has or had a key in there, or has terms.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn has_account(&mut self, account: &AccountId) -> Result<bool, StorageError> {
        match self {
            Archive::Sqlite(archive) => archive.has_account(account).await,
            #[cfg(feature = "postgres")]
            Archive::Postgres(archive) => archive.has_account(account).await,
        }
    }

    /// Shows every resolution with all that led to it, in their order, as they were when it began.
    ///
    /// # Errors
    /// When they cannot be read, or what they are shown to fails.
    pub async fn each(
        &mut self,
        show: impl FnMut(&ResolutionRecord) -> io::Result<()>,
    ) -> Result<(), StorageError> {
        match self {
            Archive::Sqlite(archive) => archive.each(show).await,
            #[cfg(feature = "postgres")]
            Archive::Postgres(archive) => archive.each(show).await,
        }
    }
}

/// Copies books to a new file, which only its owner may read, and verifies the copy: what that came to, or nothing where an older version
/// wrote them, whose tables are not known here.
///
/// # Errors
/// When there are none, or they cannot be read, or the file exists or cannot be written.
pub async fn back_up(settings: &Settings, to: &Path) -> Result<Option<VerifyReport>, StorageError> {
    match (Archive::open(settings).await, settings) {
        (Ok(mut archive), _) => Ok(Some(archive.back_up(to).await?)),
        (Err(StorageError::Older(_)), Settings::Sqlite(settings)) => {
            let mut archive = SqliteArchive::open_any_version(&settings.path).await?;
            archive.back_up(to).await?;
            archive.close().await?;
            Ok(None)
        }
        (Err(StorageError::Older(place)), _) => Err(StorageError::OlderToCopy(place)),
        (Err(error), _) => Err(error),
    }
}

/// Verifies a backup and puts it where the settings say. A file that is there already is moved aside if `force` says so;
/// a server's database must be empty.
///
/// # Errors
/// When there is a database already, a server uses it, or the backup is wrong. Nothing has changed then.
pub async fn restore(backup: &Path, settings: &Settings, force: bool) -> Result<RestoreReport, StorageError> {
    match settings {
        Settings::Memory => Err(StorageError::InMemory),
        Settings::Sqlite(settings) => {
            let (aside, report) = sqlite::restore(backup, settings, force).await?;
            Ok(RestoreReport { place: settings.path.display().to_string(), aside, report })
        }
        #[cfg(feature = "postgres")]
        Settings::Postgres(settings) => {
            let (place, report) = postgres::restore(backup, settings).await?;
            Ok(RestoreReport { place, aside: None, report })
        }
        #[cfg(not(feature = "postgres"))]
        Settings::Postgres(_) => Err(StorageError::NoPostgres),
    }
}
