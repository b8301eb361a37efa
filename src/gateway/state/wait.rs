//! Waiting for what other requests have set aside: they give back what they do not use.
//!
//! Whoever waits for an account's money does so in order of arrival: who comes later goes behind. Steps of a run wait for what
//! parallel steps hold of it, and are woken together. Nobody holds a lock meanwhile, and only so many wait.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use dashmap::DashMap;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::ledger::{RequestScope, ReserveError, Shortfall};
use crate::plan;
use crate::tenant::Tenant;
use crate::units::{AccountId, Holder, Limit, Unit};

use crate::gateway::{Gateway, RequestRefusal};

/// How often is looked at what nobody tells of: what other replicas have given back, and other accounts.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// When to try again after waiting in vain.
pub(in crate::gateway) const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Those who wait, by account.
#[derive(Debug, Default)]
pub(in crate::gateway) struct WaitQueues(DashMap<AccountId, VecDeque<Arc<Notify>>>);

/// How long a request may wait, and its place among those who do.
pub(in crate::gateway) struct BoundedWait {
    queues: Arc<WaitQueues>,
    until: Instant,
    /// How many may wait for one account.
    most: usize,
    position: Option<MoneyQueuePosition>,
}

/// A place among those who wait for an account. Dropping it lets the next one go.
struct MoneyQueuePosition {
    queues: Arc<WaitQueues>,
    account: AccountId,
    wake: Arc<Notify>,
}

impl WaitQueues {
    /// The account of that lineage for which somebody waits.
    fn queued_account(&self, account: &AccountId) -> Option<AccountId> {
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
    pub(in crate::gateway) fn until(queues: &Arc<WaitQueues>, until: Instant, most: usize) -> BoundedWait {
        BoundedWait { queues: queues.clone(), until, most, position: None }
    }

    /// True where it did not wait yet.
    pub(in crate::gateway) fn is_new(&self) -> bool {
        self.position.is_none()
    }

    /// False where somebody came before who waits for the account or for one above it.
    pub(in crate::gateway) fn is_next(&self, account: &AccountId) -> bool {
        match &self.position {
            Some(place) => place.is_first(),
            None => self.queues.queued_account(account).is_none(),
        }
    }

    /// Waits a moment, or until `heard`. False where it has waited long enough, or too many wait already.
    pub(in crate::gateway) async fn pause(
        &mut self,
        account: &AccountId,
        heard: impl Future<Output = ()>,
    ) -> bool {
        if self.position.is_none() {
            self.position = self.queues.enqueue(account, self.most);
        }
        let Some(place) = self.position.as_ref().filter(|_| Instant::now() < self.until) else {
            return false;
        };
        let woken = async {
            tokio::select! {
                () = heard => {}
                () = place.wake.notified() => {}
            }
        };
        let _ = timeout_at(self.until.min(Instant::now() + LOOK_EVERY), woken).await;
        true
    }

    /// The same, until nobody is before it.
    async fn wait_turn(&mut self, account: &AccountId, heard: impl Future<Output = ()>) -> bool {
        if !self.pause(account, heard).await {
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

impl Gateway {
    /// How long a request may wait for money.
    pub(in crate::gateway) fn new_money_wait(&self, deadline: Instant) -> BoundedWait {
        let settings = &self.parts.settings;
        // Whoever waits keeps a place among those in flight, so one account's may have no more than half of these.
        let (until, most) = (Instant::now() + settings.wait_max, settings.flights_max / 2);
        BoundedWait::until(&self.wait_queues, deadline.min(until), most)
    }

    /// Waits for what a request was refused for, where other open requests merely hold it.
    ///
    /// # Errors
    /// The refusal itself, where waiting does not help; that others hold it, where it was waited for in vain.
    pub(in crate::gateway) async fn wait_for_money(
        &self,
        tenant: &Tenant,
        about: &RequestScope,
        refusal: RequestRefusal,
        waiting: &mut BoundedWait,
        heard: impl Future<Output = ()>,
    ) -> Result<(), RequestRefusal> {
        let (holder, shortfall) = match refusal {
            RequestRefusal::FundsReserved { .. } => {
                let holder = waiting.queues.queued_account(&tenant.account);
                (holder.unwrap_or_else(|| tenant.account.clone()), None)
            }
            refusal => match self.held_shortfall(tenant, about, &refusal) {
                Some((holder, shortfall)) => (holder, Some(Box::new(shortfall))),
                None => return Err(refusal),
            },
        };
        if !waiting.wait_turn(&holder, heard).await {
            return Err(RequestRefusal::FundsReserved { shortfall, retry_after: RETRY_AFTER });
        }
        self.parts.ledger.refresh_limits(&tenant.account, about).await;
        Ok(())
    }

    /// Whose limit it is, where what lacks under it is set aside by other requests and not spent.
    fn held_shortfall(
        &self,
        tenant: &Tenant,
        about: &RequestScope,
        refusal: &RequestRefusal,
    ) -> Option<(AccountId, Shortfall)> {
        let shortfall = shortfall(refusal)?;
        let Limit { holder, unit, .. } = &shortfall.limit;
        let holder = match holder {
            Holder::Key => tenant.account.clone(),
            Holder::Account(account) => account.clone(),
            Holder::Request | Holder::Episode => return None,
        };
        // Rates and requests at once are for callers to keep to.
        let waits = matches!(unit, Unit::Money | Unit::Thinking) && !shortfall.limit.is_rate();
        let may = waits
            && self.parts.ledger.can_be_released(&tenant.account, about, &shortfall, Default::default());
        may.then_some((holder, shortfall))
    }
}

/// The limit that leaves too little, where that is why a request was refused.
fn shortfall(refusal: &RequestRefusal) -> Option<Shortfall> {
    match refusal {
        RequestRefusal::LimitExceeded(ReserveError::Shortfall(shortfall)) => Some(shortfall.clone()),
        RequestRefusal::Plan(plan::PlanRefusal::InsufficientQuota {
            limit, needed, left, resets_at, ..
        }) => {
            let limit = Limit::clone(limit);
            Some(Shortfall { limit, needed: *needed, left: *left, resets_at: *resets_at })
        }
        _ => None,
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
