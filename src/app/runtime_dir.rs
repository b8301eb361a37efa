//! A directory for what graphics drivers leave beside a running process.
//!
//! Without one, Mesa prints two lines about `XDG_RUNTIME_DIR` at every start outside a desktop, before the first of our
//! own. The variable must be set before any thread starts, so this is the first thing that a process does.

use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::config;

const NAME: &str = "XDG_RUNTIME_DIR";

/// Only its owner may look into it.
const PRIVATE: u32 = 0o700;

/// Sets the variable where nobody has. A directory that cannot be had costs two lines of somebody else's, and nothing more.
pub(super) fn provide() {
    if config::environment(NAME).is_some() {
        return;
    }
    if let Ok(folder) = private(&std::env::temp_dir()) {
        // SAFETY: the process has one thread yet, so nobody reads the environment at the same time.
        unsafe { std::env::set_var(NAME, folder) };
    }
}

/// A private directory of this user's, made or found again. What somebody else put in its place is not used.
fn private(parent: &Path) -> io::Result<PathBuf> {
    let user = fs::metadata("/proc/self")?.uid();
    let folder = parent.join(format!("stint-{user}"));
    match DirBuilder::new().mode(PRIVATE).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // Not followed: a link may lead anywhere.
    let found = fs::symlink_metadata(&folder)?;
    if is_private(&found, user) { Ok(folder) } else { Err(io::Error::from(io::ErrorKind::PermissionDenied)) }
}

fn is_private(found: &Metadata, user: u32) -> bool {
    found.is_dir() && found.uid() == user && found.permissions().mode() & 0o777 == PRIVATE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_private_and_is_found_again() {
        let parent = tempfile::TempDir::new().unwrap();
        let made = private(parent.path()).unwrap();
        assert_eq!(private(parent.path()).unwrap(), made);
        assert_eq!(fs::metadata(&made).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn what_others_can_look_into_or_a_link_is_not_used() {
        let parent = tempfile::TempDir::new().unwrap();
        let made = private(parent.path()).unwrap();
        fs::set_permissions(&made, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(private(parent.path()).is_err());
        fs::remove_dir(&made).unwrap();
        std::os::unix::fs::symlink(parent.path(), &made).unwrap();
        assert!(private(parent.path()).is_err());
    }
}
