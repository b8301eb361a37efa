//! How far the answers of a run are covered by what is set aside for them.
//!
//! All choices of a run share what is covered. A choice says what it has written, and waits where that is used up. Whoever
//! runs them hears of it once half is used, sets more aside beside the stream, and says what came of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::catalog::SolutionEnded;
use crate::units::Tokens;

/// What is covered of all choices together. Clones share it.
#[derive(Debug, Clone)]
pub struct Cover(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit: watch::Sender<Limit>,
    used: AtomicU64,
    half: Notify,
    /// Since when a choice waits for more.
    out: Mutex<Option<Instant>>,
}

/// How much may be written, and why there will not be more.
#[derive(Debug, Clone, Copy)]
struct Limit {
    covered: Tokens,
    ended: Option<SolutionEnded>,
}

/// One choice's part in it.
#[derive(Debug, Clone)]
pub(super) struct Share {
    cover: Cover,
    /// What it may write besides: the thought and what surrounds it, which are set aside whole.
    beside: Tokens,
    used: Tokens,
}

impl Cover {
    /// So many tokens of answer are covered at first.
    pub fn new(covered: Tokens) -> Cover {
        let limit = watch::Sender::new(Limit { covered, ended: None });
        let (used, half, out) = (AtomicU64::new(0), Notify::new(), Mutex::new(None));
        Cover(Arc::new(Shared { limit, used, half, out }))
    }

    /// So many more are.
    pub fn extend(&self, more: Tokens) {
        let mut out = self.out();
        self.0.limit.send_modify(|limit| limit.covered += more);
        *out = None;
    }

    /// There will not be more: choices that use up what is covered end like this.
    pub fn end(&self, ended: SolutionEnded) {
        self.0.limit.send_modify(|limit| limit.ended = Some(ended));
    }

    /// Waits until half of what is covered is used.
    pub async fn half_used(&self) {
        while !self.is_half_used() {
            self.0.half.notified().await;
        }
    }

    /// How long a choice has waited for more, if one does.
    pub fn waited(&self) -> Option<Duration> {
        self.out().map(|since| since.elapsed())
    }

    fn is_half_used(&self) -> bool {
        let covered = self.0.limit.borrow().covered;
        self.used() * 2 >= covered
    }

    fn used(&self) -> Tokens {
        Tokens(self.0.used.load(Ordering::Relaxed))
    }

    fn out(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    pub(super) fn of(cover: &Cover, beside: Tokens) -> Share {
        Share { cover: cover.clone(), beside, used: Tokens::ZERO }
    }

    /// Says that the choice has written or will write so much altogether; true where that is covered.
    pub(super) fn holds(&mut self, written: Tokens) -> bool {
        let used = written.saturating_sub(self.beside).max(self.used);
        let more = used.saturating_sub(self.used);
        self.used = used;
        let shared = &self.cover.0;
        let used = shared.used.fetch_add(more.0, Ordering::Relaxed).saturating_add(more.0);
        if self.cover.is_half_used() {
            shared.half.notify_one();
        }
        Tokens(used) <= shared.limit.borrow().covered
    }

    /// Waits until all is covered that was said to [`holds`](Share::holds).
    ///
    /// # Errors
    /// Why there will not be more.
    pub(super) async fn covered(&self) -> Result<(), SolutionEnded> {
        let shared = &self.cover.0;
        let mut limit = shared.limit.subscribe();
        loop {
            let now = *limit.borrow_and_update();
            if self.cover.used() <= now.covered {
                return Ok(());
            }
            if let Some(ended) = now.ended {
                return Err(ended);
            }
            {
                let mut out = self.cover.out();
                // Who extends it has sent before that is cleared, so a wait that is over does not begin here.
                if limit.has_changed().unwrap_or_default() {
                    continue;
                }
                out.get_or_insert_with(Instant::now);
            }
            // The sender is this cover's own, so it is there.
            let _ = limit.changed().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn choices_share_what_is_covered_and_wait_for_more_once_it_is_used_up() {
        let cover = Cover::new(Tokens(10));
        let (mut one, mut other) = (Share::of(&cover, Tokens(5)), Share::of(&cover, Tokens(5)));
        assert!(one.holds(Tokens(5)), "the thought is set aside whole");
        assert!(tokio::time::timeout(Duration::from_secs(1), cover.half_used()).await.is_err());
        assert!(one.holds(Tokens(9)) && other.holds(Tokens(11)));
        cover.half_used().await;
        assert!(!other.holds(Tokens(12)), "4 and 7 are more than 10");
        assert!(tokio::time::timeout(Duration::from_secs(2), other.covered()).await.is_err());
        assert_eq!(cover.waited(), Some(Duration::from_secs(2)));
        cover.extend(Tokens(1));
        assert_eq!((other.covered().await, cover.waited()), (Ok(()), None));
        assert!(!one.holds(Tokens(10)));
        cover.end(SolutionEnded::Money);
        assert_eq!(one.covered().await, Err(SolutionEnded::Money));
    }
}
