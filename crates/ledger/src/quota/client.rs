//! The lease that this replica holds at the coordinator. The lease renewer renews it; everything else reads it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::journal::DatabaseOutage;
use stint_types::tenant::AccountTerms;
use stint_types::units::{AccountId, Timestamp};

use super::coordinator::{QuotaCoordinator, ReplicaEpoch, ReplicaLease};
use super::lease_state::LeaseState;

/// The replica's side of the coordinator.
pub(crate) struct QuotaClient {
    pub(crate) coordinator: Arc<dyn QuotaCoordinator>,
    state: Mutex<QuotaClientState>,
    /// A call was refused because the lease is over.
    pub(crate) lease_lost: Notify,
    /// The lease was renewed, or the terms have changed: idle quota may be returned.
    pub(crate) tick: Notify,
    /// Nothing will be written any more.
    pub(crate) done: CancellationToken,
    /// Whether the coordinator works.
    pub(crate) outage: Arc<DatabaseOutage>,
}

#[derive(Debug)]
struct QuotaClientState {
    lease: LeaseState,
    terms: HashMap<AccountId, AccountTerms>,
}

impl QuotaClient {
    /// `asked` is a moment before the coordinator was asked for the lease.
    pub(crate) fn new(
        coordinator: Arc<dyn QuotaCoordinator>,
        lease: &ReplicaLease,
        asked: Instant,
        terms: Vec<AccountTerms>,
    ) -> QuotaClient {
        QuotaClient {
            coordinator,
            state: Mutex::new(QuotaClientState {
                lease: LeaseState::new(asked, lease),
                terms: by_account(terms),
            }),
            lease_lost: Notify::new(),
            tick: Notify::new(),
            done: CancellationToken::new(),
            outage: Arc::default(),
        }
    }

    /// Where the lock of the accounts is held too, it is taken first. Never held across an await.
    fn state(&self) -> MutexGuard<'_, QuotaClientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lease, as it stands.
    pub(crate) fn lease_state(&self) -> LeaseState {
        self.state().lease
    }

    /// What was declared last.
    pub(crate) fn terms(&self) -> Vec<AccountTerms> {
        self.state().terms.values().cloned().collect()
    }

    pub(crate) fn epoch(&self) -> ReplicaEpoch {
        self.lease_state().epoch
    }

    pub(crate) fn replicas(&self) -> u64 {
        self.lease_state().replicas
    }

    /// The coordinator's time, carried on by our monotonic clock since it last answered.
    pub(crate) fn now(&self) -> Timestamp {
        self.lease_state().now(Instant::now())
    }

    /// Whether anything may be reserved.
    pub(crate) fn is_held(&self) -> bool {
        self.lease_state().is_held(Instant::now())
    }

    /// Takes over a renewal. One of another epoch, which came late, is ignored.
    pub(crate) fn apply_renewal(&self, epoch: ReplicaEpoch, asked: Instant, now: Timestamp, replicas: u64) {
        let mut state = self.state();
        if state.lease.epoch == epoch {
            state.lease.renew(asked, now, replicas);
        }
    }

    pub(crate) fn replace_lease(&self, asked: Instant, lease: &ReplicaLease) {
        self.state().lease = LeaseState::new(asked, lease);
    }

    pub(crate) fn set_terms(&self, terms: Vec<AccountTerms>) {
        self.state().terms = by_account(terms);
    }

    /// Those of one account beside those of all others.
    pub(crate) fn set_terms_of(&self, terms: &AccountTerms) {
        self.state().terms.insert(terms.account.clone(), terms.clone());
    }

    /// None of one account any more.
    pub(crate) fn remove_terms_of(&self, account: &AccountId) {
        self.state().terms.remove(account);
    }
}

fn by_account(terms: Vec<AccountTerms>) -> HashMap<AccountId, AccountTerms> {
    terms.into_iter().map(|terms| (terms.account.clone(), terms)).collect()
}
