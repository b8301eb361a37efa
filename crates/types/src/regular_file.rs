//! Reads regular files and nothing else: a pipe or a device may keep its reader waiting for ever, or never end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// Opens a file that is a regular one, by whatever links it is reached. It never waits for somebody to write.
///
/// # Errors
/// When the file cannot be opened, or is none such.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    // Opening a pipe waits for its writer otherwise. Of regular files it changes nothing.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.open(path)?;
    let is_regular = file.metadata()?.is_file();
    let refusal =
        || io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file, such as a pipe or a device");
    is_regular.then_some(file).ok_or_else(refusal)
}

/// The bytes of such a file.
///
/// # Errors
/// When it cannot be opened or read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes).map(|_| bytes)
}

/// The text of such a file.
///
/// # Errors
/// When it cannot be opened or read, or is not UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text).map(|_| text)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_and_a_device_or_a_folder_is_refused() {
        let name = format!("stint-regular-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, "text").unwrap();
        let texts = (read(&path).unwrap(), read_to_string(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(texts, (b"text".to_vec(), "text".to_owned()));
        for other in [Path::new("/dev/zero"), &std::env::temp_dir()] {
            let error = read_to_string(other).unwrap_err();
            assert_eq!(error.to_string(), "it is no regular file, such as a pipe or a device", "{other:?}");
        }
        assert_eq!(read(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
