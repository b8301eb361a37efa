//! How others ask the one task that reloads the configuration: the signal SIGHUP, the admin API, and tests.

use futures_util::FutureExt;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use crate::http::admin::{ReloadFn, ReloadOutcome};

/// How many may wait for the next reload. More are served by it too, since it has not begun.
const WAITING_MAX: usize = 16;

/// Asks for reloads. Clones ask the same task.
#[derive(Debug, Clone)]
pub struct ReloadHandle(mpsc::Sender<oneshot::Sender<ReloadOutcome>>);

impl ReloadHandle {
    /// The handle, and the task's end of the channel.
    pub(super) fn new() -> (ReloadHandle, ReloadRequests) {
        let (sender, requests) = mpsc::channel(WAITING_MAX);
        (ReloadHandle(sender), requests)
    }

    /// Reloads the configuration, after earlier requests for it, and gives back what came of it; nothing if the server
    /// ends.
    pub async fn reload(&self) -> Option<ReloadOutcome> {
        let (sender, outcome) = oneshot::channel();
        self.0.send(sender).await.ok()?;
        outcome.await.ok()
    }

    /// The same without waiting.
    pub fn request_reload(&self) {
        // A full channel is fine: those who wait will cause a reload.
        if let Err(TrySendError::Closed(_)) = self.0.try_send(oneshot::channel().0) {
            tracing::error!(
                "not reloaded: the task that reads configurations has ended; restart, and please report it"
            );
        }
    }

    /// The same for the admin API.
    pub(super) fn as_callback(&self) -> ReloadFn {
        let handle = self.clone();
        Box::new(move || {
            let handle = handle.clone();
            async move { handle.reload().await }.boxed()
        })
    }
}

/// Requests for a reload, each with the channel for its outcome.
pub(super) type ReloadRequests = mpsc::Receiver<oneshot::Sender<ReloadOutcome>>;
