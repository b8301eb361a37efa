//! The requests that wait for the lease manager: reservations for which this replica holds too little quota, and recalls of
//! quota from other replicas.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Duration, Instant};

use crate::accounts::{ExtendRequest, LedgerError, LimitsOn, QuotaNeed, ReservationRequest, ReserveError};
use crate::commit::{CommitReceiver, LedgerCore, ReservationGuard};
use crate::quota::{ChangeNotice, QuotaClient};
use stint_types::units::AccountId;

/// So many recalled accounts are remembered one by one; beyond, all accounts count as recalled.
const RECALLS_MAX: usize = 1024;

/// The lease manager's inbox. Clones of the ledger put requests in, and a listener puts in the recalls.
#[derive(Default)]
pub(crate) struct QuotaRequests {
    waiting: Mutex<VecDeque<QuotaWaiter>>,
    recalls: Mutex<PendingRecalls>,
    /// Something was put in.
    pub(super) arrived: Notify,
}

/// The accounts whose unused quota other replicas asked for.
#[derive(Debug, Default)]
pub(super) struct PendingRecalls {
    pub(super) accounts: HashSet<AccountId>,
    /// True if it may be any account's.
    pub(super) all: bool,
}

/// A request that waits for quota.
pub(super) struct QuotaWaiter {
    pub(super) request: QuotaRequest,
    pub(super) deadline: Instant,
    /// When the others were asked to return what they do not use.
    pub(super) recalled_at: Option<Instant>,
}

/// What it waits to do.
pub(crate) enum QuotaRequest {
    Reserve(Box<ReservationRequest>, oneshot::Sender<Result<ReservationGuard, ReserveError>>),
    Extend(ExtendRequest, oneshot::Sender<Result<Option<CommitReceiver>, LedgerError>>),
    /// Waits until the other replicas have returned what they do not use of these limits.
    Refresh(AccountId, LimitsOn, oneshot::Sender<()>),
}

impl QuotaRequests {
    /// Puts a request in, which is refused if it is not served within `patience`.
    pub(crate) fn push(&self, request: QuotaRequest, patience: Duration) {
        let waiter = QuotaWaiter { request, deadline: Instant::now() + patience, recalled_at: None };
        self.waiting().push_back(waiter);
        self.arrived.notify_one();
    }

    /// Makes the other replicas return what they do not use of an account's limits. Waits until they have, or until
    /// `patience` is over.
    pub(crate) async fn refresh(&self, account: AccountId, limits: LimitsOn, patience: Duration) {
        let (answer, answered) = oneshot::channel();
        self.push(QuotaRequest::Refresh(account, limits, answer), patience);
        // Without an answer, what was known before must do.
        let _ = answered.await;
    }

    /// The first requests, `max` at most.
    pub(super) fn take(&self, max: usize) -> Vec<QuotaWaiter> {
        let mut waiting = self.waiting();
        let size = waiting.len().min(max);
        waiting.drain(..size).collect()
    }

    /// Whether there is something to do at once.
    pub(super) fn has_work(&self) -> bool {
        let is_recalled = {
            let recalls = self.recalls();
            recalls.all || !recalls.accounts.is_empty()
        };
        is_recalled || !self.waiting().is_empty()
    }

    /// Makes the lease manager return what these accounts do not use.
    pub(super) fn recall(&self, accounts: impl IntoIterator<Item = AccountId>) {
        let mut recalls = self.recalls();
        for account in accounts {
            if recalls.accounts.len() < RECALLS_MAX {
                recalls.accounts.insert(account);
            } else {
                recalls.all = true;
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

    fn waiting(&self) -> MutexGuard<'_, VecDeque<QuotaWaiter>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QuotaWaiter {
    /// Serves the request and answers it; else gives it back with what it still needs.
    pub(super) fn attempt(self, core: &Arc<LedgerCore>) -> Option<(QuotaWaiter, Vec<QuotaNeed>)> {
        let QuotaWaiter { request, deadline, recalled_at } = self;
        let (request, needs) = match request {
            QuotaRequest::Reserve(reserve, answer) => {
                match ReservationGuard::reserve(core, (*reserve).clone()) {
                    Err(ReserveError::NeedsQuota(needs)) => (QuotaRequest::Reserve(reserve, answer), needs),
                    // If nobody waits any more, the guard is dropped, which resolves the reservation.
                    done => {
                        drop(answer.send(done));
                        return None;
                    }
                }
            }
            QuotaRequest::Extend(extend, answer) => match core.extend(&extend) {
                Err(LedgerError::Refused(ReserveError::NeedsQuota(needs))) => {
                    (QuotaRequest::Extend(extend, answer), needs)
                }
                done => {
                    drop(answer.send(done));
                    return None;
                }
            },
            QuotaRequest::Refresh(account, limits, answer) => {
                let needs = core.accounts().need_all(&account, &limits, core.now());
                if needs.is_empty() {
                    // There are no such limits here, so there is nothing to wait for.
                    let _ = answer.send(());
                    return None;
                }
                (QuotaRequest::Refresh(account, limits, answer), needs)
            }
        };
        Some((QuotaWaiter { request, deadline, recalled_at }, needs))
    }

    /// True if nobody waits for the answer any more.
    pub(super) fn is_abandoned(&self) -> bool {
        match &self.request {
            QuotaRequest::Reserve(_, answer) => answer.is_closed(),
            QuotaRequest::Extend(_, answer) => answer.is_closed(),
            QuotaRequest::Refresh(.., answer) => answer.is_closed(),
        }
    }

    /// Refuses it. Nobody may be waiting for the answer any more.
    pub(super) fn refuse(self, refused: ReserveError) {
        match self.request {
            QuotaRequest::Reserve(_, answer) => drop(answer.send(Err(refused))),
            QuotaRequest::Extend(_, answer) => drop(answer.send(Err(refused.into()))),
            QuotaRequest::Refresh(.., answer) => {
                let _ = answer.send(());
            }
        }
    }
}

/// Listens to what other replicas announce, until nothing will be written any more.
pub(super) async fn listen(client: Arc<QuotaClient>, requests: Arc<QuotaRequests>) {
    let mut changes = client.coordinator.changes();
    // A replica that held nothing until now has missed nothing.
    let mut is_first = true;
    loop {
        let change = tokio::select! {
            () = client.done.cancelled() => return,
            change = changes.next() => change,
        };
        let Some(change) = change else { return };
        if std::mem::take(&mut is_first) && change == ChangeNotice::Unknown {
            continue;
        }
        match change {
            ChangeNotice::Recall { by, .. } if by == client.epoch() => {}
            ChangeNotice::Recall { account, .. } => requests.recall([account]),
            ChangeNotice::Unknown => requests.recall_all(),
            ChangeNotice::Terms | ChangeNotice::Keys => {}
        }
    }
}
