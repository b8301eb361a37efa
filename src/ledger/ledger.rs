//! The handle: the account machine behind a lock, and the way to the journal.

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::tasks::Tasks;
use crate::tenant::AccountTerms;
use crate::units::{Money, RequestId, Timestamp};

use super::episode::Notifiers;
use super::episode_cache::root;
use super::lease_manager::LeaseManager;
use super::lease_renewer::{LeaseRenewer, reap_expired};
use super::observer::GuardedObserver;
use super::outage::DatabaseOutage;
use super::queue::{CommitReceiver, JournalQueue, OnFailure};
use super::quota_client::{ExtendRequest, QuotaClient, QuotaRequest};
use super::quota_coordinator::QuotaCoordinator;
use super::recover::recover;
use super::sync::{Mutex, MutexGuard};
use super::window_opener::WindowOpener;
use super::writer::LedgerWriter;
use super::{
    AccountId, Amounts, ClosedReservation, ExtensionResult, Journal, LeaseRenewal, LedgerError, LedgerState,
    LedgerStats, Observer, PendingSettlement, RequestScope, Reservation, ReservationRequest, ReserveError,
    ResolutionKind, Settings, Shortfall,
};

/// The ledger. Clones share it.
#[derive(Clone)]
pub struct Ledger {
    pub(super) inner: Arc<LedgerInner>,
}

pub(super) struct LedgerInner {
    /// Never held across an await. Where both locks are held, this one was taken first.
    accounts: Mutex<LedgerState>,
    pub(super) queue: Arc<JournalQueue>,
    observer: Arc<dyn Observer>,
    pub(super) settings: Settings,
    /// Where replicas share the accounts.
    pub(super) sharing: Option<Arc<QuotaClient>>,
    pub(super) outage: Arc<DatabaseOutage>,
    pub(super) notifiers: Notifiers,
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
        let accounts = recover(&*journal, settings.batch_max, terms, now).await?;
        Ok(Ledger::start(tasks, accounts, journal, observer, settings, None))
    }

    /// Opens books that are shared with other replicas: this one begins with nothing, and reserves what slices of the
    /// limits cover that the bank hands out to it.
    pub async fn share(
        tasks: &Tasks,
        bank: Arc<dyn QuotaCoordinator>,
        observer: Arc<dyn Observer>,
        settings: Settings,
        terms: &[AccountTerms],
    ) -> Result<Ledger, LedgerError> {
        let asked = Instant::now();
        let lease = bank.register().await?;
        let news = match bank.renew(lease.epoch).await {
            Ok(news) => news,
            Err(error) => {
                // Nobody will go on with that life.
                if bank.retire(lease.epoch).await.is_err() {
                    tracing::warn!("a lease was not given back; it runs out by itself");
                }
                return Err(error.into());
            }
        };
        let sharing = Arc::new(QuotaClient::new(bank, &lease, asked, terms.to_vec()));
        let mut accounts = LedgerState::default();
        accounts.share();
        accounts.advance_to(lease.now);
        accounts.declare(terms);
        let shared = Some(sharing.clone());
        let ledger = Ledger::start(tasks, accounts, lease.journal, observer, settings, shared);
        ledger.apply_renewal(&news);
        let (inner, other) = (Arc::downgrade(&ledger.inner), Arc::downgrade(&ledger.inner));
        tasks.spawn(LeaseRenewer { ledger: inner, sharing: sharing.clone() }.run());
        tasks.spawn(reap_expired(sharing.clone()));
        tasks.spawn(sharing.clone().listen());
        let banker =
            LeaseManager { ledger: other, sharing, tasks: tasks.clone(), openings: WindowOpener::new() };
        tasks.spawn(banker.run());
        Ok(ledger)
    }

    fn start(
        tasks: &Tasks,
        accounts: LedgerState,
        journal: Arc<dyn Journal>,
        observer: Arc<dyn Observer>,
        settings: Settings,
        sharing: Option<Arc<QuotaClient>>,
    ) -> Ledger {
        let queue = Arc::new(JournalQueue::new(settings, journal));
        let observer: Arc<dyn Observer> = Arc::new(GuardedObserver(observer));
        let outage = sharing.as_ref().map_or_else(Arc::default, |sharing| sharing.outage.clone());
        let writer = LedgerWriter {
            queue: queue.clone(),
            observer: observer.clone(),
            settings,
            sharing: sharing.clone(),
            outage: outage.clone(),
        };
        tasks.spawn(writer.run(tasks.clone()));
        let accounts = Mutex::new(accounts);
        let bells = Notifiers::new();
        Ledger {
            inner: Arc::new(LedgerInner {
                accounts,
                queue,
                observer,
                settings,
                sharing,
                outage,
                notifiers: bells,
            }),
        }
    }

    /// Where entries are, for those who read them.
    pub(super) fn journal(&self) -> Arc<dyn Journal> {
        self.inner.queue.journal()
    }

    /// The time by which windows and leases count: the bank's, where replicas share the accounts, else this machine's.
    pub fn now(&self) -> Timestamp {
        self.inner.sharing.as_ref().map_or_else(Timestamp::now, |sharing| sharing.now())
    }

    /// Puts these terms in force, at once. Accounts without terms may finish what they began and no more. A limit on a
    /// model, a user or a tag that nothing limited before counts what is open now and what comes; what was spent before
    /// it is known after the next start, or, where replicas share the accounts, once the bank has summed it up.
    pub fn declare<'a>(&self, terms: impl IntoIterator<Item = &'a AccountTerms>) {
        let terms: Vec<&AccountTerms> = terms.into_iter().collect();
        if let Some(sharing) = &self.inner.sharing {
            sharing.set_terms(terms.iter().copied().cloned().collect());
        }
        self.accounts().declare(terms);
        if let Some(sharing) = &self.inner.sharing {
            sharing.tick.notify_one();
        }
    }

    /// Sets the worst case aside in memory, under every limit of the account and its ancestors or under none. Where
    /// replicas share the accounts and slices are too small, waits until more is had, or it is clear that there is none.
    pub async fn obtain(&self, claim: ReservationRequest) -> Result<Reservation, ReserveError> {
        let Some(sharing) = &self.inner.sharing else {
            self.ensure_episode_loaded(&claim).await?;
            return self.reserve(claim);
        };
        match self.reserve(claim.clone()) {
            Err(ReserveError::NeedsQuota(_)) => {}
            decided => return decided,
        }
        let (answer, answered) = oneshot::channel();
        sharing.enqueue(QuotaRequest::Reserve(Box::new(claim), answer), self.inner.settings.dispatch_max);
        answered.await.unwrap_or(Err(ReserveError::NoLease))
    }

    /// Takes over what is new at the bank.
    pub(super) fn apply_renewal(&self, news: &LeaseRenewal) {
        let mut accounts = self.accounts();
        accounts.advance_to(news.now);
        for (purse, balance) in &news.balances {
            accounts.apply_balance(purse, balance, false);
        }
    }

    /// True where other replicas share the accounts.
    pub fn is_shared(&self) -> bool {
        self.inner.sharing.is_some()
    }

    /// Has other replicas hand back what they do not use of the limits on such requests, and waits a bounded time for it;
    /// what is left is known then as of now.
    pub async fn refresh_limits(&self, account: &AccountId, about: &RequestScope) {
        let Some(sharing) = &self.inner.sharing else { return };
        if self.accounts().has_fresh_balances(account, about, sharing.now()) {
            return;
        }
        let (answer, answered) = oneshot::channel();
        let what = QuotaRequest::RefreshLimits(account.clone(), about.clone(), answer);
        sharing.enqueue(what, self.inner.settings.dispatch_max);
        // Where nobody answers, what was known before must do.
        let _ = answered.await;
    }

    /// Sets the worst case aside at once, or says why not. A step of a run of which nothing is known here is for
    /// [`Ledger::obtain`].
    pub fn reserve(&self, mut claim: ReservationRequest) -> Result<Reservation, ReserveError> {
        if let Some(sharing) = &self.inner.sharing {
            if !sharing.is_held() {
                return Err(ReserveError::NoLease);
            }
            // Windows are those of the bank's clock, whatever clock the caller reads.
            let (now, long) = (sharing.now(), claim.expires.0.saturating_sub(claim.now.0));
            (claim.now, claim.expires) = (now, Timestamp(now.0.saturating_add(long)));
        }
        let (id, prices) = (claim.id, claim.prices);
        let mut accounts = self.accounts();
        let episode = claim.about.episode.as_ref().filter(|_| !self.is_shared());
        if episode.is_some_and(|episode| !accounts.has_episode(&claim.account, episode)) {
            return Err(ReserveError::Summing);
        }
        let warnings = accounts.reserve(claim)?;
        drop(accounts);
        self.warn(&warnings);
        Ok(Reservation::new(self.clone(), id, prices))
    }

    /// Resolves every reservation whose time is over; says how many. To be called now and then: a guard that was
    /// leaked is found by nobody else.
    pub fn expire(&self, now: Timestamp) -> usize {
        let mut accounts = self.accounts();
        let closed = accounts.expire(now);
        accounts.evict_episodes(self.inner.settings.episode_idle, now);
        for one in closed.iter().filter(|one| !one.entries.is_empty()) {
            drop(self.inner.queue.push(one.entries.clone(), OnFailure::Retry));
        }
        drop(accounts);
        closed.iter().for_each(|one| self.notify_closed(one));
        closed.len()
    }

    /// How long a dispatch or an extension waits until it is durable.
    pub fn dispatch_max(&self) -> Duration {
        self.inner.settings.dispatch_max
    }

    /// Whether what lacks under a limit is merely set aside by other open requests of this replica, so that it may come back.
    /// `own` is what the request that asks has set aside itself.
    pub fn can_be_released(
        &self,
        account: &AccountId,
        about: &RequestScope,
        shortfall: &Shortfall,
        own: Amounts,
    ) -> bool {
        let now = self.now();
        let accounts = self.accounts();
        let mut lines = accounts.statement(account, about, now);
        if let Some(episode) = &about.episode {
            lines.extend(accounts.episode_limit_statuses(account, episode));
        }
        let line = lines.into_iter().find(|line| line.limit == shortfall.limit);
        line.is_some_and(|line| {
            let kept = line.spent.size().saturating_add(own.of(line.max.unit()).size());
            kept.saturating_add(shortfall.needed.size()) <= line.max.size()
        })
    }

    /// All that is set aside now.
    pub fn reserved(&self) -> Amounts {
        self.accounts().reserved()
    }

    /// How many reservations are open.
    pub fn open_reservations(&self) -> usize {
        self.accounts().open()
    }

    /// The state of the way to the journal.
    pub fn stats(&self) -> LedgerStats {
        let stats = self.inner.queue.stats();
        let is_held = self.inner.sharing.as_ref().is_none_or(|sharing| sharing.is_held());
        let gone_since = self.inner.outage.since();
        LedgerStats { stalled: stats.stalled || !is_held, gone_since, ..stats }
    }

    /// What this replica holds of limits on money beyond what is spent and reserved.
    pub fn stranded(&self) -> Money {
        self.accounts().stranded()
    }

    pub(super) fn observer(&self) -> &dyn Observer {
        &*self.inner.observer
    }

    pub(super) fn accounts(&self) -> MutexGuard<'_, LedgerState> {
        self.inner.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn held(&self, id: RequestId) -> Amounts {
        self.accounts().held(id).unwrap_or_default()
    }

    /// Queues the row of a dispatch. From here on it may become durable, whatever happens to the caller.
    pub(super) fn dispatch(&self, id: RequestId) -> Result<CommitReceiver, LedgerError> {
        let mut accounts = self.accounts();
        self.inner.queue.admit()?;
        let entry = accounts.dispatch(id)?;
        Ok(self.inner.queue.push(vec![entry], OnFailure::Report))
    }

    pub(super) fn confirm_dispatch(&self, id: RequestId) -> Result<(), LedgerError> {
        Ok(self.accounts().confirm_dispatch(id)?)
    }

    /// Sets more aside; what has to be awaited, if the reservation is dispatched.
    pub(super) async fn extend(&self, extend: ExtendRequest) -> Result<Option<CommitReceiver>, LedgerError> {
        let extended = self.try_extend(&extend);
        let Some(sharing) = &self.inner.sharing else { return extended };
        match extended {
            Err(LedgerError::Refused(ReserveError::NeedsQuota(_))) => {}
            decided => return decided,
        }
        let (answer, answered) = oneshot::channel();
        sharing.enqueue(QuotaRequest::Extend(extend, answer), self.inner.settings.dispatch_max);
        answered.await.unwrap_or(Err(LedgerError::Closed))
    }

    pub(super) fn try_extend(&self, extend: &ExtendRequest) -> Result<Option<CommitReceiver>, LedgerError> {
        let mut accounts = self.accounts();
        self.inner.queue.admit()?;
        let ExtensionResult { entry, warnings } =
            accounts.extend(extend.id, extend.more, extend.model.as_ref())?;
        let answer = entry.map(|entry| self.inner.queue.push(vec![entry], OnFailure::Report));
        drop(accounts);
        self.warn(&warnings);
        Ok(answer)
    }

    /// Queues a note of what was used so far; where the journal stalls, there is none.
    pub(super) fn meter(&self, id: RequestId, spent: Amounts) {
        let mut accounts = self.accounts();
        if self.inner.queue.admit().is_ok()
            && let Some(entry) = accounts.meter(id, spent, self.now())
        {
            drop(self.inner.queue.push(vec![entry], OnFailure::Report));
        }
    }

    pub(super) fn renew(&self, id: RequestId, expires: Timestamp) -> Result<(), LedgerError> {
        Ok(self.accounts().renew(id, expires)?)
    }

    /// Waits for a commit, a bounded time.
    pub(super) async fn await_commit(&self, answer: &mut CommitReceiver) -> Result<(), LedgerError> {
        match tokio::time::timeout(self.inner.settings.dispatch_max, answer).await {
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
        let closed = close(&mut accounts);
        let entries = closed.as_ref().map(|closed| closed.entries.clone());
        let nothing_to_write = entries.as_ref().is_some_and(Vec::is_empty);
        // Where it was resolved before, an empty job waits for that earlier result.
        let push = || self.inner.queue.push(entries.unwrap_or_default(), OnFailure::Retry);
        let answer = if nothing_to_write { None } else { Some(push()) };
        drop(accounts);
        if let Some(closed) = &closed {
            self.notify_closed(closed);
        }
        PendingSettlement::new(closed.map_or(Money::ZERO, |closed| closed.overrun.money), answer)
    }

    fn notify_closed(&self, closed: &ClosedReservation) {
        if let Some(episode) = &closed.about.episode {
            self.inner.notifiers.notify(episode.as_str());
        }
        self.inner.notifiers.notify(root(&closed.account));
        if closed.overrun != Amounts::ZERO {
            let (request, model, overrun) = (closed.id, &closed.about.model, closed.overrun);
            let Amounts { money, thinking, .. } = overrun;
            tracing::error!(%request, ?model, %money, %thinking, "an upstream took more than was reserved for it");
        }
        if closed.how == ResolutionKind::Expired {
            tracing::warn!(request = %closed.id, "nobody settled a dispatched reservation; it is posted");
        }
        self.inner.observer.resolved(closed);
        self.warn(&closed.warnings);
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl Drop for LedgerInner {
    fn drop(&mut self) {
        self.queue.close();
    }
}
