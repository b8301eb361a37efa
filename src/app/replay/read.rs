//! Reads the files of a decision log for `stint replay`.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use stint_lab::replay::{LogCollector, LoggedRequest};
use stint_sessions::history::DecisionLogLine;

/// What the files have.
#[derive(Debug)]
pub(super) struct ParsedLog {
    /// Whole requests.
    pub(super) requests: Vec<LoggedRequest>,
    /// Lines of other forms, or broken off.
    pub(super) unread_lines: usize,
}

/// A file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {cause}")]
pub(super) struct LogReadError {
    path: PathBuf,
    cause: io::Error,
}

/// Reads all files, line by line.
pub(super) fn read(paths: &[PathBuf]) -> Result<ParsedLog, LogReadError> {
    let mut gathered = LogCollector::default();
    let mut unread = 0;
    for path in paths {
        unread +=
            read_file(path, &mut gathered).map_err(|cause| LogReadError { path: path.clone(), cause })?;
    }
    Ok(ParsedLog { requests: gathered.finish(), unread_lines: unread })
}

/// Gives back how many lines are not understood: a version that comes may write more kinds, and a crash cuts a line off.
fn read_file(path: &Path, gathered: &mut LogCollector) -> io::Result<usize> {
    let mut unread = 0;
    for line in BufReader::new(File::open(path)?).lines() {
        match serde_json::from_str::<DecisionLogLine>(&line?) {
            Ok(line) => gathered.push(line),
            Err(_) => unread += 1,
        }
    }
    Ok(unread)
}
