//! Why a listener cannot speak TLS with the files that it is given.

use std::io;
use std::path::PathBuf;

use tokio_rustls::rustls;

/// Why a listener cannot speak TLS. Each says which setting is to blame.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file is not there, or is not ours to read.
    #[error("{path} cannot be read: {error}")]
    File {
        /// Its setting.
        key: &'static str,
        /// Where it should be.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// There is nothing of the kind in it.
    #[error("{path} has no {what} in PEM")]
    Empty {
        /// Its setting.
        key: &'static str,
        /// Where it is.
        path: PathBuf,
        /// What should be there.
        what: &'static str,
    },
    /// It is there, and is not what it says it is.
    #[error("{path} cannot be used: {reason}")]
    Malformed {
        /// Its setting.
        key: &'static str,
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The key is of another certificate.
    #[error("{key_path} is not the key of the certificate in {certificate}")]
    OtherKey {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's.
        key_path: PathBuf,
    },
    /// TLS cannot be set up with them.
    #[error("TLS cannot be set up")]
    Setup(#[from] rustls::Error),
}

impl TlsError {
    /// The setting that is to blame.
    pub fn key(&self) -> &'static str {
        match self {
            TlsError::File { key, .. } | TlsError::Empty { key, .. } | TlsError::Malformed { key, .. } => key,
            TlsError::OtherKey { .. } => "key",
            TlsError::Setup(_) => "certificate",
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match (self, self.key()) {
            (TlsError::OtherKey { .. }, _) => "name the two that were made together",
            (TlsError::File { .. }, _) => "name a file that is there and that this user may read",
            (_, "certificate") => {
                "put the certificate there in PEM (-----BEGIN CERTIFICATE-----), and those of its authorities after it"
            }
            (_, "client_ca") => "put the authority's certificate there in PEM (-----BEGIN CERTIFICATE-----)",
            _ => "put the private key there in PEM, without a password (-----BEGIN PRIVATE KEY-----)",
        }
    }
}
