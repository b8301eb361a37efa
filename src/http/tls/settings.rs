//! Where a listener's certificate is.

use std::path::PathBuf;

/// The files of a listener that speaks TLS. They are read again when they change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    /// The certificate and those that lead to its authority, in PEM, its own first.
    pub certificate: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
    /// The authorities one of which must have signed the certificate that each caller shows; nobody needs one where absent.
    pub client_ca: Option<PathBuf>,
}

impl TlsSettings {
    /// All its files.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        [Some(&self.certificate), Some(&self.key), self.client_ca.as_ref()].into_iter().flatten()
    }
}
