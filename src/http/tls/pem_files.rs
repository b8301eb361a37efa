//! Certificates and keys as they are in PEM files.

use std::path::Path;

use tokio_rustls::rustls::pki_types::pem::{Error, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use stint_types::regular_file;

use super::error::TlsError;

/// The certificates of a file, at least one.
pub(super) fn certificates(key: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read(key, path)?;
    let found: Result<Vec<_>, Error> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|error| malformed(key, path, error.to_string()))?;
    if found.is_empty() {
        return Err(TlsError::Empty { key, path: path.to_owned(), what: "certificate" });
    }
    Ok(found)
}

/// The first private key of a file.
pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let bytes = read("key", path)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
        Error::NoItemsFound => {
            TlsError::Empty { key: "key", path: path.to_owned(), what: "private key without a password" }
        }
        error => malformed("key", path, error.to_string()),
    })
}

pub(super) fn malformed(key: &'static str, path: &Path, reason: String) -> TlsError {
    TlsError::Malformed { key, path: path.to_owned(), reason }
}

fn read(key: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    regular_file::read(path).map_err(|error| TlsError::File { key, path: path.to_owned(), error })
}
