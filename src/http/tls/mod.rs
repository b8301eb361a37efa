//! TLS on our listeners: certificate and key from files, and, where a listener asks for it, certificates of callers.
//! Callers are offered HTTP/2 and HTTP/1.1, and get the first of these that they speak.

mod error;
mod handshake;
mod identity;
mod own_client;
mod pem_files;
mod pinned;
mod settings;

pub(super) use handshake::{accept, is_http2};

pub use error::TlsError;
pub use identity::{CertificateFacts, TlsIdentity};
pub use own_client::{OwnConnection, client_builder, connect_unpinned};
pub use settings::TlsSettings;
