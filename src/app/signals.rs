//! The signals that a server listens to: those that end it, and the one that asks for a reload. Where there is no Unix, Ctrl-C ends
//! it, and a reload is asked for on the admin API.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGHUP, which does not kill from here on.
#[cfg(unix)]
pub(super) struct ReloadSignals(Signal);

#[cfg(unix)]
impl ReloadSignals {
    pub(super) fn new() -> io::Result<ReloadSignals> {
        signal(SignalKind::hangup()).map(ReloadSignals)
    }

    /// The next one; nothing if there will be none.
    pub(super) async fn next(&mut self) -> Option<()> {
        self.0.recv().await
    }
}

/// SIGTERM and SIGINT, which do not kill from here on.
#[cfg(unix)]
pub(super) struct ShutdownSignals {
    term: Signal,
    interrupt: Signal,
}

#[cfg(unix)]
impl ShutdownSignals {
    pub(super) fn new() -> io::Result<ShutdownSignals> {
        Ok(ShutdownSignals {
            term: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// There is none.
#[cfg(not(unix))]
pub(super) struct ReloadSignals;

#[cfg(not(unix))]
impl ReloadSignals {
    pub(super) fn new() -> io::Result<ReloadSignals> {
        Ok(ReloadSignals)
    }

    /// There will be none.
    pub(super) async fn next(&mut self) -> Option<()> {
        None
    }
}

/// Ctrl-C.
#[cfg(not(unix))]
pub(super) struct ShutdownSignals;

#[cfg(not(unix))]
impl ShutdownSignals {
    pub(super) fn new() -> io::Result<ShutdownSignals> {
        Ok(ShutdownSignals)
    }

    pub(super) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            // It cannot be listened to, so nothing comes.
            std::future::pending::<()>().await;
        }
    }
}
