//! A thread that works on a device, and the wait until it has left.

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::Duration;

use super::error::EngineError;

/// A thread that may hang inside of a driver. Nobody can end it from outside, so every wait for it has a limit.
#[derive(Debug)]
pub(crate) struct WorkerThread {
    /// Nothing is ever sent: the other end goes when the thread has left.
    left: Receiver<()>,
}

impl WorkerThread {
    pub(crate) fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Result<Self, EngineError> {
        let (leaving, left) = channel::<()>();
        let run = move || {
            work();
            drop(leaving);
        };
        let started = std::thread::Builder::new().name(name.into()).spawn(run);
        started.map_err(|error| EngineError::Thread(error.to_string()))?;
        Ok(Self { left })
    }

    /// Waits until it has left, so long at most; false if it is still there.
    pub(crate) fn wait(&self, most: Duration) -> bool {
        matches!(self.left.recv_timeout(most), Err(RecvTimeoutError::Disconnected))
    }

    /// Whether it has left.
    pub(crate) fn has_left(&self) -> bool {
        matches!(self.left.try_recv(), Err(TryRecvError::Disconnected))
    }
}
