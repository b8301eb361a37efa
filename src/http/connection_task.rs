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
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use stint_types::metrics::Metrics;

use super::connection::{CallerStream, Connection};
use super::connection_service::ConnectionService;
use super::connection_table::ConnectionPlace;
use super::framing::HeadLimits;
use super::guarded_stream::GuardedStream;
use super::requests_in_flight::RequestsInFlight;
use super::swappable_router::ServedRouter;
use super::tls::{self, TlsIdentity};
use super::{Settings, SwappableRouter};

/// How long a connection that is cut off may take to deliver the end of its answer.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long one that was evicted may take to end, and how often it is looked at while it is busy after all.
const EVICTED_GRACE: Duration = Duration::from_secs(1);
/// How long, and for how many bytes, a connection that was ended is read from, so that its last answer is not lost.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 8 << 20;

/// What the counter calls connections that did not come to speak TLS.
pub(super) const HANDSHAKE: &str = "handshake";

/// What serves one connection.
#[derive(Debug)]
pub(super) struct ConnectionTask {
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
    pub(super) forwarded: RequestsInFlight<IpAddr>,
    pub(super) metrics: Arc<Metrics>,
}

impl ConnectionTask {
    /// Until the connection ends. It ends by itself when it is idle while shutdown begins, and whatever it does when that is over.
    pub(super) async fn run(self, stopping: impl Future<Output = ()>, cut_off: impl Future<Output = ()>) {
        let open = self.metrics.requests.connections.clone();
        open.inc();
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
        if let Some((connection, builder, service)) = opened {
            serve(connection, &builder, service, leaving, cut_off).await;
        }
        open.dec();
    }

    /// Shakes hands, where TLS is spoken. Nothing if that fails.
    async fn open(self) -> Option<(Connection, Builder, ConnectionService)> {
        let stream = match self.identity {
            None => CallerStream::Plain(self.stream),
            // Boxed, so that connections without TLS have no room for it.
            Some(identity) => match Box::pin(tls::accept(&identity, self.stream, self.head_timeout)).await {
                Ok(stream) => CallerStream::Secure(Box::new(stream)),
                Err(error) => {
                    tracing::debug!(%error, "a caller did not come to speak TLS");
                    self.metrics.requests.turned_away.with_label_values(&[HANDSHAKE]).inc();
                    return None;
                }
            },
        };
        let settings = &self.settings.settings;
        let limits = HeadLimits { bytes: settings.head_max, lines: settings.headers_max };
        let connection = Connection::new(stream, limits);
        let service = ConnectionService {
            router: self.router,
            refused: connection.refused(),
            unwritten: connection.unwritten(),
            place: self.place,
            peer: self.peer,
            forwarded: self.forwarded,
            metrics: self.metrics,
        };
        Some((connection, builder(settings, self.head_timeout), service))
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
    let place = service.place.clone();
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
                () = given_up(&place, is_evicted, cut_off) => None,
            }
        }
    };
    match ended {
        // Dropping a connection ends its requests, which settles them.
        None => {}
        Some(Ok(())) => linger(connection.into_parts().io.into_inner()).await,
        Some(Err(error)) => tracing::debug!(%error, "a connection ended badly"),
    }
}

/// Until a connection that is to go has had the time for it: one that is evicted until it has nothing to do, any until an answer that
/// was cut off could end with an error, which its caller gets a moment to take.
async fn given_up(place: &ConnectionPlace, is_evicted: bool, cut_off: impl Future<Output = ()>) {
    let idle = async {
        loop {
            tokio::time::sleep(EVICTED_GRACE).await;
            if is_evicted && !place.is_busy() {
                return;
            }
        }
    };
    tokio::select! {
        () = idle => {}
        () = cut_off => tokio::time::sleep(LAST_WORDS).await,
    }
}

/// Ends a connection so that its last answer arrives: one that is closed with bytes unread is reset, and the caller may lose what
/// it has not read yet.
async fn linger(mut connection: Connection) {
    let is_mid_request = connection.is_mid_request();
    let rest = async {
        connection.shutdown().await?;
        let mut scratch = [0; 8 << 10];
        let mut left = if is_mid_request { LINGER_BYTES } else { 0 };
        while left > 0 {
            match connection.read(&mut scratch).await? {
                0 => break,
                read => left = left.saturating_sub(read),
            }
        }
        Ok::<(), io::Error>(())
    };
    // What goes wrong now concerns nobody.
    let _ = tokio::time::timeout(LINGER_TIMEOUT, rest).await;
}

/// HTTP/1.1 alone. Without TLS hardly anybody speaks HTTP/2, and guessing which of them a connection speaks would wait without a
/// deadline for its first bytes; with TLS it is not offered.
fn builder(settings: &Settings, head_timeout: Duration) -> Builder {
    let mut builder = Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(head_timeout)
        .max_headers(settings.headers_max)
        // Whole heads fit, and what waits to be written is bounded by it too. The reader has the exact limit.
        .max_buf_size(settings.head_max.max(8192) + 1);
    builder
}
