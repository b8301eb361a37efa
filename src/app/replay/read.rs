//! The decision log's files.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::history::Line;
use crate::learn::replay::{Gathered, Logged};

/// What the files have.
#[derive(Debug)]
pub(super) struct Log {
    /// Whole requests.
    pub(super) requests: Vec<Logged>,
    /// Lines of other forms, or broken off.
    pub(super) unread: usize,
}

/// A file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {cause}")]
pub(super) struct Unreadable {
    path: PathBuf,
    cause: io::Error,
}

/// Reads all files, line by line.
pub(super) fn read(paths: &[PathBuf]) -> Result<Log, Unreadable> {
    let mut gathered = Gathered::default();
    let mut unread = 0;
    for path in paths {
        unread += one(path, &mut gathered).map_err(|cause| Unreadable { path: path.clone(), cause })?;
    }
    Ok(Log { requests: gathered.finish(), unread })
}

/// Gives back how many lines are not understood: a version that comes may write more kinds, and a crash cuts a line off.
fn one(path: &Path, gathered: &mut Gathered) -> io::Result<usize> {
    let mut unread = 0;
    for line in BufReader::new(File::open(path)?).lines() {
        match serde_json::from_str::<Line>(&line?) {
            Ok(line) => gathered.push(line),
            Err(_) => unread += 1,
        }
    }
    Ok(unread)
}
