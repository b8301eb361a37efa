//! The timeouts of an upstream.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::poll;
use tokio::time::Instant;

use crate::{FIRST_BYTE_TIMEOUT, Failure, Fault};

/// How long to wait for a piece, and until when for the whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct UpstreamTimeouts {
    pub(super) idle: Duration,
    pub(super) deadline: Instant,
}

impl UpstreamTimeouts {
    /// Waits for it.
    pub(super) async fn wait<T>(self, work: impl Future<Output = T>, otherwise: &str) -> Result<T, Failure> {
        let late = |(_, limit)| match limit {
            TimeLimit::Piece => format!("the upstream {otherwise}"),
            TimeLimit::Whole => "the upstream took too long altogether".to_owned(),
        };
        self.in_time(work).await.map_err(|limit| Failure::new(Fault::Timeout, late(limit)))
    }

    /// Waits for the head of an answer. The message says which time was too short, also to the caller.
    pub(super) async fn wait_for_head<T>(self, work: impl Future<Output = T>) -> Result<T, Failure> {
        let late = |(waited, limit): (Duration, TimeLimit)| {
            let (key, waited) = (limit.key(), waited.as_secs_f64());
            format!(
                "the model's server sent nothing for {waited:.1} s; {key} of its [[backend]] in the gateway's configuration \
                 allows more"
            )
        };
        let failure = |limit| Failure::new(Fault::Timeout, late(limit)).code(FIRST_BYTE_TIMEOUT);
        self.in_time(work).await.map_err(failure)
    }

    /// What comes in time; else how long was waited, and which limit that was.
    async fn in_time<T>(self, work: impl Future<Output = T>) -> Result<T, (Duration, TimeLimit)> {
        let mut work = pin!(work);
        if let Poll::Ready(result) = poll!(&mut work) {
            return Ok(result);
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        let (patience, limit) =
            if left < self.idle { (left, TimeLimit::Whole) } else { (self.idle, TimeLimit::Piece) };
        tokio::time::timeout(patience, work).await.map_err(|_| (patience, limit))
    }
}

/// The limit at which a wait ended.
#[derive(Debug, Clone, Copy)]
enum TimeLimit {
    /// That for one piece.
    Piece,
    /// That for all of them.
    Whole,
}

impl TimeLimit {
    /// What sets it for the first byte.
    fn key(self) -> &'static str {
        match self {
            TimeLimit::Piece => "first_byte_timeout",
            TimeLimit::Whole => "total_timeout",
        }
    }
}
