//! The end of a connection that loses no answer: one that is closed with bytes unread is reset, and the caller may lose what it has not
//! read yet. So what still comes is read and dropped for a while, at a pace that all connections share: a
//! client that keeps sending large bodies to be refused would otherwise keep the processors busy.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use super::connection::Connection;

/// How long, and for how many bytes, a connection that was ended is read from.
const TIMEOUT: Duration = Duration::from_secs(1);
const BYTES_MAX: usize = 8 << 20;
/// What all connections that end may read in a second: the whole of a line of 1 Gbit/s.
const BYTES_PER_SECOND: u64 = 128 << 20;
/// What may be read at once beyond that.
const BURST: u64 = 4 << 20;
/// No timer is set for less: it would be late by more.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// The pace at which connections that end are read, all of them together.
#[derive(Debug)]
pub(super) struct LingerPace {
    began: Instant,
    /// When all that was read would have come at the pace, in nanoseconds after `began`.
    paid_until: AtomicU64,
}

impl LingerPace {
    pub(super) fn new() -> LingerPace {
        LingerPace { began: Instant::now(), paid_until: AtomicU64::new(0) }
    }

    /// Counts bytes that were read; when more may be.
    fn count(&self, bytes: usize) -> Instant {
        let now = nanoseconds(self.began.elapsed());
        let cost = time_of(bytes as u64);
        // It never fails: there is always a next value.
        let before = self
            .paid_until
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |paid| Some(paid.max(now) + cost));
        let paid = before.unwrap_or(now).max(now) + cost;
        self.began + Duration::from_nanos(paid.saturating_sub(time_of(BURST)))
    }
}

/// How long so many bytes take at the pace, in nanoseconds.
fn time_of(bytes: u64) -> u64 {
    bytes.saturating_mul(1_000_000_000) / BYTES_PER_SECOND
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Ends a connection so that its last answer arrives.
pub(super) async fn linger(mut connection: Connection, pace: &LingerPace) {
    let is_mid_request = connection.is_mid_request();
    let rest = async {
        connection.shutdown().await?;
        let mut scratch = [0; 8 << 10];
        let mut left = if is_mid_request { BYTES_MAX } else { 0 };
        while left > 0 {
            let read = connection.read(&mut scratch).await?;
            if read == 0 {
                break;
            }
            left = left.saturating_sub(read);
            let next = pace.count(read);
            if next >= Instant::now() + PAUSE_MIN {
                tokio::time::sleep_until(next).await;
            }
        }
        Ok::<(), io::Error>(())
    };
    // What goes wrong now concerns nobody.
    let _ = tokio::time::timeout(TIMEOUT, rest).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn all_together_read_no_more_than_the_pace_allows() {
        let pace = LingerPace::new();
        let began = Instant::now();
        assert!(pace.count(4 << 20) <= began, "a first body is read at once");
        assert_eq!((pace.count(64 << 20) - began).as_millis(), 500);
        assert_eq!((pace.count(64 << 20) - began).as_millis(), 1000, "the next read waits behind it");
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(
            pace.count(4 << 20) <= Instant::now(),
            "a time without reading is no debt and saves nothing up"
        );
        assert!(pace.count(64 << 20) > Instant::now());
    }
}
