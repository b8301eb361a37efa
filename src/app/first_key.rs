//! The key that the first start makes, where the operator asked for one.

use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::tenant::{NewKey, Tenant, hash_key};
use crate::units::AccountId;

/// Finds the key in its file, or makes one and writes it there, readable by its user alone.
pub(super) fn tenant(path: &Path) -> io::Result<Tenant> {
    let key = match std::fs::read_to_string(path) {
        Ok(key) => key.trim().to_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => make(path)?,
        Err(error) => return Err(named(path, &error)),
    };
    if key.is_empty() {
        return Err(io::Error::new(
            ErrorKind::InvalidData,
            format!("{} is empty: remove it", path.display()),
        ));
    }
    Ok(Tenant::new(AccountId::new(Tenant::FIRST), hash_key(&key)))
}

fn make(path: &Path) -> io::Result<String> {
    let key = NewKey::generate().map_err(io::Error::other)?.reveal();
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| named(path, &error))?;
    }
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(key.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| named(path, &error))?;
    tracing::info!(file = %path.display(), "made a first key; callers send it as their API key");
    Ok(key)
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("the first key's file {}: {error}", path.display()))
}
