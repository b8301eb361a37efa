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

use crate::ledger::{About, Refused, Shortfall};
use crate::plan;
use crate::tenant::Tenant;
use crate::units::{AccountId, Holder, Limit, Unit};

use super::{Gateway, Refusal};

/// How often is looked at what nobody tells of: what other replicas have given back, and other accounts.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// When to try again after waiting in vain.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Those who wait, by account.
#[derive(Debug, Default)]
pub(super) struct Queues(DashMap<AccountId, VecDeque<Arc<Notify>>>);

/// How long a request may wait, and its place among those who do.
pub(super) struct Waiting {
    queues: Arc<Queues>,
    until: Instant,
    /// How many may wait for one account.
    most: usize,
    place: Option<Place>,
}

/// A place among those who wait for an account. Dropping it lets the next one go.
struct Place {
    queues: Arc<Queues>,
    account: AccountId,
    call: Arc<Notify>,
}

impl Queues {
    /// The account of that lineage for which somebody waits.
    fn waited_for(&self, account: &AccountId) -> Option<AccountId> {
        let known = |path: &str| Some(AccountId::new(path)).filter(|account| self.0.contains_key(account));
        account.lineage().find_map(known)
    }

    fn join(self: &Arc<Self>, account: &AccountId, most: usize) -> Option<Place> {
        let mut waiting = self.0.entry(account.clone()).or_default();
        if waiting.len() >= most.max(1) {
            return None;
        }
        let call = Arc::new(Notify::new());
        waiting.push_back(call.clone());
        drop(waiting);
        Some(Place { queues: self.clone(), account: account.clone(), call })
    }
}

impl Place {
    fn is_first(&self) -> bool {
        let waiting = self.queues.0.get(&self.account);
        waiting.is_none_or(|waiting| waiting.front().is_none_or(|first| Arc::ptr_eq(first, &self.call)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(mut waiting) = self.queues.0.get_mut(&self.account) {
            waiting.retain(|call| !Arc::ptr_eq(call, &self.call));
            if let Some(first) = waiting.front() {
                first.notify_one();
            }
        }
        self.queues.0.remove_if(&self.account, |_, waiting| waiting.is_empty());
    }
}

impl Waiting {
    /// Until that moment at most, and only where no more than so many wait for the same account.
    pub(super) fn until(queues: &Arc<Queues>, until: Instant, most: usize) -> Waiting {
        Waiting { queues: queues.clone(), until, most, place: None }
    }

    /// True where it did not wait yet.
    pub(super) fn is_new(&self) -> bool {
        self.place.is_none()
    }

    /// False where somebody came before who waits for the account or for one above it.
    pub(super) fn goes_first(&self, account: &AccountId) -> bool {
        match &self.place {
            Some(place) => place.is_first(),
            None => self.queues.waited_for(account).is_none(),
        }
    }

    /// Waits a moment, or until `heard`. False where it has waited long enough, or too many wait already.
    pub(super) async fn pause(&mut self, account: &AccountId, heard: impl Future<Output = ()>) -> bool {
        if self.place.is_none() {
            self.place = self.queues.join(account, self.most);
        }
        let Some(place) = self.place.as_ref().filter(|_| Instant::now() < self.until) else { return false };
        let woken = async {
            tokio::select! {
                () = heard => {}
                () = place.call.notified() => {}
            }
        };
        let _ = timeout_at(self.until.min(Instant::now() + LOOK_EVERY), woken).await;
        true
    }

    /// The same, until nobody is before it.
    async fn turn(&mut self, account: &AccountId, heard: impl Future<Output = ()>) -> bool {
        if !self.pause(account, heard).await {
            return false;
        }
        while !self.goes_first(account) {
            if !self.pause(account, std::future::pending()).await {
                return false;
            }
        }
        true
    }
}

impl Gateway {
    /// How long a request may wait for money.
    pub(super) fn waiting(&self, deadline: Instant) -> Waiting {
        let settings = &self.parts.settings;
        // Whoever waits keeps a place among those in flight, so one account's may have no more than half of these.
        let (until, most) = (Instant::now() + settings.wait_max, settings.flights_max / 2);
        Waiting::until(&self.queues, deadline.min(until), most)
    }

    /// Waits for what a request was refused for, where other open requests merely hold it.
    ///
    /// # Errors
    /// The refusal itself, where waiting does not help; that others hold it, where it was waited for in vain.
    pub(super) async fn wait_for_money(
        &self,
        tenant: &Tenant,
        about: &About,
        refusal: Refusal,
        waiting: &mut Waiting,
        heard: impl Future<Output = ()>,
    ) -> Result<(), Refusal> {
        let (holder, shortfall) = match refusal {
            Refusal::Held { .. } => {
                let holder = waiting.queues.waited_for(&tenant.account);
                (holder.unwrap_or_else(|| tenant.account.clone()), None)
            }
            refusal => match self.held(tenant, about, &refusal) {
                Some((holder, shortfall)) => (holder, Some(Box::new(shortfall))),
                None => return Err(refusal),
            },
        };
        if !waiting.turn(&holder, heard).await {
            return Err(Refusal::Held { shortfall, retry_after: RETRY_AFTER });
        }
        self.parts.ledger.gather(&tenant.account, about).await;
        Ok(())
    }

    /// Whose limit it is, where what lacks under it is set aside by other requests and not spent.
    fn held(&self, tenant: &Tenant, about: &About, refusal: &Refusal) -> Option<(AccountId, Shortfall)> {
        let shortfall = shortfall(refusal)?;
        let Limit { holder, unit, .. } = &shortfall.limit;
        let holder = match holder {
            Holder::Key => tenant.account.clone(),
            Holder::Account(account) => account.clone(),
            Holder::Request | Holder::Episode => return None,
        };
        // Rates and requests at once are for callers to keep to.
        let waits = matches!(unit, Unit::Money | Unit::Thinking) && !shortfall.limit.is_rate();
        let may =
            waits && self.parts.ledger.may_come_back(&tenant.account, about, &shortfall, Default::default());
        may.then_some((holder, shortfall))
    }
}

/// The limit that leaves too little, where that is why a request was refused.
fn shortfall(refusal: &Refusal) -> Option<Shortfall> {
    match refusal {
        Refusal::Spent(Refused::Shortfall(shortfall)) => Some(shortfall.clone()),
        Refusal::Plan(plan::Refusal::DoesNotFit { limit, needed, left, resets_at, .. }) => {
            let limit = Limit::clone(limit);
            Some(Shortfall { limit, needed: *needed, left: *left, resets_at: *resets_at })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(queues: &Arc<Queues>) -> Waiting {
        Waiting::until(queues, Instant::now() + Duration::from_secs(30), 2)
    }

    #[tokio::test(start_paused = true)]
    async fn who_came_first_goes_first_and_only_so_many_wait() {
        let (queues, account) = (Arc::new(Queues::default()), AccountId::new("org/key"));
        let [mut one, mut two, mut three] = [waiting(&queues), waiting(&queues), waiting(&queues)];
        assert!(one.goes_first(&account), "nobody waits");
        assert!(one.turn(&account, async {}).await);
        assert!(!two.goes_first(&account) && one.goes_first(&account));
        assert!(two.pause(&account, async {}).await);
        assert!(!three.pause(&account, async {}).await, "two wait already");
        let (second, ()) = tokio::join!(two.turn(&account, std::future::pending()), async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            drop(one);
        });
        assert!(second && two.goes_first(&account));
        drop(two);
        assert!(three.goes_first(&account) && queues.0.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_longer_than_may_be() {
        let (queues, account) = (Arc::new(Queues::default()), AccountId::new("key"));
        let (mut one, mut two) = (waiting(&queues), waiting(&queues));
        assert!(one.turn(&account, async {}).await);
        let began = Instant::now();
        assert!(!two.turn(&account, std::future::pending()).await);
        assert_eq!(began.elapsed(), Duration::from_secs(30));
    }
}
