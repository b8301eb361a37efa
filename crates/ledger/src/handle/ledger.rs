//! `Ledger`: the handle for the rest of the program. It opens the accounts, reserves, and waits for quota if replicas share
//! them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::Settings;
use crate::accounts::{LedgerError, LimitsOn, ReservationRequest, ReserveError};
use crate::commit::{LedgerCore, Observer, ReservationGuard};
use crate::journal::Journal;
use crate::quota::QuotaCoordinator;
use crate::replica::{QuotaRequest, QuotaRequests, StartedReplica, start_replica};
use crate::rows::RequestScope;
use stint_types::tasks::Tasks;
use stint_types::tenant::AccountTerms;
use stint_types::units::{AccountId, Timestamp};

use super::episode_loading::ensure_episode_loaded;
use super::recover::recover;
use super::reservation::Reservation;

/// The ledger. Clones share it.
#[derive(Clone)]
pub struct Ledger {
    pub(super) core: Arc<LedgerCore>,
    /// Where replicas share the accounts: where requests wait for quota.
    pub(super) requests: Option<Arc<QuotaRequests>>,
}

impl Ledger {
    /// Opens the books: posts what was dispatched and never resolved, and sums up what was spent under these terms.
    pub async fn open(
        tasks: &Tasks,
        journal: Arc<dyn Journal>,
        observer: Arc<dyn Observer>,
        settings: Settings,
        terms: &[AccountTerms],
        now: Timestamp,
    ) -> Result<Ledger, LedgerError> {
        let accounts = recover(&*journal, &*observer, settings.batch_max, terms, now).await?;
        let core = LedgerCore::start(tasks, accounts, journal, observer, settings, None);
        Ok(Ledger { core, requests: None })
    }

    /// Opens books that are shared with other replicas: this one begins with nothing, and reserves what the quota covers
    /// that the coordinator leases to it.
    pub async fn share(
        tasks: &Tasks,
        coordinator: Arc<dyn QuotaCoordinator>,
        observer: Arc<dyn Observer>,
        settings: Settings,
        terms: &[AccountTerms],
    ) -> Result<Ledger, LedgerError> {
        let StartedReplica { core, requests } =
            start_replica(tasks, coordinator, observer, settings, terms).await?;
        Ok(Ledger { core, requests: Some(requests) })
    }

    /// The time by which windows and leases count: the coordinator's, where replicas share the accounts, else this
    /// machine's.
    pub fn now(&self) -> Timestamp {
        self.core.now()
    }

    /// Puts these terms in force, at once. Accounts without terms may finish what they began and no more. A limit on a
    /// model, a user or a tag that nothing limited before counts what is open now and what comes. What was spent before
    /// it is known after the next start, or, where replicas share the accounts, once the coordinator has summed it up.
    pub fn declare<'a>(&self, terms: impl IntoIterator<Item = &'a AccountTerms>) {
        let terms: Vec<&AccountTerms> = terms.into_iter().collect();
        if let Some(quota) = &self.core.quota {
            quota.set_terms(terms.iter().copied().cloned().collect());
        }
        self.core.accounts().declare(terms);
        if let Some(quota) = &self.core.quota {
            quota.tick.notify_one();
        }
    }

    /// Puts the terms of one account in force, at once. Those of all others stay.
    pub fn declare_one(&self, terms: &AccountTerms) {
        if let Some(quota) = &self.core.quota {
            quota.set_terms_of(terms);
        }
        self.core.accounts().declare_one(terms);
    }

    /// Takes one account the right to reserve, and forgets its limits. What it spent stays counted.
    pub fn withdraw(&self, account: &AccountId) {
        if let Some(quota) = &self.core.quota {
            quota.remove_terms_of(account);
        }
        self.core.accounts().withdraw(account);
    }

    /// Reserves the worst case in memory, under every limit of the account and its ancestors or under none. Where replicas
    /// share the accounts and this one holds too little quota, waits until it gets more, or it is clear that there is
    /// none.
    pub async fn obtain(&self, request: ReservationRequest) -> Result<Reservation, ReserveError> {
        let Some(requests) = &self.requests else {
            ensure_episode_loaded(&self.core, &request).await?;
            return self.reserve(request);
        };
        match self.reserve(request.clone()) {
            Err(ReserveError::NeedsQuota(_)) => {}
            decided => return decided,
        }
        let (answer, answered) = oneshot::channel();
        requests.push(QuotaRequest::Reserve(Box::new(request), answer), self.dispatch_max());
        let guard = answered.await.unwrap_or(Err(ReserveError::NoLease))?;
        Ok(Reservation::new(guard, self.requests.clone()))
    }

    /// Reserves the worst case at once, or says why not. For a step of an episode that is not known here,
    /// [`Ledger::obtain`] is to be called instead.
    pub fn reserve(&self, request: ReservationRequest) -> Result<Reservation, ReserveError> {
        let guard = ReservationGuard::reserve(&self.core, request)?;
        Ok(Reservation::new(guard, self.requests.clone()))
    }

    /// True if other replicas share the accounts.
    pub fn is_shared(&self) -> bool {
        self.requests.is_some()
    }

    /// Has other replicas return what they do not use of the limits on such requests, and waits a bounded time for it.
    /// Then it is known what is left as of now.
    pub async fn refresh_limits(&self, account: &AccountId, about: &RequestScope) {
        let Some(requests) = &self.requests else { return };
        let limits = LimitsOn::Requests(about.clone());
        let is_fresh = self.core.accounts().has_fresh_balances(account, &limits, self.now());
        if is_fresh == Some(false) {
            requests.refresh(account.clone(), limits, self.dispatch_max()).await;
        }
    }

    /// Resolves every reservation whose time is over; returns how many. To be called now and then: nothing else finds a
    /// guard that was leaked.
    pub fn expire(&self, now: Timestamp) -> usize {
        self.core.expire(now)
    }

    /// Finds out whether the journal is still in its place; while it is not, nothing new is dispatched. To be called every few
    /// seconds: else the next request finds it out.
    pub fn check_place(&self) {
        self.core.check_place();
    }

    /// How long a dispatch or an extension waits until it is durable.
    pub fn dispatch_max(&self) -> Duration {
        self.core.settings.dispatch_max
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("stats", &self.core.stats()).finish_non_exhaustive()
    }
}
