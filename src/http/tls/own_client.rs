//! Calls from this machine to a listener of the same configuration.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConnection, StreamOwned};

use super::TlsSettings;
use super::error::TlsError;
use super::pinned::{client_config, unpinned_client_config};

/// A connection that blocks.
pub trait OwnConnection: Read + Write {}

impl<T: Read + Write> OwnConnection for T {}

/// A client for a listener with these settings. It goes by no proxy.
///
/// # Errors
/// When the listener's certificate cannot be read.
pub fn client_builder(tls: Option<&TlsSettings>) -> Result<reqwest::ClientBuilder, TlsError> {
    let builder = reqwest::Client::builder().no_proxy();
    Ok(match tls {
        None => builder,
        Some(tls) => builder.tls_backend_preconfigured(client_config(tls)?),
    })
}

/// Makes a plain connection one that the listener takes. Whatever certificate it shows is taken: no secret may be sent.
///
/// # Errors
/// When a certificate of our own must be shown and cannot be read.
pub fn connect_unpinned(
    stream: TcpStream,
    address: SocketAddr,
    tls: Option<&TlsSettings>,
) -> Result<Box<dyn OwnConnection>, TlsError> {
    let Some(tls) = tls else { return Ok(Box::new(stream)) };
    let config = Arc::new(unpinned_client_config(tls)?);
    let session = ClientConnection::new(config, ServerName::from(address.ip()))?;
    Ok(Box::new(StreamOwned::new(session, stream)))
}
