//! The accept loop: our own, because it has the limits and deadlines that `axum::serve` lacks.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};

use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;

use super::account_requests::ACCOUNT;
use super::connection_service::{FORWARDED, SharesInFlight};
use super::connection_table::{ConnectionLimits, ConnectionPlace, ConnectionTable, Crowding};
use super::connection_task::{ConnectionTask, HANDSHAKE};
use super::guarded_stream::GuardedStream;
use super::http2::RESETS;
use super::{Settings, SwappableRouter};

/// Kernel memory for bytes that a caller has not taken yet; the rest waits in the request's bounded channel.
/// The system takes twice as much for it.
const SEND_BUFFER: usize = 64 << 10;
/// How long to wait after the system had no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How many idle connections are closed where the system has no room for another.
const EVICTED_MAX: usize = 8;
/// How long a head may take where there are only places for health.
const HEALTH_HEAD_TIMEOUT: Duration = Duration::from_secs(1);

/// What the counter calls connections that were closed for others.
const IDLE: &str = "idle";

/// What a connection is told that has no place.
const CROWDED: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n\
content-type: application/json\r\ncontent-length: 168\r\n\r\n\
{\"error\":{\"message\":\"there are too many connections, or too many of your address; try again shortly\",\
\"type\":\"server_error\",\"param\":null,\"code\":\"too_many_connections\"}}\n";

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
    /// Connections that begin before these stop are among them.
    tasks: Tasks,
    /// Accepting, and connections that begin later.
    accepting: Tasks,
    connections: Arc<ConnectionTable>,
    shares: SharesInFlight,
}

impl Server {
    /// A server within these limits.
    pub fn new(settings: Settings, metrics: Arc<Metrics>, tasks: Tasks) -> Server {
        let (address, full) = (Crowding::Address.as_str(), Crowding::Full.as_str());
        for why in [address, full, IDLE, HANDSHAKE, FORWARDED, ACCOUNT, RESETS] {
            metrics.requests.turned_away.with_label_values(&[why]);
        }
        let (connections, shares) = (ConnectionTable::new(), SharesInFlight::default());
        let accepting = tasks.clone();
        Server { settings, metrics, tasks, accepting, connections, shares }
    }

    /// Goes on accepting until these tasks stop, which is after its own. Who comes in between gets answers that end the connection, and
    /// nothing waits for them but these tasks.
    #[must_use]
    pub fn accepting_until(self, accepting: Tasks) -> Server {
        Server { accepting, ..self }
    }

    /// Serves one router for good.
    pub async fn serve(self, bound: BoundListener, router: Router) {
        let router = SwappableRouter::new(self.settings.clone(), router);
        self.serve_swappable(bound, router).await;
    }

    /// Accepts until its tasks stop, or those of [`accepting_until`](Self::accepting_until). Connections run on as tasks and end by
    /// themselves when they are idle.
    pub async fn serve_swappable(self, bound: BoundListener, router: SwappableRouter) {
        let stopping = self.accepting.stopping();
        tokio::pin!(stopping);
        loop {
            let accepted = tokio::select! {
                () = &mut stopping => return,
                accepted = bound.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => self.admit(stream, peer.ip(), &router),
                // Only that caller is gone.
                Err(error) if is_of_one_caller(&error) => {
                    tracing::debug!(%error, "a caller left before it was accepted");
                }
                Err(error) => {
                    let evicted = self.connections.evict_idle(EVICTED_MAX);
                    self.count(IDLE, evicted);
                    tracing::warn!(%error, evicted, "no connection could be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Gives a connection a place, or closes it.
    fn admit(&self, stream: TcpStream, peer: IpAddr, router: &SwappableRouter) {
        let current = router.current();
        let limits = ConnectionLimits {
            all: current.settings.connections_max,
            address: current.settings.address_connections_max,
            proxies: &current.settings.trusted_proxies,
        };
        match self.connections.enter(peer, limits) {
            Ok((place, evicted)) => {
                self.count(IDLE, evicted);
                self.connect(stream, peer, place, router.clone());
            }
            Err(crowding) => {
                self.count(crowding.as_str(), 1);
                // There is no place to hear what it wants. The answer is small enough for a new connection's buffer. One that would
                // speak TLS is just closed.
                if router.identity().is_none() {
                    let _ = stream.try_write(CROWDED);
                }
            }
        }
    }

    fn count(&self, why: &str, connections: usize) {
        let counter = self.metrics.requests.turned_away.with_label_values(&[why]);
        counter.inc_by(u64::try_from(connections).unwrap_or(u64::MAX));
    }

    fn connect(&self, stream: TcpStream, peer: IpAddr, place: ConnectionPlace, router: SwappableRouter) {
        let current = router.current();
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection was gone before it began");
            return;
        }
        let is_late = self.tasks.is_stopping();
        let tasks = if is_late { &self.accepting } else { &self.tasks };
        let task = ConnectionTask {
            is_late,
            stream: GuardedStream::new(stream, current.settings.write_timeout),
            identity: router.identity(),
            head_timeout: head_timeout(&current.settings, place.crowding().is_some()),
            settings: current,
            router,
            place: Arc::new(place),
            peer,
            shares: self.shares.clone(),
            metrics: self.metrics.clone(),
            tasks: tasks.clone(),
        };
        tasks.spawn(task.run(tasks.stopping(), tasks.force_stopping()));
    }
}

/// Whether accepting failed for the caller that came, and not for want of anything here.
fn is_of_one_caller(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// How long a head, and before it a handshake, may take.
fn head_timeout(settings: &Settings, is_for_health: bool) -> Duration {
    if is_for_health { HEALTH_HEAD_TIMEOUT.min(settings.head_timeout) } else { settings.head_timeout }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_connection_without_a_place_is_told_is_one_whole_answer() {
        let text = std::str::from_utf8(CROWDED).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
        let error = serde_json::from_str::<serde_json::Value>(body).unwrap();
        assert_eq!(error["error"]["code"], "too_many_connections");
    }
}
