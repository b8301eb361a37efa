//! The timeouts of an upstream.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::poll;
use tokio::time::Instant;

use crate::{Failure, Fault};

/// How long to wait for a piece, and until when for the whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct UpstreamTimeouts {
    pub(super) idle: Duration,
    pub(super) deadline: Instant,
}

impl UpstreamTimeouts {
    /// Waits for it.
    pub(super) async fn wait<T>(self, work: impl Future<Output = T>, otherwise: &str) -> Result<T, Failure> {
        let mut work = pin!(work);
        if let Poll::Ready(result) = poll!(&mut work) {
            return Ok(result);
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        let (patience, why) =
            if left < self.idle { (left, "took too long altogether") } else { (self.idle, otherwise) };
        tokio::time::timeout(patience, work)
            .await
            .map_err(|_| Failure::new(Fault::Timeout, format!("the upstream {why}")))
    }
}
