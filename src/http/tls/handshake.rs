//! The beginning of a connection that speaks TLS.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::TlsIdentity;
use super::identity::HTTP2;

/// How much may wait in TLS itself for a caller who takes no bytes.
const UNSENT_MAX: usize = 16 << 10;

/// Shakes hands within a time.
///
/// # Errors
/// When the caller does not speak TLS as we do, shows no certificate that is wanted, or takes too long.
pub(in crate::http) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
    identity: &TlsIdentity,
    stream: S,
    patience: Duration,
    offers_http2: bool,
) -> io::Result<TlsStream<S>> {
    let server = if offers_http2 { &identity.server } else { &identity.http1_server };
    let acceptor = TlsAcceptor::from(server.clone());
    let bounded = acceptor.accept_with(stream, |session| session.set_buffer_limit(Some(UNSENT_MAX)));
    tokio::time::timeout(patience, bounded)
        .await
        .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "the handshake took too long")))
}

/// True if HTTP/2 was agreed on.
pub(in crate::http) fn is_http2<S>(stream: &TlsStream<S>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(HTTP2)
}
