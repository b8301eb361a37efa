//! What a ledger knows of its lease, and who waits for slices.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use crate::catalog::WorstCase;
use crate::tenant::AccountTerms;
use crate::units::{EpisodeId, RequestId, Timestamp};

use super::lease_state::LeaseState;
use super::outage::DatabaseOutage;
use super::queue::CommitReceiver;
use super::quota_coordinator::{QuotaCoordinator, ReplicaEpoch, ReplicaLease};
use super::{
    AccountId, ChangeNotice, LedgerError, RequestScope, Reservation, ReservationRequest, ReserveError,
};

/// The ledger's side of sharing its accounts.
pub(super) struct QuotaClient {
    pub(super) coordinator: Arc<dyn QuotaCoordinator>,
    state: Mutex<QuotaClientState>,
    waiting: Mutex<VecDeque<QuotaWaiter>>,
    recalls: Mutex<PendingRecalls>,
    /// Somebody waits.
    pub(super) arrived: Notify,
    /// Somebody was told that the lease is over.
    pub(super) lease_lost: Notify,
    /// The keeper has looked around; what is idle may be handed back.
    pub(super) tick: Notify,
    /// Nothing will be written any more.
    pub(super) done: CancellationToken,
    /// Whether the bank works.
    pub(super) outage: Arc<DatabaseOutage>,
}

#[derive(Debug)]
struct QuotaClientState {
    lease: LeaseState,
    terms: Vec<AccountTerms>,
}

/// Whose slices others asked for.
#[derive(Debug, Default)]
pub(super) struct PendingRecalls {
    pub(super) accounts: HashSet<AccountId>,
    /// True where it may be anybody's.
    pub(super) all: bool,
}

/// So many accounts are remembered one by one.
const RECALLS_MAX: usize = 1024;

/// A request that waits for slices.
pub(super) struct QuotaWaiter {
    pub(super) request: QuotaRequest,
    pub(super) deadline: Instant,
    /// When the others were asked to hand back what they do not use.
    pub(super) recalled_at: Option<Instant>,
}

/// What it waits to do.
pub(super) enum QuotaRequest {
    Reserve(Box<ReservationRequest>, oneshot::Sender<Result<Reservation, ReserveError>>),
    Extend(ExtendRequest, oneshot::Sender<Result<Option<CommitReceiver>, LedgerError>>),
    /// Nothing, but to know what there is once the others have handed back what they do not use.
    RefreshLimits(AccountId, RequestScope, oneshot::Sender<()>),
    /// The same of the limits of a run.
    RefreshEpisode(AccountId, EpisodeId, oneshot::Sender<()>),
}

#[derive(Debug, Clone)]
pub(super) struct ExtendRequest {
    pub(super) id: RequestId,
    pub(super) more: WorstCase,
    pub(super) model: Option<Arc<str>>,
}

impl QuotaClient {
    /// `asked` is a moment before the bank was asked for the lease.
    pub(super) fn new(
        bank: Arc<dyn QuotaCoordinator>,
        lease: &ReplicaLease,
        asked: Instant,
        terms: Vec<AccountTerms>,
    ) -> QuotaClient {
        let state = QuotaClientState { lease: LeaseState::new(asked, lease), terms };
        QuotaClient {
            coordinator: bank,
            state: Mutex::new(state),
            waiting: Mutex::default(),
            recalls: Mutex::default(),
            arrived: Notify::new(),
            lease_lost: Notify::new(),
            tick: Notify::new(),
            done: CancellationToken::new(),
            outage: Arc::default(),
        }
    }

    /// Taken after the lock of the accounts where both are held, and never across an await.
    fn state(&self) -> MutexGuard<'_, QuotaClientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This life, as it stands.
    pub(super) fn lease_state(&self) -> LeaseState {
        self.state().lease
    }

    /// What was declared last.
    pub(super) fn terms(&self) -> Vec<AccountTerms> {
        self.state().terms.clone()
    }

    pub(super) fn epoch(&self) -> ReplicaEpoch {
        self.lease_state().epoch
    }

    pub(super) fn replicas(&self) -> u64 {
        self.lease_state().replicas
    }

    /// The bank's time, by our monotonic clock since it was last told.
    pub(super) fn now(&self) -> Timestamp {
        self.lease_state().now(Instant::now())
    }

    /// Whether anything may be reserved.
    pub(super) fn is_held(&self) -> bool {
        self.lease_state().is_held(Instant::now())
    }

    /// A renewal of another life, which came late, is nothing to this one.
    pub(super) fn apply_renewal(&self, epoch: ReplicaEpoch, asked: Instant, now: Timestamp, replicas: u64) {
        let mut state = self.state();
        if state.lease.epoch == epoch {
            state.lease.renew(asked, now, replicas);
        }
    }

    pub(super) fn replace_lease(&self, asked: Instant, lease: &ReplicaLease) {
        self.state().lease = LeaseState::new(asked, lease);
    }

    pub(super) fn set_terms(&self, terms: Vec<AccountTerms>) {
        self.state().terms = terms;
    }

    pub(super) fn enqueue(&self, what: QuotaRequest, patience: Duration) {
        let waiting = QuotaWaiter { request: what, deadline: Instant::now() + patience, recalled_at: None };
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(waiting);
        self.arrived.notify_one();
    }

    /// The first so many who wait.
    pub(super) fn take(&self, most: usize) -> Vec<QuotaWaiter> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let size = waiting.len().min(most);
        waiting.drain(..size).collect()
    }

    /// Whether there is something to do at once.
    pub(super) fn has_work(&self) -> bool {
        let recalls = self.recalls();
        let is_recalled = recalls.all || !recalls.accounts.is_empty();
        drop(recalls);
        is_recalled || !self.waiting.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Hears what others ask for, until nothing will be written any more.
    pub(super) async fn listen(self: Arc<Self>) {
        let mut changes = self.coordinator.changes();
        // What was missed before one listened for the first time was nothing to one who held nothing.
        let mut is_new = true;
        loop {
            let change = tokio::select! {
                () = self.done.cancelled() => return,
                change = changes.next() => change,
            };
            let Some(change) = change else { return };
            if std::mem::take(&mut is_new) && change == ChangeNotice::Unknown {
                continue;
            }
            match change {
                ChangeNotice::Recall { by, .. } if by == self.epoch() => {}
                ChangeNotice::Recall { account, .. } => self.recall([account]),
                ChangeNotice::Unknown => self.recall_all(),
                ChangeNotice::Terms | ChangeNotice::Keys => {}
            }
        }
    }

    /// What these accounts do not use is to be handed back.
    pub(super) fn recall(&self, accounts: impl IntoIterator<Item = AccountId>) {
        let mut recalls = self.recalls();
        for account in accounts {
            match recalls.accounts.len() < RECALLS_MAX {
                true => drop(recalls.accounts.insert(account)),
                false => recalls.all = true,
            }
        }
        drop(recalls);
        self.arrived.notify_one();
    }

    fn recall_all(&self) {
        self.recalls().all = true;
        self.arrived.notify_one();
    }

    pub(super) fn take_recalls(&self) -> PendingRecalls {
        std::mem::take(&mut *self.recalls())
    }

    fn recalls(&self) -> MutexGuard<'_, PendingRecalls> {
        self.recalls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QuotaWaiter {
    /// True where nobody waits any more.
    pub(super) fn is_abandoned(&self) -> bool {
        match &self.request {
            QuotaRequest::Reserve(_, answer) => answer.is_closed(),
            QuotaRequest::Extend(_, answer) => answer.is_closed(),
            QuotaRequest::RefreshLimits(.., answer) | QuotaRequest::RefreshEpisode(.., answer) => {
                answer.is_closed()
            }
        }
    }

    pub(super) fn refuse(self, refused: ReserveError) {
        // Nobody may be waiting any more.
        match self.request {
            QuotaRequest::Reserve(_, answer) => drop(answer.send(Err(refused))),
            QuotaRequest::Extend(_, answer) => drop(answer.send(Err(refused.into()))),
            QuotaRequest::RefreshLimits(.., answer) | QuotaRequest::RefreshEpisode(.., answer) => {
                let _ = answer.send(());
            }
        }
    }
}
