//! The checksums in `Cargo.lock`, which cargo holds every crate of the registry against.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use crate::SbomError;

/// The checksum, SHA-256 in hexadecimal, by a crate's name and version.
pub(crate) type Checksums = BTreeMap<(String, String), String>;

#[derive(Deserialize)]
struct LockFile {
    package: Vec<LockedPackage>,
}

#[derive(Deserialize)]
struct LockedPackage {
    name: String,
    version: String,
    checksum: Option<String>,
}

pub(crate) fn read(lock: &str) -> Result<Checksums, SbomError> {
    let lock: LockFile = toml::from_str(lock)
        .map_err(|error| SbomError::Lock { file: PathBuf::from("Cargo.lock"), why: error.to_string() })?;
    let checksum = |package: LockedPackage| Some(((package.name, package.version), package.checksum?));
    Ok(lock.package.into_iter().filter_map(checksum).collect())
}
