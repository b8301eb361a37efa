//! What callers write into the database beside their requests: each account so many bytes a second, and in turn. Settlements
//! share the database, so that nobody's notes may hold up everybody's money.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use dashmap::mapref::one::RefMut;
use tokio::time::{Instant, sleep_until, timeout_at};

use stint_types::tasks::{AccountTurns, Turn};
use stint_types::units::AccountId;

/// What a write takes at least, in bytes: it has its own transaction, however small.
const BYTES_MIN: usize = 4 << 10;
/// How many seconds' worth an account may write at once.
const BURST: f64 = 16.0;

/// From so many accounts on, and each time that there are twice as many, those are forgotten that may write all there is.
const ACCOUNTS_MIN: usize = 1024;

/// Limits what accounts write. Clones share what was written.
#[derive(Debug, Clone)]
pub struct WriteLimiter {
    /// Bytes a second, of each account.
    rate: f64,
    /// What each may write now. Its entries are locked for moments and never across an await.
    accounts: Arc<DashMap<AccountId, WriteAllowance>>,
    /// How many there may be before some are forgotten.
    room: Arc<AtomicUsize>,
    turns: AccountTurns,
}

#[derive(Debug)]
struct WriteAllowance {
    /// Bytes that may be written now; below zero for what was written beyond.
    bytes: f64,
    at: Instant,
}

impl WriteLimiter {
    /// So many bytes a second for each account, and sixteen times as many at once.
    pub fn new(bytes_per_second: usize) -> WriteLimiter {
        let rate = float(bytes_per_second.max(1));
        let room = Arc::new(AtomicUsize::new(ACCOUNTS_MIN));
        WriteLimiter { rate, accounts: Arc::default(), room, turns: AccountTurns::new(1) }
    }

    /// Takes so many bytes from what an account may write, if it may write now. More than it has is owed.
    ///
    /// # Errors
    /// How long it must wait.
    pub fn take(&self, account: &AccountId, bytes: usize) -> Result<(), Duration> {
        let mut allowance = self.refilled(account);
        if allowance.bytes <= 0.0 {
            return Err(Duration::from_secs_f64(1.0 - allowance.bytes / self.rate));
        }
        allowance.bytes -= written(bytes);
        Ok(())
    }

    /// Waits for an account's turn to write, so many bytes more than it took: one write of each account, and one of all, at a time.
    pub async fn begin(&self, account: &AccountId, more: usize) -> Turn {
        self.refilled(account).bytes -= float(more);
        self.turns.begin(account).await
    }

    /// Whether an account that began now would be let write so many bytes by then. Nothing is counted.
    pub fn may_begin_before(&self, until: Instant, account: &AccountId, bytes: usize) -> bool {
        self.earliest(&self.refilled(account), written(bytes)) <= until
    }

    /// Counts what an account writes, and waits until it may, and for its turn; `None` where that would be later than `until`.
    pub async fn begin_before(&self, until: Instant, account: &AccountId, bytes: usize) -> Option<Turn> {
        let bytes = written(bytes);
        let may = {
            let mut allowance = self.refilled(account);
            let may = self.earliest(&allowance, bytes);
            if may > until {
                return None;
            }
            allowance.bytes -= bytes;
            may
        };
        sleep_until(may).await;
        timeout_at(until, self.turns.begin(account)).await.ok()
    }

    /// When so many bytes may be written.
    fn earliest(&self, allowance: &WriteAllowance, bytes: f64) -> Instant {
        let lacking = (bytes - allowance.bytes).max(0.0);
        Instant::now() + Duration::from_secs_f64(lacking / self.rate)
    }

    /// What an account may write now.
    fn refilled(&self, account: &AccountId) -> RefMut<'_, AccountId, WriteAllowance> {
        let (now, most) = (Instant::now(), self.most());
        if !self.accounts.contains_key(account) {
            self.make_room(now);
        }
        let mut allowance =
            self.accounts.entry(account.clone()).or_insert_with(|| WriteAllowance { bytes: most, at: now });
        allowance.bytes = self.bytes_at(now, &allowance);
        allowance.at = now;
        allowance
    }

    /// What an account may write at once.
    fn most(&self) -> f64 {
        BURST * self.rate
    }

    fn bytes_at(&self, now: Instant, allowance: &WriteAllowance) -> f64 {
        let since = now.saturating_duration_since(allowance.at).as_secs_f64();
        (allowance.bytes + since * self.rate).min(self.most())
    }

    /// Who may write all there is has what a new account has.
    fn make_room(&self, now: Instant) {
        if self.accounts.len() < self.room.load(Ordering::Relaxed) {
            return;
        }
        self.accounts.retain(|_, allowance| self.bytes_at(now, allowance) < self.most());
        self.room.store((2 * self.accounts.len()).max(ACCOUNTS_MIN), Ordering::Relaxed);
    }
}

/// As what a write of so many bytes counts.
fn written(bytes: usize) -> f64 {
    float(bytes.max(BYTES_MIN))
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn float(bytes: usize) -> f64 {
    bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_account_writes_so_much_at_once_and_then_as_much_as_time_gives() {
        let (limiter, account) = (WriteLimiter::new(1 << 20), AccountId::new("a"));
        let write = async |bytes| {
            limiter.take(&account, bytes).map_err(|wait| wait.as_secs())?;
            limiter.begin(&account, 0).await;
            Ok::<(), u64>(())
        };
        for _ in 0..6 {
            assert_eq!(write(3 << 20).await, Ok(()));
        }
        assert_eq!(write(1).await, Err(3), "two more than it has, and one to write with");
        assert_eq!(limiter.take(&AccountId::new("b"), 1), Ok(()), "others have their own");
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(write(1).await, Ok(()));
        tokio::time::advance(Duration::from_secs(3600)).await;
        for _ in 0..4096 {
            assert_eq!(write(1).await, Ok(()), "a small one counts as 4 KiB");
        }
        assert!(write(1).await.is_err());
    }
    #[tokio::test(start_paused = true)]
    async fn accounts_that_have_not_written_for_a_while_are_forgotten() {
        let limiter = WriteLimiter::new(1 << 20);
        let write = |number: usize| limiter.take(&AccountId::new(format!("a{number}")), 1);
        assert!((0..ACCOUNTS_MIN).all(|number| write(number).is_ok()));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(write(ACCOUNTS_MIN), Ok(()));
        assert_eq!(limiter.accounts.len(), 1);
    }
}
