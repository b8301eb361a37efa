//! `ReservedOutput`: how much of a request's output is reserved so far.
//!
//! All choices of a request share one pool of reserved tokens. A choice reports what it has written, and waits when the
//! pool is used up. The gateway is woken once half is used. It reserves more while the answer streams, and extends or
//! ends the pool.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use stint_types::catalog::SolutionStopReason;
use stint_types::units::Tokens;

/// The reserved output of all choices together. Clones share it.
#[derive(Debug, Clone)]
pub struct ReservedOutput(Arc<ReservedOutputState>);

#[derive(Debug)]
struct ReservedOutputState {
    limit: watch::Sender<ReservedOutputLimit>,
    used: AtomicU64,
    half: Notify,
    /// Since when a choice waits for more.
    waiting_since: Mutex<Option<Instant>>,
}

/// How much may be written, and why there will not be more.
#[derive(Debug, Clone, Copy)]
struct ReservedOutputLimit {
    reserved: Tokens,
    ended: Option<SolutionStopReason>,
}

/// One choice's share of it.
#[derive(Debug, Clone)]
pub(super) struct ReservedOutputShare {
    pool: ReservedOutput,
    /// What it may write besides: the thought and what surrounds it, which are set aside whole.
    exempt: Tokens,
    used: Tokens,
}

impl ReservedOutput {
    /// So many tokens of answer are reserved at first.
    pub fn new(reserved: Tokens) -> ReservedOutput {
        ReservedOutput(Arc::new(ReservedOutputState {
            limit: watch::Sender::new(ReservedOutputLimit { reserved, ended: None }),
            used: AtomicU64::new(0),
            half: Notify::new(),
            waiting_since: Mutex::new(None),
        }))
    }

    /// So many more are.
    pub fn extend(&self, more: Tokens) {
        let mut waiting_since = self.waiting_since();
        self.0.limit.send_modify(|limit| limit.reserved += more);
        *waiting_since = None;
    }

    /// There will not be more: choices that use up what is reserved end like this.
    pub fn end(&self, ended: SolutionStopReason) {
        self.0.limit.send_modify(|limit| limit.ended = Some(ended));
    }

    /// Waits until half of what is reserved is used.
    pub async fn half_used(&self) {
        while !self.is_half_used() {
            self.0.half.notified().await;
        }
    }

    /// How long a choice has waited for more, if one does.
    pub fn waited(&self) -> Option<Duration> {
        self.waiting_since().map(|since| since.elapsed())
    }

    fn is_half_used(&self) -> bool {
        let reserved = self.0.limit.borrow().reserved;
        self.used() * 2 >= reserved
    }

    fn used(&self) -> Tokens {
        Tokens(self.0.used.load(Ordering::Relaxed))
    }

    fn waiting_since(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.waiting_since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReservedOutputShare {
    pub(super) fn of(pool: &ReservedOutput, exempt: Tokens) -> ReservedOutputShare {
        ReservedOutputShare { pool: pool.clone(), exempt, used: Tokens::ZERO }
    }

    /// The choice has written or will write so much altogether; true if that is reserved.
    pub(super) fn use_up_to(&mut self, written: Tokens) -> bool {
        let used = written.saturating_sub(self.exempt).max(self.used);
        let more = used.saturating_sub(self.used);
        self.used = used;
        let shared = &self.pool.0;
        let used = shared.used.fetch_add(more.0, Ordering::Relaxed).saturating_add(more.0);
        if self.pool.is_half_used() {
            shared.half.notify_one();
        }
        Tokens(used) <= shared.limit.borrow().reserved
    }

    /// Waits until all is reserved that was used by [`use_up_to`](Self::use_up_to).
    ///
    /// # Errors
    /// Why there will not be more.
    pub(super) async fn wait_reserved(&self) -> Result<(), SolutionStopReason> {
        let shared = &self.pool.0;
        let mut limit = shared.limit.subscribe();
        loop {
            let now = *limit.borrow_and_update();
            if self.pool.used() <= now.reserved {
                return Ok(());
            }
            if let Some(ended) = now.ended {
                return Err(ended);
            }
            {
                let mut waiting_since = self.pool.waiting_since();
                // `extend` raises the limit before it clears this, so a wait that is over does not begin here.
                if limit.has_changed().unwrap_or_default() {
                    continue;
                }
                waiting_since.get_or_insert_with(Instant::now);
            }
            // The sender is in this pool, so it is there.
            let _ = limit.changed().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn choices_share_what_is_covered_and_wait_for_more_once_it_is_used_up() {
        let cover = ReservedOutput::new(Tokens(10));
        let (mut one, mut other) =
            (ReservedOutputShare::of(&cover, Tokens(5)), ReservedOutputShare::of(&cover, Tokens(5)));
        assert!(one.use_up_to(Tokens(5)), "the thought is set aside whole");
        assert!(tokio::time::timeout(Duration::from_secs(1), cover.half_used()).await.is_err());
        assert!(one.use_up_to(Tokens(9)) && other.use_up_to(Tokens(11)));
        cover.half_used().await;
        assert!(!other.use_up_to(Tokens(12)), "4 and 7 are more than 10");
        assert!(tokio::time::timeout(Duration::from_secs(2), other.wait_reserved()).await.is_err());
        assert_eq!(cover.waited(), Some(Duration::from_secs(2)));
        cover.extend(Tokens(1));
        assert_eq!((other.wait_reserved().await, cover.waited()), (Ok(()), None));
        assert!(!one.use_up_to(Tokens(10)));
        cover.end(SolutionStopReason::Money);
        assert_eq!(one.wait_reserved().await, Err(SolutionStopReason::Money));
    }
}
