//! TLS on our listeners: certificate and key from files, and, where a listener asks for it, certificates of callers.
//!
//! Callers are offered HTTP/1.1 alone. What `framing`, write deadlines and connection places promise is said of one request at
//! a time, and does not hold for the streams of HTTP/2 yet.

mod error;
mod handshake;
mod identity;
mod own_client;
mod pem_files;
mod pinned;
mod settings;

pub(super) use handshake::accept;

pub use error::TlsError;
pub use identity::{CertificateFacts, TlsIdentity};
pub use own_client::{OwnConnection, client_builder, connect_unpinned};
pub use settings::TlsSettings;
