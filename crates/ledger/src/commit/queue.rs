//! The queue in front of the journal: entries that wait for the writer, and the rule when no more are accepted.
//!
//! It is bounded although resolutions are never refused: there is at most one for each dispatch, and dispatches are
//! refused when too many entries wait.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, PoisonError};

use tokio::sync::{Notify, oneshot};
use tokio::time::{Duration, Instant};

use crate::accounts::LedgerError;
use crate::journal::{Journal, JournalError};
use crate::rows::JournalEntry;
use crate::sync::{Mutex, MutexGuard};
use crate::{LedgerStats, Settings};
use stint_types::tasks::Tasks;
use stint_types::units::RequestId;

/// How a job's commit went.
pub(crate) type CommitReceiver = oneshot::Receiver<Result<(), JournalError>>;

/// What becomes of a job whose commit failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnFailure {
    /// The caller gets the error, and does without.
    Report,
    /// It is retried until it succeeds.
    Retry,
}

/// Entries that belong together.
#[derive(Debug)]
pub(crate) struct JournalJob {
    /// Empty while they are committed.
    entries: Vec<JournalEntry>,
    count: usize,
    on_failure: OnFailure,
    answer: oneshot::Sender<Result<(), JournalError>>,
}

/// What one commit takes, and where to.
pub(crate) struct JournalBatch {
    jobs: Vec<JournalJob>,
    pub(crate) journal: Arc<dyn Journal>,
    journal_epoch: u64,
}

impl JournalBatch {
    /// Takes out the entries of all its jobs, in their order.
    pub(crate) fn take_entries(&mut self) -> Vec<JournalEntry> {
        let mut jobs = self.jobs.iter_mut();
        let mut all = jobs.next().map(|first| std::mem::take(&mut first.entries)).unwrap_or_default();
        jobs.for_each(|job| all.append(&mut job.entries));
        all
    }

    /// Gives them back, where they are not committed.
    pub(crate) fn put_back(&mut self, entries: Vec<JournalEntry>) {
        let mut entries = entries.into_iter();
        for job in &mut self.jobs {
            job.entries.extend(entries.by_ref().take(job.count));
        }
    }
}

/// After so many turns of the runtime in which nobody pushed anything, a commit begins.
const GATHER_QUIET: u32 = 2;

/// The queue. Its lock is never held across an await.
pub(crate) struct JournalQueue {
    settings: Settings,
    state: Mutex<JournalQueueState>,
    arrived: Notify,
}

struct JournalQueueState {
    journal: Arc<dyn Journal>,
    /// Counts the journals.
    journal_epoch: u64,
    jobs: VecDeque<JournalJob>,
    /// Dispatched and not resolved: the writer must not end before they are.
    unresolved: HashSet<RequestId>,
    committing_since: Option<Instant>,
    is_failing: bool,
    is_closed: bool,
    stats: LedgerStats,
}

impl JournalQueue {
    pub(crate) fn new(settings: Settings, journal: Arc<dyn Journal>) -> JournalQueue {
        let state = JournalQueueState {
            journal,
            journal_epoch: 0,
            jobs: VecDeque::new(),
            unresolved: HashSet::new(),
            committing_since: None,
            is_failing: false,
            is_closed: false,
            stats: LedgerStats::default(),
        };
        JournalQueue { settings, state: Mutex::new(state), arrived: Notify::new() }
    }

    /// The journal that the next commit goes to.
    pub(crate) fn journal(&self) -> Arc<dyn Journal> {
        self.state().journal.clone()
    }

    /// Fails all that waits for the journal, which takes nothing any more, and continues with another one.
    pub(crate) fn replace_journal(&self, journal: Arc<dyn Journal>) {
        let mut state = self.state();
        state.journal = journal;
        state.journal_epoch += 1;
        state.unresolved.clear();
        (state.stats.pending, state.is_failing) = (0, false);
        let lost = std::mem::take(&mut state.jobs);
        drop(state);
        fail_jobs(lost, &JournalError::lease_lost());
        self.arrived.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, JournalQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether something new may be dispatched or extended.
    pub(crate) fn admit(&self) -> Result<(), LedgerError> {
        let state = self.state();
        if state.is_closed {
            return Err(LedgerError::Closed);
        }
        if state.is_stalled(&self.settings) { Err(LedgerError::Stalled) } else { Ok(()) }
    }

    /// Puts a job in line. Never waits; with no entries it is answered when all before it are durable.
    pub(crate) fn push(&self, entries: Vec<JournalEntry>, on_failure: OnFailure) -> CommitReceiver {
        let (answer, receiver) = oneshot::channel();
        let mut state = self.state();
        for entry in &entries {
            match entry {
                JournalEntry::Dispatched(row) => drop(state.unresolved.insert(row.id)),
                JournalEntry::Resolved(row) => drop(state.unresolved.remove(&row.id)),
                JournalEntry::Extended(_) | JournalEntry::Metered(_) => {}
            }
        }
        state.stats.pending += usize::from(on_failure == OnFailure::Retry);
        state.jobs.push_back(JournalJob { count: entries.len(), entries, on_failure, answer });
        drop(state);
        self.arrived.notify_one();
        receiver
    }

    /// Waits until all that was resolved so far is durable.
    pub(crate) async fn flush(&self) -> Result<(), JournalError> {
        if self.stats().pending == 0 {
            return Ok(());
        }
        let written = self.push(Vec::new(), OnFailure::Retry);
        written.await.unwrap_or_else(|_| Err(JournalError::new("the ledger has shut down")))
    }

    /// Nothing new will come: the writer ends when it has written what is there.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
        self.arrived.notify_one();
    }

    /// What arrived while the last commit ran; nothing, once all is written and nothing can come any more.
    pub(crate) async fn next(&self, tasks: &Tasks) -> Option<JournalBatch> {
        loop {
            let arrived = self.arrived.notified();
            self.gather().await;
            // Read once: nothing would wake this up for a shutdown that begins between two reads.
            let is_stopping = tasks.is_stopping();
            match self.take(is_stopping) {
                QueuePoll::Batch(batch) => return Some(batch),
                QueuePoll::End => return None,
                QueuePoll::Wait => {}
            }
            tokio::select! {
                () = arrived => {}
                () = tasks.stopping(), if !is_stopping => {}
            }
        }
    }

    /// Lets anyone who is about to push do so first, until hardly anybody does: fewer and larger commits. Nothing waits for a clock.
    async fn gather(&self) {
        let (mut waiting, mut quiet) = (self.state().jobs.len(), 0);
        while waiting > 0 && waiting < self.settings.batch_max && quiet < GATHER_QUIET {
            tokio::task::yield_now().await;
            let before = std::mem::replace(&mut waiting, self.state().jobs.len());
            quiet = if waiting > before { 0 } else { quiet + 1 };
        }
    }

    fn take(&self, is_stopping: bool) -> QueuePoll {
        let mut state = self.state();
        if state.jobs.is_empty() {
            state.is_closed |= is_stopping && state.unresolved.is_empty();
            return if state.is_closed { QueuePoll::End } else { QueuePoll::Wait };
        }
        let size = state.jobs.len().min(self.settings.batch_max.max(1));
        state.committing_since = Some(Instant::now());
        let (journal, journal_epoch) = (state.journal.clone(), state.journal_epoch);
        QueuePoll::Batch(JournalBatch { jobs: state.jobs.drain(..size).collect(), journal, journal_epoch })
    }

    pub(crate) fn committed(&self, batch: JournalBatch, entries: usize, took: Duration) {
        let JournalBatch { jobs, journal_epoch, .. } = batch;
        let mut state = self.state();
        (state.committing_since, state.is_failing) = (None, false);
        if entries > 0 {
            state.stats.commits += 1;
            state.stats.last_commit = took;
        }
        state.stats.entries += u64::try_from(entries).unwrap_or(u64::MAX);
        if journal_epoch == state.journal_epoch {
            state.stats.pending -= jobs.iter().filter(|job| job.on_failure == OnFailure::Retry).count();
        }
        drop(state);
        for job in jobs {
            // Nobody may be waiting any more.
            let _ = job.answer.send(Ok(()));
        }
    }

    /// Puts back what must not be lost, in its old place, and fails the others.
    pub(crate) fn failed(&self, batch: JournalBatch, error: &JournalError) {
        let JournalBatch { jobs, journal_epoch, .. } = batch;
        let mut state = self.state();
        let is_over = journal_epoch != state.journal_epoch;
        let (retried, failed): (Vec<JournalJob>, Vec<JournalJob>) =
            jobs.into_iter().partition(|job| job.on_failure == OnFailure::Retry && !is_over);
        (state.committing_since, state.is_failing) = (None, !is_over);
        state.stats.failures += 1;
        for job in retried.into_iter().rev() {
            state.jobs.push_front(job);
        }
        drop(state);
        fail_jobs(failed, error);
    }

    pub(crate) fn stats(&self) -> LedgerStats {
        let state = self.state();
        let (stalled, unresolved) = (state.is_stalled(&self.settings), state.unresolved.len());
        LedgerStats { stalled, unresolved, ..state.stats }
    }
}

/// Answers with the error. Nobody may be waiting any more.
fn fail_jobs(jobs: impl IntoIterator<Item = JournalJob>, error: &JournalError) {
    for job in jobs {
        let _ = job.answer.send(Err(error.clone()));
    }
}

enum QueuePoll {
    Batch(JournalBatch),
    Wait,
    End,
}

impl JournalQueueState {
    /// A journal that failed and has nothing left to retry is tried with the next dispatch.
    fn is_stalled(&self, settings: &Settings) -> bool {
        let running = self.committing_since.map_or(Duration::ZERO, |since| since.elapsed());
        self.jobs.len() >= settings.pending_max
            || (self.is_failing && self.stats.pending > 0)
            || running > settings.stall_max
    }
}
