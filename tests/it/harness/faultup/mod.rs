//! An upstream on a raw socket that answers byte for byte as it is told, faults and all, and logs what it received and
//! sent. Its log is the truth that books and metrics are held against.

mod log;
pub(crate) mod rig;
pub(crate) mod script;
mod serve;
mod socket;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::harness::patience::{self, QuietInstant};
use log::Log;
pub(crate) use log::{Exchange, contains};
use script::Script;
pub(crate) use socket::Identity;
use socket::Socket;

/// How soon the upstream must see that nobody waits for its answer any more.
pub(crate) const LEAVING_MAX: Duration = Duration::from_secs(1);

/// The upstream. It serves until it is dropped.
#[derive(Debug)]
pub(crate) struct Faultup {
    /// Where its API is, without a path.
    pub(crate) address: String,
    log: Log,
    connections: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl Faultup {
    /// Answers one request after another by these scripts, and all after them by the last.
    pub(crate) async fn start(scripts: Vec<Script>) -> Faultup {
        Faultup::serve(scripts, None).await
    }

    /// The same over TLS, as `localhost` or whom the identity says.
    pub(crate) async fn secure(scripts: Vec<Script>, identity: &Identity) -> Faultup {
        Faultup::serve(scripts, Some(identity.clone())).await
    }

    async fn serve(scripts: Vec<Script>, identity: Option<Identity>) -> Faultup {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let address = match &identity {
            Some(_) => format!("https://localhost:{port}"),
            None => format!("http://127.0.0.1:{port}"),
        };
        let (log, connections) = (Log::default(), Arc::<AtomicUsize>::default());
        let scripts = serve::Scripts::new(scripts);
        let (known, counted) = (log.clone(), connections.clone());
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let connection = counted.fetch_add(1, Ordering::SeqCst);
                let (identity, scripts, log) = (identity.clone(), scripts.clone(), known.clone());
                tokio::spawn(async move {
                    if let Some(socket) = Socket::open(stream, identity).await {
                        serve::serve(socket, connection, &scripts, &log).await;
                    }
                });
            }
        });
        Faultup { address, log, connections, accepting }
    }

    /// How many connections it has had.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// All requests that it has received so far.
    pub(crate) fn log(&self) -> Vec<Exchange> {
        self.log.all()
    }

    /// Waits until the log is as it must be.
    pub(crate) async fn until(&self, is_so: impl Fn(&[Exchange]) -> bool) {
        let all = async {
            while !is_so(&self.log()) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let waited = tokio::time::timeout(patience::PATIENCE, all).await;
        assert!(waited.is_ok(), "{:?}", self.log());
    }

    /// The client of this exchange leaves within a second of `since`.
    pub(crate) async fn sees_the_client_leave(&self, exchange: usize, since: &QuietInstant) {
        self.until(|log| log.get(exchange).is_some_and(|exchange| exchange.left.is_some())).await;
        let left = self.log().swap_remove(exchange).left.unwrap();
        let lag = since.until(&left);
        assert!(lag <= LEAVING_MAX, "the upstream saw it after {lag:?}");
    }
}

impl Drop for Faultup {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
