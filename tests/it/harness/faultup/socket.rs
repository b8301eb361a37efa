//! A connection, with TLS or without.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::server::TlsStream;

/// A certificate that vouches for itself, and its key.
#[derive(Clone)]
pub(crate) struct Identity {
    config: Arc<ServerConfig>,
    /// The certificate, for clients that must trust it.
    pub(crate) pem: String,
}

impl Identity {
    /// One for this host.
    pub(crate) fn of(host: &str) -> Identity {
        let made = rcgen::generate_simple_self_signed([host.to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key);
        Identity { config: Arc::new(config.unwrap()), pem: made.cert.pem() }
    }

    /// What accepts connections that speak HTTP/2, and no others.
    pub(crate) fn acceptor_of_h2(&self) -> TlsAcceptor {
        let mut config = (*self.config).clone();
        config.alpn_protocols = vec![b"h2".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}

#[derive(Debug)]
pub(super) enum Socket {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

impl Socket {
    /// `None` where the client does not go through with it.
    pub(super) async fn open(stream: TcpStream, identity: Option<Identity>) -> Option<Socket> {
        stream.set_nodelay(true).ok()?;
        match identity {
            None => Some(Socket::Plain(stream)),
            Some(identity) => {
                let accepted = TlsAcceptor::from(identity.config).accept(stream).await.ok()?;
                Some(Socket::Secure(Box::new(accepted)))
            }
        }
    }

    pub(super) async fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(stream) => stream.read(bytes).await,
            Socket::Secure(stream) => stream.read(bytes).await,
        }
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Socket::Plain(stream) => stream.write_all(bytes).await,
            Socket::Secure(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }

    /// Resolves when there is something to be read, which stays unread.
    pub(super) async fn has_more(&self) {
        let stream = match self {
            Socket::Plain(stream) => stream,
            Socket::Secure(stream) => stream.get_ref().0,
        };
        let _ = stream.peek(&mut [0]).await;
    }

    /// Says that nothing more comes.
    pub(super) async fn half_close(&mut self) -> io::Result<()> {
        match self {
            Socket::Plain(stream) => stream.shutdown().await,
            Socket::Secure(stream) => stream.shutdown().await,
        }
    }

    /// Closes it with a reset. A plain drop closes it with a FIN and, over TLS, without the `close_notify` that would say
    /// that all was sent.
    pub(super) fn reset(self) {
        let stream = match &self {
            Socket::Plain(stream) => stream,
            Socket::Secure(stream) => stream.get_ref().0,
        };
        let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
    }
}
