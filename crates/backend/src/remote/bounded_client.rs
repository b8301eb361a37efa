//! The client of streams from upstreams that are called straight. What it reads ahead of a caller who takes nothing is bounded.
//!
//! `reqwest` reads up to 408 KiB ahead of us from a connection, and as much again as the system's buffers grow to. It has no
//! setting for either.

use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use reqwest::Body;
use reqwest::header::HeaderMap;
use rustls::ClientConfig;
use tower_layer::Layer;

use super::connectors::{TcpConnector, TimedConnector, TlsConnector};
use super::stale_connections::{ConnectTracker, TrackedConnector};
use super::transport_error::TransportError;

/// What is read of an answer at once, and waits for its reader. Also the longest head of an answer.
const READ_SIZE: usize = 16 << 10;
/// What an HTTP/2 stream may be ahead of its reader. Frames of a small event each take twice as much again. An upstream far away
/// sends at most this in a round trip: at 100 ms still some 800 events a second of 300 bytes.
const STREAM_WINDOW: u32 = 24 << 10;
/// The same for all streams of a connection together: so much that readers who stopped do not hold up the others.
pub(super) const CONNECTION_WINDOW: u32 = 1 << 30;
/// The longest head of an answer over HTTP/2.
pub(super) const HEAD_MAX: u32 = 32 << 10;

/// How connections are made and kept.
#[derive(Debug)]
pub(super) struct BoundedSettings {
    /// How long connecting may take, TLS included.
    pub(super) connect: Duration,
    /// How long a connection may wait for the next request; `None` where it has only one.
    pub(super) idle: Option<Duration>,
    /// How TLS is spoken; `None` without TLS.
    pub(super) tls: Option<ClientConfig>,
}

/// A client, with its connections.
#[derive(Debug)]
pub(super) struct BoundedClient {
    transport: Transport,
    /// What every request has.
    headers: HeaderMap,
}

#[derive(Debug)]
enum Transport {
    Plaintext(Client<TrackedConnector<TimedConnector<TcpConnector>>, Body>),
    Tls(Client<TrackedConnector<TimedConnector<TlsConnector>>, Body>),
}

impl BoundedClient {
    /// A client without connections.
    pub(super) fn new(
        settings: BoundedSettings,
        headers: HeaderMap,
        tracker: &ConnectTracker,
    ) -> BoundedClient {
        let builder = client_builder(&settings);
        let transport = match settings.tls {
            Some(config) => {
                let connector = TimedConnector::tls(settings.connect, config);
                Transport::Tls(builder.build(tracker.layer(connector)))
            }
            None => {
                let connector = TimedConnector::plaintext(settings.connect);
                Transport::Plaintext(builder.build(tracker.layer(connector)))
            }
        };
        BoundedClient { transport, headers }
    }

    /// Resolves when the head of the answer is there.
    pub(super) async fn send(
        &self,
        mut request: Request<Body>,
    ) -> Result<Response<Incoming>, TransportError> {
        for (name, value) in &self.headers {
            // A request's own headers hold.
            request.headers_mut().entry(name).or_insert_with(|| value.clone());
        }
        let answered = match &self.transport {
            Transport::Plaintext(client) => client.request(request).await,
            Transport::Tls(client) => client.request(request).await,
        };
        Ok(answered?)
    }
}

fn client_builder(settings: &BoundedSettings) -> legacy::Builder {
    let mut builder = Client::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http1_read_buf_exact_size(READ_SIZE)
        .http2_max_header_list_size(HEAD_MAX)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW);
    match settings.idle {
        Some(idle) => builder.pool_idle_timeout(idle),
        None => builder.pool_max_idle_per_host(0),
    };
    builder
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use futures_util::future::poll_fn;
    use rustls::crypto::aws_lc_rs;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::{RootCertStore, ServerConfig};
    use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpSocket};
    use tokio_rustls::TlsAcceptor;

    use super::super::connections::Connections;
    use super::super::http_client::HttpClient;
    use super::super::refusal;
    use super::super::settings::Settings;
    use super::super::transport_error::TransportErrorKind;
    use super::super::upstream_url::{UpstreamUrl, UpstreamUrls};
    use super::*;

    /// How much is read of an endless answer before its reader stops.
    const READ: usize = 4 << 20;
    /// An upstream that can send nothing for so long is held up.
    const HELD_UP: Duration = Duration::from_millis(500);
    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

    /// Where little waits to be sent.
    fn listen() -> (TcpListener, SocketAddr) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_send_buffer_size(8 << 10).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    /// Whether the reader has read its part. Until then an upstream that is held up waits for a machine that stands still.
    #[derive(Default)]
    struct HasRead(AtomicBool);

    impl HasRead {
        /// The first of these that can be sent; nothing where none can for too long.
        async fn until_held_up<T>(&self, mut sent: impl AsyncFnMut() -> T) -> Option<T> {
            loop {
                let sent = tokio::time::timeout(HELD_UP, sent()).await.ok();
                if sent.is_some() || self.0.load(Ordering::Relaxed) {
                    return sent;
                }
            }
        }
    }

    /// Answers one request without end; how many bytes of it were sent when it was held up.
    async fn answer_without_end(mut socket: impl AsyncRead + AsyncWrite + Unpin, reader: &HasRead) -> usize {
        assert!(socket.read(&mut [0; 4096]).await.unwrap() > 0);
        socket.write_all(HEAD).await.unwrap();
        let mut sent = 0;
        while let Some(written) = reader.until_held_up(async || socket.write(&[b'x'; 64 << 10]).await).await {
            sent += written.unwrap();
        }
        sent
    }

    /// The same over HTTP/2.
    async fn stream_without_end(socket: impl AsyncRead + AsyncWrite + Unpin, reader: &HasRead) -> usize {
        let mut connection = h2::server::handshake(socket).await.unwrap();
        let (_, mut respond) = connection.accept().await.unwrap().unwrap();
        let mut stream = respond.send_response(Response::new(()), false).unwrap();
        let sending = async {
            let mut sent = 0;
            stream.reserve_capacity(READ_SIZE);
            loop {
                let room = reader.until_held_up(async || poll_fn(|cx| stream.poll_capacity(cx)).await).await;
                let Some(room) = room else { return sent };
                let room = room.unwrap().unwrap();
                stream.send_data(vec![b'x'; room].into(), false).unwrap();
                sent += room;
                stream.reserve_capacity(READ_SIZE);
            }
        };
        tokio::select! {
            sent = sending => sent,
            closed = poll_fn(|cx| connection.poll_closed(cx)) => panic!("{closed:?}"),
        }
    }

    /// Reads a part of an endless answer, and then nothing; how much more the upstream sent.
    async fn read_ahead(
        client: &HttpClient,
        url: &str,
        reader: &HasRead,
        upstream: impl Future<Output = usize>,
    ) -> usize {
        let reading = async {
            let mut response = client.get(&address_of(url)).await.unwrap();
            let mut read = 0;
            while read < READ {
                read += response.chunk().await.unwrap().unwrap().len();
            }
            reader.0.store(true, Ordering::Relaxed);
            (response, read)
        };
        let (sent, (_unread, read)) = tokio::join!(upstream, reading);
        sent - read
    }

    /// A server that speaks this protocol alone, and a client that trusts it.
    fn tls(protocol: &[u8]) -> (TlsAcceptor, ClientConfig) {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let mut server = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        server.alpn_protocols = vec![protocol.to_vec()];
        let mut trusted = RootCertStore::empty();
        trusted.add(made.cert.der().clone()).unwrap();
        (TlsAcceptor::from(Arc::new(server)), trusting(trusted))
    }

    fn trusting(roots: RootCertStore) -> ClientConfig {
        let mut client = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        client
    }

    fn over_tls(config: ClientConfig) -> HttpClient {
        let settings = BoundedSettings { connect: Duration::from_secs(5), idle: None, tls: Some(config) };
        let client = BoundedClient::new(settings, HeaderMap::new(), &ConnectTracker::new(true));
        HttpClient::Bounded(Arc::new(client))
    }

    fn address_of(url: &str) -> Arc<UpstreamUrl> {
        UpstreamUrls::new(url.parse().unwrap()).below("").unwrap()
    }

    fn stream_client(url: &str) -> HttpClient {
        let settings = Settings { base_url: url.to_owned(), ..Settings::default() };
        let pool = Connections::default().pool(&settings.parsed_base_url().unwrap(), &settings).unwrap();
        pool.streams.clone()
    }

    #[tokio::test]
    async fn what_is_read_ahead_of_a_caller_who_takes_nothing_is_bounded() {
        let (listener, address) = listen();
        let url = format!("http://{address}/v1");
        let reader = HasRead::default();
        let upstream = async { answer_without_end(listener.accept().await.unwrap().0, &reader).await };
        let ahead = read_ahead(&stream_client(&url), &url, &reader, upstream).await;
        assert!(ahead <= 256 << 10, "{ahead} bytes were taken ahead of their reader");
    }

    #[tokio::test]
    async fn it_is_bounded_over_tls_too() {
        let ((listener, address), (acceptor, config)) = (listen(), tls(b"http/1.1"));
        let reader = HasRead::default();
        let upstream = async {
            let (socket, _) = listener.accept().await.unwrap();
            answer_without_end(acceptor.accept(socket).await.unwrap(), &reader).await
        };
        let url = format!("https://{address}/v1");
        let ahead = read_ahead(&over_tls(config), &url, &reader, upstream).await;
        // The upstream's own buffer for TLS has 64 KiB of it.
        assert!(ahead <= (256 + 64) << 10, "{ahead} bytes were taken ahead of their reader");
    }

    #[tokio::test]
    async fn over_http2_each_stream_has_a_small_window() {
        let ((listener, address), (acceptor, config)) = (listen(), tls(b"h2"));
        let reader = HasRead::default();
        let upstream = async {
            let (socket, _) = listener.accept().await.unwrap();
            stream_without_end(acceptor.accept(socket).await.unwrap(), &reader).await
        };
        let url = format!("https://{address}/v1");
        let ahead = read_ahead(&over_tls(config), &url, &reader, upstream).await;
        assert!(ahead <= 24 << 10, "{ahead} bytes were taken ahead of their reader");
    }

    async fn check_unreachable(url: &str, kind: TransportErrorKind) {
        let error = stream_client(url).get(&address_of(url)).await.unwrap_err();
        assert_eq!(error.kind, kind, "{error:?}");
    }

    #[tokio::test]
    async fn it_is_told_why_an_upstream_cannot_be_reached() {
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        for scheme in ["http", "https"] {
            check_unreachable(&format!("{scheme}://nobody.invalid/v1"), TransportErrorKind::UnknownName)
                .await;
            check_unreachable(&format!("{scheme}://{closed}/v1"), TransportErrorKind::Connect).await;
        }
    }

    #[tokio::test]
    async fn it_is_told_that_a_certificate_is_not_trusted() {
        let ((listener, address), (acceptor, _)) = (listen(), tls(b"http/1.1"));
        let client = over_tls(trusting(RootCertStore::empty()));
        let upstream = async {
            let (socket, _) = listener.accept().await.unwrap();
            assert!(acceptor.accept(socket).await.is_err());
        };
        let url = format!("https://{address}/v1");
        let url = address_of(&url);
        let ((), answered) = tokio::join!(upstream, client.get(&url));
        let failure = refusal::of_transport(&answered.unwrap_err());
        assert!(failure.unsent && failure.to_string().contains("certificate"), "{failure}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_upstream_that_does_not_begin_tls_is_given_up_in_time() {
        let (listener, address) = listen();
        let client = over_tls(trusting(RootCertStore::empty()));
        let url = UpstreamUrls::new(format!("https://{address}/v1").parse().unwrap()).below("").unwrap();
        let error = client.get(&url).await.unwrap_err();
        assert_eq!(error.kind, TransportErrorKind::ConnectTimeout, "{error:?}");
        drop(listener);
    }
}
