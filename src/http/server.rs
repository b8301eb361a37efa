//! The accept loop: our own, because it has the limits and deadlines that `axum::serve` lacks.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse, Response};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower_service::Service;

use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;
use stint_types::units::RequestId;

use super::connection::Connection;
use super::error::ApiError;
use super::framing::{FramingError, HeadLimits};
use super::{Settings, SwappableRouter, headers};

/// Kernel memory for bytes that a caller has not taken yet; the rest waits in the request's bounded channel.
const SEND_BUFFER: usize = 128 * 1024;
/// How long to wait after the system had no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A bound listener.
#[derive(Debug)]
pub struct BoundListener {
    listener: TcpListener,
    address: SocketAddr,
}

/// Opens a listener.
///
/// # Errors
/// When the address cannot be had; the error names it.
pub fn bind(address: SocketAddr) -> io::Result<BoundListener> {
    let open = || -> io::Result<BoundListener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.set_send_buffer_size(SEND_BUFFER)?;
        socket.bind(&address.into())?;
        socket.listen(1024)?;
        let listener = TcpListener::from_std(socket.into())?;
        let address = listener.local_addr()?;
        Ok(BoundListener { listener, address })
    };
    open().map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("cannot listen on {address}: {error}; free it, or set listen or STINT_LISTEN to another"),
        )
    })
}

/// Where a server that listens there is called from its own machine: one on every address, on loopback.
pub fn local_address(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

impl BoundListener {
    /// Where it listens; the port is a real one, also where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Serves a swappable router on a listener.
#[derive(Debug)]
pub struct Server {
    settings: Settings,
    metrics: Arc<Metrics>,
    tasks: Tasks,
    permits: Arc<Semaphore>,
}

impl Server {
    /// A server within these limits.
    pub fn new(settings: Settings, metrics: Arc<Metrics>, tasks: Tasks) -> Server {
        let places = Arc::new(Semaphore::new(settings.connections_max));
        Server { settings, metrics, tasks, permits: places }
    }

    /// Serves one router for good.
    pub async fn serve(self, bound: BoundListener, router: Router) {
        let router = SwappableRouter::new(self.settings.clone(), router);
        self.serve_swappable(bound, router).await;
    }

    /// Accepts until shutdown begins. Connections run on as tasks and end by themselves when they are idle. How many there
    /// may be is fixed at the start.
    pub async fn serve_swappable(self, bound: BoundListener, router: SwappableRouter) {
        let stopping = self.tasks.stopping();
        tokio::pin!(stopping);
        loop {
            // At the limit none is accepted; callers wait in the kernel's queue.
            let place = tokio::select! {
                () = &mut stopping => return,
                place = self.permits.clone().acquire_owned() => place,
            };
            let Ok(place) = place else { return };
            let accepted = tokio::select! {
                () = &mut stopping => return,
                accepted = bound.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => self.connect(stream, router.clone(), place),
                Err(error) => {
                    tracing::warn!(%error, "no connection could be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn connect(&self, stream: TcpStream, router: SwappableRouter, place: OwnedSemaphorePermit) {
        let current = router.current();
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection was gone before it began");
            return;
        }
        let connection =
            Connection::new(stream, current.settings.write_timeout, head_limits(&current.settings));
        let refused = connection.refused();
        let io = TokioIo::new(connection);
        let builder = builder(&current.settings);
        let (stopping, cut_off) = (self.tasks.stopping(), self.tasks.force_stopping());
        let open = self.metrics.requests.connections.clone();
        self.tasks.spawn(async move {
            open.inc();
            // Each request of a connection goes to the router that is in force when it begins.
            let answer = service_fn(move |request: Request<Incoming>| {
                let refusal = refused.reason(request.method()).map(refusal);
                let mut router = router.router();
                async move {
                    match refusal {
                        Some(refusal) => Ok(refusal),
                        None => router.call(request).await,
                    }
                }
            });
            let connection = builder.serve_connection(io, answer);
            tokio::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stopping => {
                    connection.as_mut().graceful_shutdown();
                    // Dropping a connection ends its requests, which settles them.
                    tokio::select! {
                        ended = connection.as_mut() => ended,
                        () = cut_off => Ok(()),
                    }
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended badly");
            }
            open.dec();
            drop(place);
        });
    }
}

fn head_limits(settings: &Settings) -> HeadLimits {
    HeadLimits { bytes: settings.head_max, lines: settings.headers_max }
}

/// What a caller is told whose request could not be read.
fn refusal(error: FramingError) -> Response {
    tracing::debug!(%error, "a request was refused by its head");
    let mut response = ApiError::from(error).into_response();
    headers::set_request_id(response.headers_mut(), RequestId::new());
    response
}

/// HTTP/1.1 alone: without TLS hardly anybody speaks HTTP/2, and guessing which of them a connection speaks
/// would wait without a deadline for its first bytes.
fn builder(settings: &Settings) -> Builder {
    let mut builder = Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(settings.head_timeout)
        .max_headers(settings.headers_max)
        // The reader has the exact limit.
        .max_buf_size(settings.head_max.max(8192) * 2);
    builder
}
