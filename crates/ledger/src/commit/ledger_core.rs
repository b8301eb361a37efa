//! `LedgerCore`: what all clones of a ledger share. It has the accounts behind their lock, and the queue of entries for the
//! journal.
//!
//! A change is made in memory under the lock, and its entries are queued before the lock is released. So entries are in
//! the order of the changes. Warnings and observers come after the lock.

use std::sync::{Arc, PoisonError};

use tokio::time::timeout;

use crate::accounts::{
    ClosedReservation, ExtendRequest, ExtensionResult, LedgerError, LedgerState, LimitStatus, LimitWarning,
    ReservationRequest, ReserveError, WarningCause,
};
use crate::journal::{DatabaseFault, DatabaseOutage, Journal};
use crate::quota::{LeaseRenewal, QuotaClient};
use crate::rows::{Amounts, JournalEntry, ResolutionKind};
use crate::sync::{Mutex, MutexGuard};
use crate::{LedgerStats, Settings};
use stint_types::tasks::Tasks;
use stint_types::units::{AccountId, Money, RequestId, Timestamp};

use super::notifiers::Notifiers;
use super::observer::{GuardedObserver, Observer};
use super::queue::{CommitReceiver, JournalQueue, OnFailure};
use super::settlement::PendingSettlement;
use super::writer::LedgerWriter;

/// The shared part of a ledger. The ledger and the guards of its reservations hold it; when the last of them is gone, the
/// queue is closed, and the writer ends when all is written.
pub(crate) struct LedgerCore {
    /// Never held across an await. Where both locks are held, this one is taken before that of the quota client.
    accounts: Mutex<LedgerState>,
    pub(crate) queue: Arc<JournalQueue>,
    observer: Arc<dyn Observer>,
    pub(crate) settings: Settings,
    /// Where replicas share the accounts.
    pub(crate) quota: Option<Arc<QuotaClient>>,
    outage: Arc<DatabaseOutage>,
    pub(crate) notifiers: Notifiers,
}

impl LedgerCore {
    /// Starts the writer.
    pub(crate) fn start(
        tasks: &Tasks,
        accounts: LedgerState,
        journal: Arc<dyn Journal>,
        observer: Arc<dyn Observer>,
        settings: Settings,
        quota: Option<Arc<QuotaClient>>,
    ) -> Arc<LedgerCore> {
        let queue = Arc::new(JournalQueue::new(settings, journal));
        let observer: Arc<dyn Observer> = Arc::new(GuardedObserver(observer));
        let outage = quota.as_ref().map_or_else(Arc::default, |quota| quota.outage.clone());
        let writer = LedgerWriter {
            queue: queue.clone(),
            observer: observer.clone(),
            settings,
            quota: quota.clone(),
            outage: outage.clone(),
        };
        tasks.spawn(writer.run(tasks.clone()));
        let (accounts, notifiers) = (Mutex::new(accounts), Notifiers::new());
        Arc::new(LedgerCore { accounts, queue, observer, settings, quota, outage, notifiers })
    }

    pub(crate) fn accounts(&self) -> MutexGuard<'_, LedgerState> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time by which windows and leases count: the coordinator's, where replicas share the accounts, else this
    /// machine's.
    pub(crate) fn now(&self) -> Timestamp {
        self.quota.as_ref().map_or_else(Timestamp::now, |quota| quota.now())
    }

    /// Where entries are, for those who read them.
    pub(crate) fn journal(&self) -> Arc<dyn Journal> {
        self.queue.journal()
    }

    /// Reserves the worst case at once, or says why not.
    pub(super) fn reserve(&self, mut request: ReservationRequest) -> Result<(), ReserveError> {
        if let Some(quota) = &self.quota {
            if !quota.is_held() {
                return Err(ReserveError::NoLease);
            }
            // Windows are those of the coordinator's clock, whatever clock the caller reads.
            let (now, long) = (quota.now(), request.expires.0.saturating_sub(request.now.0));
            (request.now, request.expires) = (now, Timestamp(now.0.saturating_add(long)));
        }
        let mut accounts = self.accounts();
        let episode = request.about.episode.as_ref().filter(|_| self.quota.is_none());
        if episode.is_some_and(|episode| !accounts.has_episode(&request.account, episode)) {
            return Err(ReserveError::Summing);
        }
        let warnings = accounts.reserve(request)?;
        drop(accounts);
        self.warn(&warnings);
        Ok(())
    }

    /// Queues the row of a dispatch. From here on it may become durable, whatever happens to the caller.
    pub(crate) fn dispatch(&self, id: RequestId) -> Result<CommitReceiver, LedgerError> {
        let mut accounts = self.accounts();
        self.queue.admit()?;
        let entry = accounts.dispatch(id)?;
        Ok(self.queue.push(vec![entry], OnFailure::Report))
    }

    /// Reserves more, as far as this replica's quota covers it; what has to be awaited, if the reservation is dispatched.
    pub(crate) fn extend(&self, extend: &ExtendRequest) -> Result<Option<CommitReceiver>, LedgerError> {
        let mut accounts = self.accounts();
        self.queue.admit()?;
        let ExtensionResult { entry, warnings } =
            accounts.extend(extend.id, extend.more, extend.model.as_ref())?;
        let answer = entry.map(|entry| self.queue.push(vec![entry], OnFailure::Report));
        drop(accounts);
        self.warn(&warnings);
        Ok(answer)
    }

    /// Queues a note of what was used so far. While the journal stalls, there is none.
    pub(crate) fn meter(&self, id: RequestId, spent: Amounts) {
        let mut accounts = self.accounts();
        if self.queue.admit().is_ok()
            && let Some(entry) = accounts.meter(id, spent, self.now())
        {
            drop(self.queue.push(vec![entry], OnFailure::Report));
        }
    }

    /// Waits for a commit, a bounded time.
    pub(crate) async fn await_commit(&self, answer: &mut CommitReceiver) -> Result<(), LedgerError> {
        match timeout(self.settings.dispatch_max, answer).await {
            Ok(Ok(committed)) => Ok(committed?),
            Ok(Err(_)) => Err(LedgerError::Closed),
            Err(_) => Err(LedgerError::Stalled),
        }
    }

    /// Resolves a reservation in memory and queues what has to be journalled.
    pub(super) fn resolve(
        &self,
        close: impl FnOnce(&mut LedgerState) -> Option<ClosedReservation>,
    ) -> PendingSettlement {
        let mut accounts = self.accounts();
        let Some(closed) = close(&mut accounts) else {
            // An empty job waits for the earlier result.
            return PendingSettlement::late(self.queue.push(Vec::new(), OnFailure::Retry));
        };
        let entries = closed.entries.clone();
        let answer = (!entries.is_empty()).then(|| self.queue.push(entries, OnFailure::Retry));
        drop(accounts);
        self.notify_closed(&closed);
        PendingSettlement::new(closed.overrun.money, answer)
    }

    /// Resolves every reservation whose time is over, and forgets episodes that are not in use; returns how many
    /// reservations there were.
    pub(crate) fn expire(&self, now: Timestamp) -> usize {
        let mut accounts = self.accounts();
        let closed = accounts.expire(now);
        accounts.evict_episodes(self.settings.episode_idle, now);
        for one in closed.iter().filter(|one| !one.entries.is_empty()) {
            drop(self.queue.push(one.entries.clone(), OnFailure::Retry));
        }
        drop(accounts);
        closed.iter().for_each(|one| self.notify_closed(one));
        closed.len()
    }

    fn notify_closed(&self, closed: &ClosedReservation) {
        if let Some(episode) = &closed.about.episode {
            self.notifiers.notify(episode.as_str());
        }
        self.notifiers.notify(root(&closed.account));
        if closed.overrun != Amounts::ZERO {
            let (request, model, overrun) = (closed.id, &closed.about.model, closed.overrun);
            let Amounts { money, thinking, .. } = overrun;
            if money > Money::ZERO {
                tracing::error!(%request, ?model, %money, %thinking, "an upstream took more than was reserved for it");
            } else {
                // A thought that is cut ends with the event that goes beyond its budget. Its money was reserved.
                tracing::info!(%request, ?model, %thinking, "a request used more than was reserved, for no more money");
            }
        }
        if closed.how == ResolutionKind::Expired {
            tracing::warn!(request = %closed.id, "a dispatched reservation was never settled; it is posted");
        }
        self.observer.resolved(closed);
        self.warn(&closed.warnings);
    }

    /// Notifies the observer of what other replicas left open and these entries have posted.
    pub(crate) fn notify_posted(&self, entries: &[JournalEntry]) {
        entries.iter().filter_map(ClosedReservation::of_posted).for_each(|one| self.observer.resolved(&one));
    }

    /// Warns in the log, and notifies the observer.
    pub(crate) fn warn(&self, warnings: &[LimitWarning]) {
        for warning in warnings {
            let LimitStatus { limit, spent, reserved, max, .. } = &warning.status;
            let account = &warning.account;
            match warning.cause {
                WarningCause::NearlyUsedUp => {
                    tracing::warn!(%account, %limit, %spent, %reserved, %max, "a limit is nearly used up");
                }
                WarningCause::Refused => {
                    tracing::warn!(%account, %limit, %spent, %reserved, %max, "a limit refuses requests");
                }
            }
            self.observer.warned(warning);
        }
    }

    /// The state of the way to the journal.
    pub(crate) fn stats(&self) -> LedgerStats {
        let stats = self.queue.stats();
        let is_held = self.quota.as_ref().is_none_or(|quota| quota.is_held());
        let outage = self.outage.status();
        let is_gone = outage.is_some_and(|outage| outage.fault == Some(DatabaseFault::FileGone));
        LedgerStats { stalled: stats.stalled || !is_held || is_gone, outage, ..stats }
    }

    /// Finds out whether the journal is still in its place.
    pub(crate) fn check_place(&self) {
        match self.journal().check_place() {
            Err(error) => self.outage.record_failure("the ledger's file is not in its place", &error),
            Ok(()) => self.outage.record_success_of(DatabaseFault::FileGone),
        }
    }

    /// Takes over what has changed at the coordinator.
    pub(crate) fn apply_renewal(&self, renewal: &LeaseRenewal) {
        let mut accounts = self.accounts();
        accounts.advance_clock(renewal.now);
        for (window, balance) in &renewal.balances {
            accounts.apply_balance(window, balance, false);
        }
    }
}

/// The root of an account's tree.
pub(crate) fn root(account: &AccountId) -> &str {
    account.lineage().next().unwrap_or_default()
}

impl Drop for LedgerCore {
    fn drop(&mut self) {
        self.queue.close();
    }
}
