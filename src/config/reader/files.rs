//! The files that a configuration is read from, and whether they stand still.
//!
//! A writer that overwrites a file leaves it empty first and unfinished for a while. Half a configuration may be a valid
//! one with fewer limits, and half a secret is a wrong one. So all that was read counts only once none of it changed for a
//! moment, while it was read and before; one file may have changed while another was read, so all of them are looked at
//! again. Renaming, of a file or of a link on the way to it, puts whole files in place, and costs that moment at most.
//!
//! A writer that pauses for longer looks like one that is done.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use stint_types::regular_file;
use stint_types::units::Timestamp;

/// A file that did not change for so long is complete.
const STABLE_FOR: Duration = Duration::from_secs(1);

/// Looks at a file are so far apart at least, since not every file system tells times well.
const REREAD_DELAY: Duration = Duration::from_millis(50);

/// What was read of a configuration so far.
#[derive(Default)]
pub(in crate::config) struct ConfigFiles {
    seen: RefCell<BTreeMap<PathBuf, FileSnapshot>>,
    /// A server that runs must not hang in a pipe, which a start may well be given.
    are_regular: bool,
}

/// A file as it was first seen.
#[derive(PartialEq)]
struct FileSnapshot {
    /// None where there is no such file.
    stamp: Option<ConfigFileStamp>,
    /// None where somebody else reads it, or it cannot be read.
    text: Option<String>,
}

/// What a file system tells of a file: another one, or another content, has another stamp.
#[derive(PartialEq)]
struct ConfigFileStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: FileTime,
    /// Of the content, the name or the rights; it cannot be set to an earlier time, as the other can.
    changed: FileTime,
}

/// Seconds since 1970, and nanoseconds.
type FileTime = (i64, i64);

impl ConfigFiles {
    /// For a server that runs: all of them must be regular files.
    pub(in crate::config) fn of_running_server() -> ConfigFiles {
        ConfigFiles { are_regular: true, ..ConfigFiles::default() }
    }

    /// The text of a file as it is now.
    pub(in crate::config) fn read(&self, path: &Path) -> io::Result<String> {
        // In this order, so that what changes in between shows later.
        let stamp = ConfigFileStamp::of(path);
        let text =
            if self.are_regular { regular_file::read_to_string(path) } else { std::fs::read_to_string(path) };
        self.record(path, FileSnapshot { stamp, text: text.as_ref().ok().cloned() });
        text
    }

    /// Whether there is such a file; one that appears later counts too.
    pub(in crate::config) fn exists(&self, path: &Path) -> bool {
        let is_there = path.exists();
        if !is_there {
            self.track(path);
        }
        is_there
    }

    /// Counts a file in that others read.
    pub(in crate::config) fn track(&self, path: &Path) {
        self.record(path, FileSnapshot { stamp: ConfigFileStamp::of(path), text: None });
    }

    /// Waits until all of it stood still for a moment; the file that did not.
    pub(in crate::config) fn wait_until_stable(&self) -> Result<(), PathBuf> {
        std::thread::sleep(self.stability_wait(now()));
        let seen = self.seen.borrow();
        let other = seen.iter().find(|(path, seen)| **seen != seen.reread(path));
        other.map_or(Ok(()), |(path, _)| Err(path.clone()))
    }

    /// How long to wait until the one that changed last would have stood still for long enough.
    fn stability_wait(&self, now: SystemTime) -> Duration {
        let seen = self.seen.borrow();
        let since = seen.values().filter_map(|seen| Some(seen.stamp.as_ref()?.age(now)));
        let left = since.map(|age| STABLE_FOR.saturating_sub(age)).max().unwrap_or_default();
        left.max(REREAD_DELAY)
    }

    /// What was seen first is what a later look is held against.
    fn record(&self, path: &Path, seen: FileSnapshot) {
        self.seen.borrow_mut().entry(path.to_owned()).or_insert(seen);
    }
}

impl FileSnapshot {
    fn reread(&self, path: &Path) -> FileSnapshot {
        let stamp = ConfigFileStamp::of(path);
        let text = self.text.as_ref().and_then(|_| regular_file::read_to_string(path).ok());
        FileSnapshot { stamp, text }
    }
}

impl ConfigFileStamp {
    /// That of the file at the end of all links.
    fn of(path: &Path) -> Option<ConfigFileStamp> {
        std::fs::metadata(path).ok().map(|file| ConfigFileStamp::from_metadata(&file))
    }

    #[cfg(unix)]
    fn from_metadata(file: &Metadata) -> ConfigFileStamp {
        use std::os::unix::fs::MetadataExt;
        ConfigFileStamp {
            device: file.dev(),
            inode: file.ino(),
            bytes: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }

    /// Without inodes, size and times tell.
    #[cfg(not(unix))]
    fn from_metadata(file: &Metadata) -> ConfigFileStamp {
        let of = |time: io::Result<SystemTime>| {
            let since = time.ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
            let since = since.unwrap_or_default();
            (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), i64::from(since.subsec_nanos()))
        };
        let (modified, changed) = (of(file.modified()), of(file.created()));
        ConfigFileStamp { device: 0, inode: 0, bytes: file.len(), modified, changed }
    }

    /// How long it stands still already; by a clock that is behind the file's, not at all.
    fn age(&self, now: SystemTime) -> Duration {
        let (seconds, nanos) = self.modified.max(self.changed);
        let seconds = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        let since =
            SystemTime::UNIX_EPOCH + seconds + Duration::from_nanos(u64::try_from(nanos).unwrap_or_default());
        now.duration_since(since).unwrap_or_default()
    }
}

/// The wall clock, by which files' times are given.
fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(Timestamp::now().0).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a file that was read, and what came of a look after something was done to it.
    fn check(is_at_rest: bool, done: impl Fn(&Path)) {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "whole").unwrap();
        let files = ConfigFiles::default();
        assert_eq!(files.read(&path).unwrap(), "whole");
        files.track(&folder.path().join("none"));
        done(&path);
        let seen = files.seen.borrow();
        let moved = seen.iter().find(|(path, seen)| **seen != seen.reread(path));
        assert_eq!(moved.is_none(), is_at_rest);
    }

    #[test]
    fn whatever_happens_to_a_file_after_it_was_read_shows() {
        check(true, |_| ());
        check(false, |path| std::fs::write(path, "half").unwrap());
        check(false, |path| std::fs::write(path, "other").unwrap());
        check(false, |path| std::fs::remove_file(path).unwrap());
        check(false, |path| std::fs::write(path.with_file_name("none"), "").unwrap());
        check(false, |path| {
            let beside = path.with_file_name("beside");
            std::fs::write(&beside, "whole").unwrap();
            std::fs::rename(beside, path).unwrap();
        });
        check(false, |path| {
            let older = std::fs::File::open(path).unwrap();
            older.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        });
    }

    #[test]
    fn a_pipe_is_refused_where_a_server_runs_and_may_be_read_before() {
        let folder = tempfile::TempDir::new().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let error = ConfigFiles::of_running_server().read(&pipe).unwrap_err().to_string();
        assert!(error.contains("no regular file"), "{error}");
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::write(pipe, "whole").unwrap()
        });
        assert_eq!(ConfigFiles::default().read(&pipe).unwrap(), "whole");
        writer.join().unwrap();
    }

    #[test]
    fn what_changed_lately_is_waited_for_and_what_is_old_is_not() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "").unwrap();
        let files = ConfigFiles::default();
        assert_eq!(files.stability_wait(now()), REREAD_DELAY, "nothing was read");
        files.read(&path).unwrap();
        let written = std::fs::metadata(&path).unwrap().modified().unwrap();
        assert_eq!(files.stability_wait(written + STABLE_FOR * 3 / 4), STABLE_FOR / 4);
        assert_eq!(files.stability_wait(written + STABLE_FOR), REREAD_DELAY);
        assert_eq!(files.stability_wait(written - STABLE_FOR), STABLE_FOR, "a clock that is behind");
    }
}
