//! Limits how often an account may change its verdicts.
//!
//! A first verdict has an answer behind it, which was paid for. Changing a verdict costs nothing. It replaces all that is
//! left of the first verdict's effect. So an account may do it only so often.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use stint_types::units::{AccountId, Timestamp};

use super::windows::AccountWindows;

/// What an account may turn over in a window.
const CHANGES_MAX: u32 = 100;

/// What each account turned over lately. Its lock is held for moments.
#[derive(Debug, Default)]
pub(super) struct ReversalLimiter(Mutex<AccountWindows<u32>>);

impl ReversalLimiter {
    /// Counts one for each of these, or none at all.
    ///
    /// # Errors
    /// How long an account has to wait, where it made too many.
    pub(super) fn take(&self, accounts: &[&AccountId], now: Timestamp) -> Result<(), Duration> {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, account) in accounts.iter().enumerate() {
            let window = windows.of(account, now);
            if window.done >= CHANGES_MAX {
                let wait = window.left(now);
                for counted in &accounts[..at] {
                    let changes = &mut windows.of(counted, now).done;
                    // It may have been forgotten meanwhile.
                    *changes = changes.saturating_sub(1);
                }
                return Err(wait);
            }
            window.done += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_turns_over_only_so_much_in_an_hour_and_others_as_much_beside_it() {
        let changes = ReversalLimiter::default();
        let (one, other) = (AccountId::new("one"), AccountId::new("other"));
        assert!((0..100).all(|at| changes.take(&[&one], Timestamp(at)).is_ok()));
        let wait = changes.take(&[&one], Timestamp(1_800_000)).unwrap_err();
        assert_eq!(wait, Duration::from_secs(1_800));
        assert!(changes.take(&[&other], Timestamp(1_800_000)).is_ok());
        assert!(changes.take(&[&one], Timestamp(3_600_000)).is_ok(), "another hour");
    }

    #[test]
    fn changes_that_belong_together_are_counted_together_or_not_at_all() {
        let changes = ReversalLimiter::default();
        let (one, other) = (AccountId::new("one"), AccountId::new("other"));
        assert!((0..99).all(|at| changes.take(&[&one], Timestamp(at)).is_ok()));
        assert!(changes.take(&[&one, &one], Timestamp(100)).is_err(), "one is left");
        assert!(changes.take(&[&other, &one], Timestamp(100)).is_ok(), "none of the two was counted");
        assert!((0..99).all(|_| changes.take(&[&other, &one], Timestamp(101)).is_err()));
        assert!((0..99).all(|at| changes.take(&[&other], Timestamp(102 + at)).is_ok()), "nor of these");
        assert!(changes.take(&[&other], Timestamp(300)).is_err());
    }
}
