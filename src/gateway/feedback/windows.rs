//! Hourly windows of what each account did, for the limits on influence and on changed verdicts.

use std::collections::HashMap;
use std::time::Duration;

use stint_types::units::{AccountId, Timestamp};

const WINDOW: Duration = Duration::from_secs(3600);
/// Accounts that are remembered; those whose window is over go first, and all of them where none is.
const ACCOUNTS_MAX: usize = 4096;

/// The windows of accounts. One begins with the first thing that is done after the one before is over.
#[derive(Debug)]
pub(super) struct AccountWindows<T>(HashMap<AccountId, AccountWindow<T>>);

/// An hour of an account.
#[derive(Debug)]
pub(super) struct AccountWindow<T> {
    began: Timestamp,
    /// What was done in it.
    pub(super) done: T,
}

impl<T> Default for AccountWindows<T> {
    fn default() -> AccountWindows<T> {
        AccountWindows(HashMap::new())
    }
}

impl<T: Default> AccountWindows<T> {
    /// The one that an account is in now.
    pub(super) fn of(&mut self, account: &AccountId, now: Timestamp) -> &mut AccountWindow<T> {
        if !self.0.contains_key(account) && self.0.len() >= ACCOUNTS_MAX {
            self.0.retain(|_, window| now < window.end());
            if self.0.len() >= ACCOUNTS_MAX {
                self.0.clear();
            }
        }
        let fresh = || AccountWindow { began: now, done: T::default() };
        let window = self.0.entry(account.clone()).or_insert_with(fresh);
        if now >= window.end() {
            *window = fresh();
        }
        window
    }
}

impl<T> AccountWindow<T> {
    fn end(&self) -> Timestamp {
        self.began + WINDOW
    }

    /// How long it goes on.
    pub(super) fn left(&self, now: Timestamp) -> Duration {
        Duration::from_millis(self.end().0.abs_diff(now.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_lasts_an_hour_from_what_is_done_first() {
        let mut windows = AccountWindows::<u32>::default();
        let account = AccountId::new("one");
        windows.of(&account, Timestamp(1_000)).done = 7;
        let window = windows.of(&account, Timestamp(3_600_999));
        assert_eq!((window.done, window.left(Timestamp(3_600_999))), (7, Duration::from_millis(1)));
        let window = windows.of(&account, Timestamp(3_601_000));
        assert_eq!((window.done, window.left(Timestamp(3_601_000))), (0, WINDOW), "another hour");
    }

    #[test]
    fn however_many_accounts_there_are_no_more_are_remembered() {
        let mut windows = AccountWindows::<u32>::default();
        for at in 0..2 * ACCOUNTS_MAX {
            windows.of(&AccountId::new(format!("a{at}")), Timestamp(0)).done += 1;
            assert!(windows.0.len() <= ACCOUNTS_MAX);
        }
    }

    #[test]
    fn whose_window_is_over_goes_before_anybody_else() {
        let mut windows = AccountWindows::<u32>::default();
        for at in 0..ACCOUNTS_MAX {
            let at_last = Timestamp(if at == 0 { 1_000 } else { 0 });
            windows.of(&AccountId::new(format!("a{at}")), at_last).done = 7;
        }
        windows.of(&AccountId::new("other"), Timestamp(3_600_500));
        assert_eq!(windows.of(&AccountId::new("a0"), Timestamp(3_600_500)).done, 7);
        assert_eq!(windows.0.len(), 2);
    }
}
