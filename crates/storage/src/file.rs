//! The files of a `SQLite` database: only their owner may read them, and one process at a time has them open.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::StorageError;

/// Holds off other processes until it is dropped, or the process dies.
///
/// It locks a file beside the database: closing a handle to the database itself would release the database's own locks.
#[derive(Debug)]
pub(super) struct DatabaseLock {
    _file: File,
}

impl DatabaseLock {
    /// Makes the folder, the database and its lock where they are missing, and takes the lock.
    pub(super) fn take(database: &Path) -> Result<DatabaseLock, StorageError> {
        let folder = database.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder {
            create_folder(folder).map_err(create_error(folder))?;
        }
        // SQLite gives the files that it makes beside the database the mode of the database.
        create_missing(database).map_err(create_error(database))?;
        // Whatever name it was opened by, the lock has one.
        let beside = beside(&database.canonicalize().map_err(create_error(database))?);
        let file = create_file(&beside).map_err(create_error(&beside))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StorageError::InUse(database.to_owned())),
            Err(TryLockError::Error(source)) => return Err(create_error(&beside)(source)),
        }
        // SQLite would open it for reading alone and fail at the first entry. Nobody here has it open: see above.
        match private().open(database) {
            Err(source)
                if matches!(source.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem) =>
            {
                return Err(StorageError::NotWritable { path: database.to_owned(), source });
            }
            _ => {}
        }
        Ok(DatabaseLock { _file: file })
    }
}

/// Which file a path leads to: its device and its number there. Where the system has none, every file counts as the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId(u64, u64);

impl FileId {
    /// That of the file at this path.
    pub(super) fn of(path: &Path) -> std::io::Result<FileId> {
        let metadata = path.metadata()?;
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt;
            FileId(metadata.dev(), metadata.ino())
        };
        #[cfg(not(unix))]
        let identity = FileId(u64::from(metadata.is_file()), 0);
        Ok(identity)
    }

    /// Whether it is the file at this path. Where that cannot be found out it counts as that.
    pub(super) fn is_at(self, path: &Path) -> bool {
        match FileId::of(path) {
            Ok(found) => found == self,
            Err(error) => error.kind() != ErrorKind::NotFound,
        }
    }
}

/// The lock of a database that somebody may keep; none where nobody ever did.
///
/// # Errors
/// When another process keeps it.
#[cfg(feature = "postgres")]
pub(super) fn lock_existing(database: &Path) -> Result<Option<File>, StorageError> {
    let Ok(file) = database.canonicalize().and_then(|path| File::open(beside(&path))) else {
        return Ok(None);
    };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(StorageError::InUse(database.to_owned())),
        // Where locks cannot be taken, no gateway runs.
        _ => Ok(Some(file)),
    }
}

fn beside(database: &Path) -> PathBuf {
    with_ending(database, ".lock")
}

/// The path of a file that belongs to a database.
pub(super) fn with_ending(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Makes an empty file where there is none.
pub(super) fn create_new(path: &Path) -> std::io::Result<()> {
    take_owner_of_folder(&private().create_new(true).open(path)?, path);
    Ok(())
}

/// Waits until the disk has it, and its name.
pub(super) fn sync(path: &Path) -> std::io::Result<()> {
    File::open(path)?.sync_all()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn create_error(path: &Path) -> impl FnOnce(std::io::Error) -> StorageError {
    let path = path.to_owned();
    move |source| StorageError::Create { path, source }
}

fn create_folder(path: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Does not touch a file that is there.
fn create_missing(path: &Path) -> std::io::Result<()> {
    match private().create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Ok(file) => {
            take_owner_of_folder(&file, path);
            Ok(())
        }
        created => created.map(drop),
    }
}

fn create_file(path: &Path) -> std::io::Result<File> {
    create_missing(path)?;
    private().open(path)
}

/// What an administrator makes with a verb is the service's, whose folder it is in. Nobody else may give files away, nor needs to. It
/// goes by the open file: by its name the folder's owner could have another one given to him.
fn take_owner_of_folder(file: &File, path: &Path) {
    #[cfg(unix)]
    if let Some(Ok(folder)) = path.parent().map(std::fs::metadata) {
        use std::os::unix::fs::{MetadataExt, fchown};
        let _ = fchown(file, Some(folder.uid()), Some(folder.gid()));
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
