//! One connection from its first byte to its last: the handshake where TLS is spoken, the requests, and an end that loses no answer.

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus::IntGauge;

use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;

use super::caller_stream::CallerStream;
use super::connection::Connection;
use super::connection_end::given_up;
use super::connection_service::{ConnectionService, SharesInFlight, Wire};
use super::connection_table::ConnectionPlace;
use super::framing::HeadLimits;
use super::guarded_stream::GuardedStream;
use super::http2::{self, Http2Connection, PREFACE};
use super::linger::linger;
use super::swappable_router::ServedRouter;
use super::tls::{self, TlsIdentity};
use super::{Settings, SwappableRouter};

/// What the counter calls connections that did not come to speak TLS.
pub(super) const HANDSHAKE: &str = "handshake";

/// What serves one connection.
#[derive(Debug)]
pub(super) struct ConnectionTask {
    /// It began after the end of the server did, and has one request.
    pub(super) is_late: bool,
    pub(super) stream: GuardedStream,
    /// How it speaks TLS, where it does.
    pub(super) identity: Option<Arc<TlsIdentity>>,
    /// How long the handshake may take, and each head.
    pub(super) head_timeout: Duration,
    /// What was in force when it began.
    pub(super) settings: Arc<ServedRouter>,
    pub(super) router: SwappableRouter,
    pub(super) place: Arc<ConnectionPlace>,
    pub(super) peer: IpAddr,
    pub(super) shares: SharesInFlight,
    pub(super) metrics: Arc<Metrics>,
    pub(super) tasks: Tasks,
}

/// Counts a connection as open until it is dropped.
struct OpenGauge(IntGauge);

impl OpenGauge {
    fn count_up(gauge: &IntGauge) -> OpenGauge {
        gauge.inc();
        OpenGauge(gauge.clone())
    }
}

impl Drop for OpenGauge {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A connection that came to speak HTTP.
#[expect(clippy::large_enum_variant, reason = "most are of the large one, which is moved once")]
enum OpenConnection {
    Http1(Connection, Builder, ConnectionService),
    Http2(Box<Http2Connection>, Arc<ServedRouter>),
}

impl ConnectionTask {
    /// Until the connection ends. It ends by itself when it is idle while shutdown begins, and whatever it does when that is over.
    pub(super) async fn run(self, stopping: impl Future<Output = ()>, cut_off: impl Future<Output = ()>) {
        let _open = OpenGauge::count_up(&self.metrics.requests.connections);
        let place = self.place.clone();
        let leaving = async {
            tokio::select! {
                () = stopping => false,
                () = place.evicted() => true,
            }
        };
        tokio::pin!(leaving);
        let opened = tokio::select! {
            biased;
            opened = self.open() => opened,
            _ = &mut leaving => None,
        };
        match opened {
            None => {}
            Some(OpenConnection::Http1(connection, builder, service)) => {
                serve(connection, &builder, service, leaving, cut_off).await;
            }
            // Boxed, so that connections of HTTP/1.1 have no room for it.
            Some(OpenConnection::Http2(connection, settings)) => {
                Box::pin(http2::serve(*connection, &settings.settings, leaving, cut_off)).await;
            }
        }
    }

    /// Shakes hands, where TLS is spoken, and sees which version of HTTP is. Nothing if that fails.
    async fn open(self) -> Option<OpenConnection> {
        let ConnectionTask {
            stream,
            identity,
            head_timeout,
            settings,
            router,
            place,
            peer,
            shares,
            is_late,
            ..
        } = self;
        let begun = begin(stream, identity.as_deref(), head_timeout, &settings.settings).await;
        let (stream, is_http2) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                tracing::debug!(%error, "a caller did not come to speak HTTP");
                if identity.is_some() {
                    self.metrics.requests.turned_away.with_label_values(&[HANDSHAKE]).inc();
                }
                return None;
            }
        };
        let own = &settings.settings;
        let limits = HeadLimits { bytes: own.head_max, lines: own.headers_max };
        let metrics = self.metrics;
        let service = |wire| ConnectionService { router, wire, place, peer, shares, metrics };
        if is_http2 {
            let service = service(Wire::Http2(limits));
            let connection = Http2Connection { stream, tasks: self.tasks, service };
            return Some(OpenConnection::Http2(Box::new(connection), settings));
        }
        let connection = Connection::new(stream, limits);
        let wire = Wire::Http1 { refused: connection.refused(), unwritten: connection.unwritten() };
        Some(OpenConnection::Http1(connection, builder(own, head_timeout, is_late), service(wire)))
    }
}

/// The stream as it is read from now on, and whether it speaks HTTP/2.
///
/// # Errors
/// When the caller does not come to speak TLS, where that is spoken, or says nothing for too long.
async fn begin(
    mut stream: GuardedStream,
    identity: Option<&TlsIdentity>,
    head_timeout: Duration,
    settings: &Settings,
) -> io::Result<(CallerStream, bool)> {
    let offers_http2 = settings.http2_requests_max > 0;
    match identity {
        // Boxed, so that connections without TLS have no room for it.
        Some(identity) => {
            let stream = Box::pin(tls::accept(identity, stream, head_timeout, offers_http2)).await?;
            let is_http2 = tls::is_http2(&stream);
            Ok((CallerStream::Secure(Box::new(stream)), is_http2))
        }
        None if !offers_http2 => Ok((CallerStream::Plain(stream), false)),
        None => {
            let is_http2 = tokio::time::timeout(head_timeout, stream.begins_with(PREFACE)).await??;
            Ok((CallerStream::Plain(stream), is_http2))
        }
    }
}

/// Answers requests until one side ends the connection, or `leaving` says to go and whether that is for another's sake.
async fn serve(
    connection: Connection,
    builder: &Builder,
    service: ConnectionService,
    leaving: impl Future<Output = bool>,
    cut_off: impl Future<Output = ()>,
) {
    let (place, service) = (service.place.clone(), Arc::new(service));
    // Boxed, so that hyper gives the connection back.
    let answer = service_fn(move |request| Box::pin(service.clone().answer(request)));
    let mut connection = builder.serve_connection(TokioIo::new(connection), answer);
    let served = tokio::select! {
        ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => Ok(ended),
        is_evicted = leaving => Err(is_evicted),
    };
    let ended = match served {
        Ok(ended) => Some(ended),
        Err(is_evicted) => {
            Pin::new(&mut connection).graceful_shutdown();
            tokio::select! {
                ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => Some(ended),
                () = given_up(&place, is_evicted.then_some(Duration::ZERO), cut_off) => None,
            }
        }
    };
    match ended {
        // Dropping a connection ends its requests, which settles them.
        None => {}
        Some(Ok(())) => linger(connection.into_parts().io.into_inner(), place.linger_pace()).await,
        Some(Err(error)) => tracing::debug!(%error, "a connection ended badly"),
    }
}

fn builder(settings: &Settings, head_timeout: Duration, is_late: bool) -> Builder {
    let mut builder = Builder::new();
    builder
        .timer(TokioTimer::new())
        .keep_alive(!is_late)
        .header_read_timeout(head_timeout)
        .max_headers(settings.headers_max)
        // Whole heads fit, and what waits to be written is bounded by it too. The reader has the exact limit.
        .max_buf_size(settings.head_max.max(8192) + 1);
    builder
}
