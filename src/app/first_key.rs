//! The key in the file that `[keys]` names, which the first start creates. `build`, `reload` and `stint keys` read it.

use std::io::{self, ErrorKind, Write};
use std::path::Path;

use stint_types::regular_file;
use stint_types::tenant::{NewKey, Tenant, hash_key};
use stint_types::units::AccountId;

/// Finds the key in its file, or makes one and writes it there, readable by its user alone.
pub(super) fn load_or_create(path: &Path) -> io::Result<Tenant> {
    match regular_file::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => tenant_from_key(path, &create_key_file(path)?),
        read => tenant_from_key(path, &read.map_err(|error| with_path(path, &error))?),
    }
}

/// Finds the key in the file that had it before. Where the file is gone, callers still have its key: it is not replaced.
pub(super) fn load_existing(path: &Path) -> io::Result<Tenant> {
    tenant_from_key(path, &regular_file::read_to_string(path).map_err(|error| with_path(path, &error))?)
}

fn tenant_from_key(path: &Path, key: &str) -> io::Result<Tenant> {
    if key.trim().is_empty() {
        return Err(io::Error::new(
            ErrorKind::InvalidData,
            format!("{} is empty: remove it and restart, and another key is made", path.display()),
        ));
    }
    Ok(Tenant::new(AccountId::new(Tenant::FIRST), hash_key(key.trim())))
}

fn create_key_file(path: &Path) -> io::Result<String> {
    let key = NewKey::generate().map_err(io::Error::other)?.reveal();
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| with_path(path, &error))?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let opened = options.open(path);
    let mut file = opened.map_err(|error| with_path(path, &error))?;
    file.write_all(key.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| {
        // On a full disk: what is there of it is no key, and nobody has it.
        let _ = std::fs::remove_file(path);
        with_path(path, &error)
    })?;
    tracing::info!(file = %path.display(), "made a first key; callers send it as their API key");
    Ok(key)
}

fn with_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("the first key's file {}: {error}", path.display()))
}
