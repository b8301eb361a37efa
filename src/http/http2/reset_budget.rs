//! How many requests a connection may take back: one that is begun and taken back at once costs its caller nothing, and us a request.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// How many may be taken back in a row. Each answer that is taken to its end gives one of them back.
const RESETS_MAX: usize = 100;

/// What is left to a connection.
#[derive(Debug)]
pub(super) struct ResetBudget {
    left: AtomicUsize,
    spent: Notify,
}

impl ResetBudget {
    /// A connection that has taken nothing back.
    pub(super) fn new() -> ResetBudget {
        ResetBudget { left: AtomicUsize::new(RESETS_MAX), spent: Notify::new() }
    }

    /// A connection that may take back what it likes.
    pub(super) fn unlimited() -> ResetBudget {
        ResetBudget { left: AtomicUsize::new(usize::MAX), spent: Notify::new() }
    }

    /// A request was answered to its end.
    pub(super) fn answered(&self) {
        self.change(|left| (1..RESETS_MAX).contains(&left).then(|| left + 1));
    }

    /// A request was taken back.
    pub(super) fn taken_back(&self) {
        if self.change(|left| left.checked_sub(1)) == Some(1) {
            self.spent.notify_one();
        }
    }

    /// True once nothing is left, and then for good.
    pub(super) fn is_spent(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    /// Until nothing is left. One task waits for it.
    pub(super) async fn spent(&self) {
        self.spent.notified().await;
    }

    /// What was left before a change that was made.
    fn change(&self, by: impl FnMut(usize) -> Option<usize>) -> Option<usize> {
        self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, by).ok()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn who_takes_back_more_than_is_answered_has_nothing_left_in_the_end() {
        let budget = ResetBudget::new();
        for _ in 0..10 * RESETS_MAX {
            budget.taken_back();
            budget.answered();
        }
        assert!(!budget.is_spent() && budget.spent().now_or_never().is_none());
        for _ in 0..2 * RESETS_MAX {
            budget.taken_back();
        }
        budget.answered();
        assert!(budget.is_spent(), "for good");
        assert!(budget.spent().now_or_never().is_some());
    }
}
