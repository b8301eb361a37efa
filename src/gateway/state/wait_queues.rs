//! Queues for money, turns and calls that other requests have reserved and may release.
//!
//! Requests wait for an account's money in order of arrival. Steps of an episode wait for what parallel steps hold of it,
//! and are woken together. No lock is held during the wait, and the number of waiting requests is bounded.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use stint_types::units::AccountId;

/// How often waiting requests check for releases that wake nobody: those of other replicas and of other accounts.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The waiting requests, by account.
#[derive(Debug, Default)]
pub(crate) struct WaitQueues(DashMap<AccountId, VecDeque<Arc<Notify>>>);

/// How long a request may wait, and its place in the queue.
pub(crate) struct BoundedWait {
    queues: Arc<WaitQueues>,
    until: Instant,
    /// How many may wait for one account.
    most: usize,
    position: Option<MoneyQueuePosition>,
}

/// A place in the queue of an account. Dropping it wakes the next one.
struct MoneyQueuePosition {
    queues: Arc<WaitQueues>,
    account: AccountId,
    wake: Arc<Notify>,
}

impl WaitQueues {
    /// The account of that lineage that has a waiting request.
    pub(crate) fn queued_account(&self, account: &AccountId) -> Option<AccountId> {
        let known = |path: &str| Some(AccountId::new(path)).filter(|account| self.0.contains_key(account));
        account.lineage().find_map(known)
    }

    fn enqueue(self: &Arc<Self>, account: &AccountId, most: usize) -> Option<MoneyQueuePosition> {
        let mut waiting = self.0.entry(account.clone()).or_default();
        if waiting.len() >= most.max(1) {
            return None;
        }
        let call = Arc::new(Notify::new());
        waiting.push_back(call.clone());
        drop(waiting);
        Some(MoneyQueuePosition { queues: self.clone(), account: account.clone(), wake: call })
    }
}

impl MoneyQueuePosition {
    fn is_first(&self) -> bool {
        let waiting = self.queues.0.get(&self.account);
        waiting.is_none_or(|waiting| waiting.front().is_none_or(|first| Arc::ptr_eq(first, &self.wake)))
    }
}

impl Drop for MoneyQueuePosition {
    fn drop(&mut self) {
        if let Some(mut waiting) = self.queues.0.get_mut(&self.account) {
            waiting.retain(|call| !Arc::ptr_eq(call, &self.wake));
            if let Some(first) = waiting.front() {
                first.notify_one();
            }
        }
        self.queues.0.remove_if(&self.account, |_, waiting| waiting.is_empty());
    }
}

impl BoundedWait {
    /// Until that moment at most, and only where no more than so many wait for the same account.
    pub(crate) fn until(queues: &Arc<WaitQueues>, until: Instant, most: usize) -> BoundedWait {
        BoundedWait { queues: queues.clone(), until, most, position: None }
    }

    /// True if it did not wait yet.
    pub(crate) fn is_new(&self) -> bool {
        self.position.is_none()
    }

    /// False if an earlier request waits for the account or for one above it.
    pub(crate) fn is_next(&self, account: &AccountId) -> bool {
        match &self.position {
            Some(place) => place.is_first(),
            None => self.queues.queued_account(account).is_none(),
        }
    }

    /// Waits a moment, or until `notified`. False if it has waited long enough, or too many wait already.
    pub(crate) async fn pause(&mut self, account: &AccountId, notified: impl Future<Output = ()>) -> bool {
        if self.position.is_none() {
            self.position = self.queues.enqueue(account, self.most);
        }
        let Some(place) = self.position.as_ref().filter(|_| Instant::now() < self.until) else {
            return false;
        };
        let woken = async {
            tokio::select! {
                () = notified => {}
                () = place.wake.notified() => {}
            }
        };
        let _ = timeout_at(self.until.min(Instant::now() + LOOK_EVERY), woken).await;
        true
    }

    /// The same, until nobody is before it.
    pub(crate) async fn wait_turn(
        &mut self,
        account: &AccountId,
        notified: impl Future<Output = ()>,
    ) -> bool {
        if !self.pause(account, notified).await {
            return false;
        }
        while !self.is_next(account) {
            if !self.pause(account, std::future::pending()).await {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(queues: &Arc<WaitQueues>) -> BoundedWait {
        BoundedWait::until(queues, Instant::now() + Duration::from_secs(30), 2)
    }

    #[tokio::test(start_paused = true)]
    async fn who_came_first_goes_first_and_only_so_many_wait() {
        let (queues, account) = (Arc::new(WaitQueues::default()), AccountId::new("org/key"));
        let [mut one, mut two, mut three] = [waiting(&queues), waiting(&queues), waiting(&queues)];
        assert!(one.is_next(&account), "nobody waits");
        assert!(one.wait_turn(&account, async {}).await);
        assert!(!two.is_next(&account) && one.is_next(&account));
        assert!(two.pause(&account, async {}).await);
        assert!(!three.pause(&account, async {}).await, "two wait already");
        let (second, ()) = tokio::join!(two.wait_turn(&account, std::future::pending()), async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            drop(one);
        });
        assert!(second && two.is_next(&account));
        drop(two);
        assert!(three.is_next(&account) && queues.0.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_longer_than_may_be() {
        let (queues, account) = (Arc::new(WaitQueues::default()), AccountId::new("key"));
        let (mut one, mut two) = (waiting(&queues), waiting(&queues));
        assert!(one.wait_turn(&account, async {}).await);
        let began = Instant::now();
        assert!(!two.wait_turn(&account, std::future::pending()).await);
        assert_eq!(began.elapsed(), Duration::from_secs(30));
    }
}
