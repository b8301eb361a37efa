//! Putting a backup in the place of a database.

#[cfg(feature = "postgres")]
use std::fs::File;
use std::path::{Path, PathBuf};

#[cfg(feature = "postgres")]
use sqlx::SqliteConnection;

#[cfg(feature = "postgres")]
use crate::Synchronous;
#[cfg(feature = "postgres")]
use crate::file::lock_existing;
use crate::file::{DatabaseLock, sync, with_ending};
use crate::{SqliteSettings, StorageError, VerifyReport};
use stint_types::units::Timestamp;

use super::archive::SqliteArchive;
use super::database::Sqlite;

/// Verifies a backup and puts a copy of it where the settings say. A database that is there already is moved aside if
/// `force` says so. Returns where to, and what verifying it came to.
///
/// # Errors
/// When a server uses that place, a database is there that is not to be moved, or the backup is wrong. Nothing has
/// changed then.
pub(crate) async fn restore(
    backup: &Path,
    settings: &SqliteSettings,
    force: bool,
) -> Result<(Option<PathBuf>, VerifyReport), StorageError> {
    let path = &settings.path;
    let is_there = path.metadata().is_ok_and(|file| file.len() > 0);
    let lock = DatabaseLock::take(path)?;
    if is_there && !force {
        return Err(StorageError::Exists(path.clone()));
    }
    let copy = with_ending(path, ".restoring");
    remove(&copy);
    let checked = checked(backup, &copy, settings).await;
    let placed = checked.and_then(|report| Ok((place(&copy, path, is_there)?, report)));
    remove(&copy);
    if placed.is_err() && !is_there {
        // The lock made an empty one.
        let _ = std::fs::remove_file(path);
    }
    drop(lock);
    placed
}

/// A copy with the tables of this version, whose books are right.
async fn checked(
    backup: &Path,
    copy: &Path,
    settings: &SqliteSettings,
) -> Result<VerifyReport, StorageError> {
    let mut source = SqliteArchive::open_any_version(backup).await?;
    if !source.has_migrations().await? {
        return Err(StorageError::Bookless(backup.to_owned()));
    }
    source.back_up(copy).await?;
    source.close().await?;
    let settings = SqliteSettings { path: copy.to_owned(), ..settings.clone() };
    Sqlite::open(&settings).await?.close().await?;
    let mut archive = SqliteArchive::open(copy).await?;
    let report = archive.verify().await?;
    archive.close().await?;
    match report.differences.first() {
        None => Ok(report),
        Some(first) => {
            let (path, first, found) = (backup.to_owned(), first.clone(), report.found);
            Err(StorageError::Wrong { path, first, found })
        }
    }
}

/// A copy of a file with the tables of this version, whose books are right. It stands beside the file, which no gateway may write
/// meanwhile, and is removed again.
#[cfg(feature = "postgres")]
#[derive(Debug)]
pub(crate) struct VerifiedCopy {
    archive: SqliteArchive,
    report: VerifyReport,
    path: PathBuf,
    _lock: Option<File>,
}

#[cfg(feature = "postgres")]
impl VerifiedCopy {
    /// Makes one.
    ///
    /// # Errors
    /// When a gateway uses the file, or it is wrong, or there is no room beside it.
    pub(crate) async fn of(backup: &Path) -> Result<VerifiedCopy, StorageError> {
        let lock = lock_existing(backup)?;
        let path = with_ending(backup, &format!(".importing-{}", std::process::id()));
        let settings = SqliteSettings { path: path.clone(), synchronous: Synchronous::Normal };
        let made = async {
            let report = checked(backup, &path, &settings).await?;
            Ok((SqliteArchive::open(&path).await?, report))
        };
        match made.await {
            Ok((archive, report)) => Ok(VerifiedCopy { archive, report, path, _lock: lock }),
            Err(error) => {
                remove(&path);
                Err(error)
            }
        }
    }

    pub(crate) fn report(&self) -> &VerifyReport {
        &self.report
    }

    pub(crate) fn connection(&mut self) -> &mut SqliteConnection {
        self.archive.connection()
    }
}

#[cfg(feature = "postgres")]
impl Drop for VerifiedCopy {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Moves the database that is there aside with its log, and the copy into its place.
fn place(copy: &Path, path: &Path, is_there: bool) -> Result<Option<PathBuf>, StorageError> {
    let write_error = |source| StorageError::Write { path: path.to_owned(), source };
    let aside = with_ending(path, &format!(".replaced-{}", Timestamp::now().as_seconds()));
    for ending in ["", "-wal", "-shm"] {
        let (from, to) = (with_ending(path, ending), with_ending(&aside, ending));
        // A log without its database would be taken for the new one's.
        if from.exists() && (is_there || !ending.is_empty()) {
            std::fs::rename(from, to).map_err(write_error)?;
        }
    }
    std::fs::rename(copy, path).and_then(|()| sync(path)).map_err(write_error)?;
    Ok(is_there.then_some(aside))
}

/// What is left of an attempt that was broken off, or of this one.
fn remove(copy: &Path) {
    for ending in ["", "-wal", "-shm", ".lock"] {
        let _ = std::fs::remove_file(with_ending(copy, ending));
    }
}
