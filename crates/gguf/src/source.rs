//! Where the bytes of a model file are: on disk, read when they are wanted, or in memory already.
//!
//! A file is read, not mapped: if it is cut short while it is in use, a read fails and says so, where a map would end the process.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use super::error::GgufError;

/// All bytes of a model file.
pub(super) enum GgufSource {
    File(ModelFile),
    Static(&'static [u8]),
    Shared(Arc<[u8]>),
}

/// A model file that is open.
pub(super) struct ModelFile {
    file: File,
    /// As it was when it was opened.
    length: usize,
    modified: Option<SystemTime>,
}

/// Some bytes of a source, one behind the other.
#[derive(Clone, Copy)]
pub(super) enum SourceBytes<'a> {
    File { file: &'a ModelFile, from: usize, length: usize },
    Memory(&'a [u8]),
}

impl GgufSource {
    /// How many bytes there are.
    pub(super) fn length(&self) -> usize {
        match self {
            Self::File(file) => file.length,
            Self::Static(bytes) => bytes.len(),
            Self::Shared(bytes) => bytes.len(),
        }
    }

    /// The bytes from one place to another; none where there are fewer.
    pub(super) fn get(&self, from: usize, to: usize) -> Option<SourceBytes<'_>> {
        let bytes: &[u8] = match self {
            Self::File(file) if from <= to && to <= file.length => {
                return Some(SourceBytes::File { file, from, length: to - from });
            }
            Self::File(_) => return None,
            Self::Static(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        };
        bytes.get(from..to).map(SourceBytes::Memory)
    }

    /// Fails where the file is not as it was when it was opened.
    pub(super) fn check_unchanged(&self) -> Result<(), GgufError> {
        match self {
            Self::File(file) => file.check_unchanged(),
            Self::Static(_) | Self::Shared(_) => Ok(()),
        }
    }
}

impl SourceBytes<'_> {
    /// How many they are.
    pub(super) fn length(self) -> usize {
        match self {
            Self::File { length, .. } => length,
            Self::Memory(bytes) => bytes.len(),
        }
    }

    /// Fills `into` with the bytes from `at` on. They must be there.
    pub(super) fn read(self, at: usize, into: &mut [u8]) -> Result<(), GgufError> {
        match self {
            Self::File { file, from, .. } => file.read(from + at, into),
            Self::Memory(bytes) => {
                into.copy_from_slice(&bytes[at..at + into.len()]);
                Ok(())
            }
        }
    }
}

impl ModelFile {
    /// Opens a regular file. A pipe or a device might keep its reader waiting for ever, so it is refused.
    pub(super) fn open(path: &Path) -> Result<Self, GgufError> {
        let failed = |source| GgufError::Open { path: path.display().to_string(), source };
        let require_regular = |metadata: &Metadata| {
            let is_none = || io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file");
            metadata.is_file().then_some(()).ok_or_else(is_none)
        };
        // Before it is opened, since that may wait already; and after it, since another may have taken its place.
        std::fs::metadata(path).and_then(|found| require_regular(&found)).map_err(failed)?;
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        require_regular(&metadata).map_err(failed)?;
        let length = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
        Ok(Self { file, length, modified: modified(&metadata) })
    }

    fn read(&self, at: usize, into: &mut [u8]) -> Result<(), GgufError> {
        read_exact_at(&self.file, into, at as u64).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => GgufError::Shortened,
            _ => GgufError::Read(error),
        })
    }

    fn check_unchanged(&self) -> Result<(), GgufError> {
        let metadata = self.file.metadata().map_err(GgufError::Read)?;
        let is_same = metadata.len() == self.length as u64 && modified(&metadata) == self.modified;
        is_same.then_some(()).ok_or(GgufError::Changed)
    }
}

fn modified(metadata: &Metadata) -> Option<SystemTime> {
    metadata.modified().ok()
}

/// Moves no cursor, so that several readers may share the file.
#[cfg(unix)]
fn read_exact_at(file: &File, into: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, into, at)
}

/// Every read says where it begins, so that several readers may share the file.
#[cfg(windows)]
fn read_exact_at(file: &File, mut into: &mut [u8], mut at: u64) -> io::Result<()> {
    while !into.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, into, at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                into = &mut into[read..];
                at += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
