//! The decision log's files: one that grows, and a few that are full. Blocking; a thread of its own writes it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Where the log is, and how large it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionLogSettings {
    /// The file that grows. Full ones stand beside it, with `.1` at the end of the name for the newest.
    pub path: PathBuf,
    /// The size at which a file is full, in bytes.
    pub size_max: u64,
    /// How many full files are kept.
    pub files_max: u32,
}

/// An open log, held by one process at a time.
#[derive(Debug)]
pub struct DecisionLogFile {
    settings: DecisionLogSettings,
    file: File,
    written: u64,
    /// Held until it is dropped; the log's own file changes its name.
    _lock: File,
}

impl DecisionLogFile {
    /// Opens it, making it and its folder where they are missing.
    ///
    /// # Errors
    /// When it cannot be written, or another process does.
    pub fn open(settings: DecisionLogSettings) -> io::Result<DecisionLogFile> {
        if let Some(folder) = settings.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder)?;
        }
        let lock =
            private_options().create(true).truncate(false).open(with_suffix(&settings.path, "lock"))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::Error::other("another process writes it: name another log_file"),
            TryLockError::Error(error) => error,
        })?;
        let mut file = append(&settings.path)?;
        let mut written = file.metadata()?.len();
        if written > 0 && !ends_with_a_line(&settings.path)? {
            // The process that wrote it died in the middle of a line: only that one is lost.
            file.write_all(b"\n")?;
            written += 1;
        }
        Ok(DecisionLogFile { settings, file, written, _lock: lock })
    }

    /// Appends whole lines, into a new file where the old one is full.
    ///
    /// # Errors
    /// When the disk does not take all of them; then the file has none of them.
    pub fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.written >= self.settings.size_max {
            self.rotate()?;
        }
        match self.file.write_all(lines) {
            Ok(()) => {
                self.written += lines.len() as u64;
                Ok(())
            }
            Err(error) => {
                // What there is of them is taken back, or nobody could read the next one.
                let _ = self.file.set_len(self.written);
                Err(error)
            }
        }
    }

    /// The full file becomes the newest of those that are kept, and the oldest goes. The next one is opened first, so that nothing goes
    /// where none can be.
    fn rotate(&mut self) -> io::Result<()> {
        let DecisionLogSettings { path, files_max, .. } = &self.settings;
        let next = with_suffix(path, "next");
        let file = append(&next)?;
        for number in (1..*files_max).rev() {
            rename(&with_suffix(path, &number.to_string()), &with_suffix(path, &(number + 1).to_string()))?;
        }
        match files_max {
            0 => fs::remove_file(path)?,
            _ => rename(path, &with_suffix(path, "1"))?,
        }
        fs::rename(next, path)?;
        self.file = file;
        self.written = 0;
        Ok(())
    }
}

fn ends_with_a_line(path: &Path) -> io::Result<bool> {
    let (mut file, mut last) = (File::open(path)?, [0]);
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        renamed => renamed,
    }
}

fn with_suffix(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

fn append(path: &Path) -> io::Result<File> {
    private_options().create(true).append(true).open(path)
}

/// For their owner's eyes only.
fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &Path, files_max: u32) -> io::Result<DecisionLogFile> {
        DecisionLogFile::open(DecisionLogSettings {
            path: folder.join("new/log.jsonl"),
            size_max: 10,
            files_max,
        })
    }

    fn read(folder: &Path, name: &str) -> Option<String> {
        fs::read_to_string(folder.join("new").join(name)).ok()
    }

    #[test]
    fn a_full_file_makes_room_and_the_oldest_goes() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = open(folder.path(), 2).unwrap();
        for number in 0..8 {
            log.append(format!("line {number}\n").as_bytes()).unwrap();
        }
        drop(log);
        open(folder.path(), 2).unwrap().append(b"line 8\n").unwrap();
        let all =
            ["log.jsonl", "log.jsonl.1", "log.jsonl.2", "log.jsonl.3"].map(|name| read(folder.path(), name));
        let expected = [Some("line 8\n"), Some("line 6\nline 7\n"), Some("line 4\nline 5\n"), None];
        assert_eq!(all, expected.map(|text| text.map(str::to_owned)));
    }

    #[test]
    fn without_room_for_full_files_only_the_last_lines_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = open(folder.path(), 0).unwrap();
        (0..3).for_each(|number| log.append(format!("line {number}\n").as_bytes()).unwrap());
        assert_eq!(read(folder.path(), "log.jsonl").unwrap(), "line 2\n");
        assert_eq!(read(folder.path(), "log.jsonl.1"), None);
    }

    #[test]
    fn nothing_goes_while_no_other_file_can_be_opened() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = open(folder.path(), 2).unwrap();
        log.append(b"older line\n").unwrap();
        log.append(b"newer line\n").unwrap();
        let next = folder.path().join("new/log.jsonl.next");
        fs::create_dir(&next).unwrap();
        (0..3).for_each(|_| assert!(log.append(b"last line\n").is_err()));
        fs::remove_dir(next).unwrap();
        log.append(b"last line\n").unwrap();
        let all = ["log.jsonl", "log.jsonl.1", "log.jsonl.2"].map(|name| read(folder.path(), name));
        assert_eq!(all, ["last line\n", "newer line\n", "older line\n"].map(|text| Some(text.to_owned())));
    }

    #[test]
    fn a_line_that_broke_off_takes_no_other_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        fs::write(&path, "whole\nbro").unwrap();
        let settings = DecisionLogSettings { path, size_max: 100, files_max: 1 };
        DecisionLogFile::open(settings).unwrap().append(b"next\n").unwrap();
        let text = fs::read_to_string(folder.path().join("log.jsonl")).unwrap();
        assert_eq!(text, "whole\nbro\nnext\n");
    }

    #[test]
    fn one_process_at_a_time_writes_it_and_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let log = open(folder.path(), 1).unwrap();
        assert!(open(folder.path(), 1).unwrap_err().to_string().contains("another process writes it"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = log.file.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        drop(log);
        open(folder.path(), 1).unwrap();
    }
}
