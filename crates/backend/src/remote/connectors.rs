//! How the bounded client connects: within a time, and with bounded memory in the kernel for each stream.

use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::dns::{GaiAddrs, GaiResolver, Name};
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use socket2::SockRef;
use tokio::net::TcpStream;
use tower_service::Service;

use super::joined_chunks::JoinedChunks;
use super::transport_error::UnknownName;

/// Kernel memory for bytes that were not read yet. The system takes twice as much for it.
const RECEIVE_BUFFER: usize = 40 << 10;

/// How soon it is noticed that an upstream is gone without a word: as `reqwest` has it.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const KEEP_ALIVE_RETRIES: u32 = 3;
#[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(30);

type BoxError = Box<dyn Error + Send + Sync>;
type Connecting<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;
pub(super) type TcpConnector = HttpConnector<Resolver>;

/// Connects within a time.
#[derive(Debug, Clone)]
pub(super) struct TimedConnector<C> {
    inner: C,
    timeout: Duration,
}

impl TimedConnector<TcpConnector> {
    /// Without TLS.
    pub(super) fn plaintext(timeout: Duration) -> TimedConnector<TcpConnector> {
        let mut tcp = tcp_connector(timeout);
        tcp.set_recv_buffer_size(Some(RECEIVE_BUFFER));
        TimedConnector { inner: tcp, timeout }
    }
}

impl TimedConnector<TlsConnector> {
    /// Over TLS, which takes its part of the time.
    pub(super) fn tls(timeout: Duration, config: ClientConfig) -> TimedConnector<TlsConnector> {
        let mut tcp = tcp_connector(timeout);
        tcp.enforce_http(false);
        let mut https = HttpsConnector::from((tcp, config));
        https.enforce_https();
        TimedConnector { inner: TlsConnector(https), timeout }
    }
}

fn tcp_connector(timeout: Duration) -> TcpConnector {
    let mut tcp = HttpConnector::new_with_resolver(Resolver(GaiResolver::new()));
    // Of several addresses each gets its share of the time.
    tcp.set_connect_timeout(Some(timeout));
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEP_ALIVE));
    tcp.set_keepalive_interval(Some(KEEP_ALIVE));
    tcp.set_keepalive_retries(Some(KEEP_ALIVE_RETRIES));
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX));
    tcp
}

impl<C> Service<Uri> for TimedConnector<C>
where
    C: Service<Uri>,
    C::Response: Connection,
    C::Error: Into<BoxError>,
    C::Future: Send + 'static,
{
    type Response = JoinedChunks<C::Response>;
    type Error = BoxError;
    type Future = Connecting<Self::Response, BoxError>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connecting = tokio::time::timeout(self.timeout, self.inner.call(to));
        Box::pin(async move {
            let connected = connecting.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
            connected.map(JoinedChunks::new).map_err(Into::into)
        })
    }
}

/// Connects over TLS.
#[derive(Debug, Clone)]
pub(super) struct TlsConnector(HttpsConnector<TcpConnector>);

impl Service<Uri> for TlsConnector {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = Connecting<Self::Response, BoxError>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let connecting = self.0.call(to);
        Box::pin(async move {
            let connection = connecting.await?;
            bound_memory(&connection)?;
            Ok(connection)
        })
    }
}

/// Bounds what waits in the kernel, where a connection has one stream at a time. Over HTTP/2 many share one, which is always
/// read: there each has a window, and a small buffer would slow them all.
fn bound_memory(connection: &MaybeHttpsStream<TokioIo<TcpStream>>) -> io::Result<()> {
    let tcp = match connection {
        MaybeHttpsStream::Https(tls) => match tls.inner().get_ref() {
            (_, session) if session.alpn_protocol() == Some(b"h2") => return Ok(()),
            (tcp, _) => tcp.inner(),
        },
        MaybeHttpsStream::Http(tcp) => tcp,
    };
    SockRef::from(tcp.inner()).set_recv_buffer_size(RECEIVE_BUFFER)
}

/// The system's resolver, whose errors can be told from others.
#[derive(Debug, Clone)]
pub(super) struct Resolver(GaiResolver);

impl Service<Name> for Resolver {
    type Response = GaiAddrs;
    type Error = UnknownName;
    type Future = Connecting<GaiAddrs, UnknownName>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), UnknownName>> {
        self.0.poll_ready(context).map_err(UnknownName)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let addresses = self.0.call(name);
        Box::pin(async move { addresses.await.map_err(UnknownName) })
    }
}
