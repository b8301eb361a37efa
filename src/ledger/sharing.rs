//! What a ledger knows of its lease, and who waits for slices.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use crate::catalog::WorstCase;
use crate::tenant::Terms;
use crate::units::{EpisodeId, RequestId, Timestamp};

use super::lease::{Bank, Epoch, Lease};
use super::outage::Outage;
use super::queue::Answer;
use super::tenure::Tenure;
use super::{About, AccountId, Change, Claim, LedgerError, Refused, Reservation};

/// The ledger's side of sharing its accounts.
pub(super) struct Sharing {
    pub(super) bank: Arc<dyn Bank>,
    state: Mutex<State>,
    waiting: Mutex<VecDeque<Waiting>>,
    recalls: Mutex<Recalls>,
    /// Somebody waits.
    pub(super) arrived: Notify,
    /// Somebody was told that the lease is over.
    pub(super) over: Notify,
    /// The keeper has looked around; what is idle may be handed back.
    pub(super) tick: Notify,
    /// Nothing will be written any more.
    pub(super) done: CancellationToken,
    /// Whether the bank works.
    pub(super) outage: Arc<Outage>,
}

#[derive(Debug)]
struct State {
    tenure: Tenure,
    terms: Vec<Terms>,
}

/// Whose slices others asked for.
#[derive(Debug, Default)]
pub(super) struct Recalls {
    pub(super) accounts: HashSet<AccountId>,
    /// True where it may be anybody's.
    pub(super) all: bool,
}

/// So many accounts are remembered one by one.
const RECALLS_MAX: usize = 1024;

/// A request that waits for slices.
pub(super) struct Waiting {
    pub(super) what: What,
    pub(super) until: Instant,
    /// When the others were asked to hand back what they do not use.
    pub(super) recalled: Option<Instant>,
}

/// What it waits to do.
pub(super) enum What {
    Reserve(Box<Claim>, oneshot::Sender<Result<Reservation, Refused>>),
    Extend(Extend, oneshot::Sender<Result<Option<Answer>, LedgerError>>),
    /// Nothing, but to know what there is once the others have handed back what they do not use.
    Gather(AccountId, About, oneshot::Sender<()>),
    /// The same of the limits of a run.
    GatherEpisode(AccountId, EpisodeId, oneshot::Sender<()>),
}

#[derive(Debug, Clone)]
pub(super) struct Extend {
    pub(super) id: RequestId,
    pub(super) more: WorstCase,
    pub(super) model: Option<Arc<str>>,
}

impl Sharing {
    /// `asked` is a moment before the bank was asked for the lease.
    pub(super) fn new(bank: Arc<dyn Bank>, lease: &Lease, asked: Instant, terms: Vec<Terms>) -> Sharing {
        let state = State { tenure: Tenure::begun(asked, lease), terms };
        Sharing {
            bank,
            state: Mutex::new(state),
            waiting: Mutex::default(),
            recalls: Mutex::default(),
            arrived: Notify::new(),
            over: Notify::new(),
            tick: Notify::new(),
            done: CancellationToken::new(),
            outage: Arc::default(),
        }
    }

    /// Taken after the lock of the accounts where both are held, and never across an await.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This life, as it stands.
    pub(super) fn tenure(&self) -> Tenure {
        self.state().tenure
    }

    /// What was declared last.
    pub(super) fn terms(&self) -> Vec<Terms> {
        self.state().terms.clone()
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.tenure().epoch
    }

    pub(super) fn replicas(&self) -> u64 {
        self.tenure().replicas
    }

    /// The bank's time, by our monotonic clock since it was last told.
    pub(super) fn now(&self) -> Timestamp {
        self.tenure().now(Instant::now())
    }

    /// Whether anything may be reserved.
    pub(super) fn is_held(&self) -> bool {
        self.tenure().is_held(Instant::now())
    }

    /// A renewal of another life, which came late, is nothing to this one.
    pub(super) fn renewed(&self, epoch: Epoch, asked: Instant, now: Timestamp, replicas: u64) {
        let mut state = self.state();
        if state.tenure.epoch == epoch {
            state.tenure.renewed(asked, now, replicas);
        }
    }

    pub(super) fn begun(&self, asked: Instant, lease: &Lease) {
        self.state().tenure = Tenure::begun(asked, lease);
    }

    pub(super) fn declared(&self, terms: Vec<Terms>) {
        self.state().terms = terms;
    }

    pub(super) fn wait(&self, what: What, patience: Duration) {
        let waiting = Waiting { what, until: Instant::now() + patience, recalled: None };
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(waiting);
        self.arrived.notify_one();
    }

    /// The first so many who wait.
    pub(super) fn take(&self, most: usize) -> Vec<Waiting> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let size = waiting.len().min(most);
        waiting.drain(..size).collect()
    }

    /// Whether there is something to do at once.
    pub(super) fn is_asked(&self) -> bool {
        let recalls = self.recalls();
        let is_recalled = recalls.all || !recalls.accounts.is_empty();
        drop(recalls);
        is_recalled || !self.waiting.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Hears what others ask for, until nothing will be written any more.
    pub(super) async fn listen(self: Arc<Self>) {
        let mut changes = self.bank.changes();
        // What was missed before one listened for the first time was nothing to one who held nothing.
        let mut is_new = true;
        loop {
            let change = tokio::select! {
                () = self.done.cancelled() => return,
                change = changes.next() => change,
            };
            let Some(change) = change else { return };
            if std::mem::take(&mut is_new) && change == Change::Unknown {
                continue;
            }
            match change {
                Change::Recall { by, .. } if by == self.epoch() => {}
                Change::Recall { account, .. } => self.recall([account]),
                Change::Unknown => self.recall_all(),
                Change::Terms | Change::Keys => {}
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

    pub(super) fn take_recalls(&self) -> Recalls {
        std::mem::take(&mut *self.recalls())
    }

    fn recalls(&self) -> MutexGuard<'_, Recalls> {
        self.recalls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// True where nobody waits any more.
    pub(super) fn is_given_up(&self) -> bool {
        match &self.what {
            What::Reserve(_, answer) => answer.is_closed(),
            What::Extend(_, answer) => answer.is_closed(),
            What::Gather(.., answer) | What::GatherEpisode(.., answer) => answer.is_closed(),
        }
    }

    pub(super) fn refuse(self, refused: Refused) {
        // Nobody may be waiting any more.
        match self.what {
            What::Reserve(_, answer) => drop(answer.send(Err(refused))),
            What::Extend(_, answer) => drop(answer.send(Err(refused.into()))),
            What::Gather(.., answer) | What::GatherEpisode(.., answer) => drop(answer.send(())),
        }
    }
}
