//! The signals that a server listens to: those that end it, and the one that asks for a reload. Where there is no Unix, Ctrl-C ends
//! it, and a reload is asked for on the admin API.

use std::io;

#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGHUP, which does not kill from here on.
pub(super) struct ReloadSignals {
    #[cfg(unix)]
    hangup: Signal,
}

impl ReloadSignals {
    pub(super) fn new() -> io::Result<ReloadSignals> {
        Ok(ReloadSignals {
            #[cfg(unix)]
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The next one; nothing if there will be none.
    #[cfg(unix)]
    pub(super) async fn next(&mut self) -> Option<()> {
        self.hangup.recv().await
    }

    #[cfg(not(unix))]
    pub(super) async fn next(&mut self) -> Option<()> {
        None
    }
}

/// SIGTERM and SIGINT, which do not kill from here on.
pub(super) struct ShutdownSignals {
    #[cfg(unix)]
    term: Signal,
    #[cfg(unix)]
    interrupt: Signal,
}

impl ShutdownSignals {
    pub(super) fn new() -> io::Result<ShutdownSignals> {
        Ok(ShutdownSignals {
            #[cfg(unix)]
            term: signal(SignalKind::terminate())?,
            #[cfg(unix)]
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    #[cfg(unix)]
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    #[cfg(not(unix))]
    pub(super) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            // It cannot be listened to, so nothing comes.
            std::future::pending::<()>().await;
        }
    }
}
