//! Purses that are to be opened before anything can be had of them.
//!
//! What was used in their windows before is summed up then, which takes long where a limit on all time is new and many
//! requests came before it. So this is nothing to wait for in an exchange: it runs beside them, and who needs such a
//! purse waits a bounded time.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Duration, sleep, timeout};

use crate::tasks::Tasks;
use crate::units::{Facet, Timestamp, Window};

use super::queue::JournalQueue;
use super::quota_client::QuotaClient;
use super::quota_coordinator::{QuotaWindow, ReplicaEpoch, WindowOpening};
use super::{JournalError, Ledger};

/// How many purses are opened at once.
const PURSES_MAX: usize = 256;
/// How long it may take.
const OPEN_MAX: Duration = Duration::from_secs(600);
/// How long it waits after the bank failed.
const FAILURE_DELAY: Duration = Duration::from_millis(200);

/// Those who wait for a minute's window do not wait for a year's sum, and a run, which is short, waits for neither.
const LANES: usize = 3;

/// Purses that are opened, and those that wait for it.
pub(super) struct WindowOpener {
    waiting: HashMap<QuotaWindow, Option<Timestamp>>,
    running: [HashMap<QuotaWindow, Option<Timestamp>>; LANES],
    opened: (Sender<OpenedWindows>, Receiver<OpenedWindows>),
}

/// What came of some of them.
pub(super) struct OpenedWindows {
    lane: usize,
    epoch: ReplicaEpoch,
    /// What was used of each before it was counted.
    prior_usage: Result<Vec<(WindowOpening, u64)>, JournalError>,
}

impl WindowOpener {
    pub(super) fn new() -> WindowOpener {
        WindowOpener { waiting: HashMap::new(), running: Default::default(), opened: channel(LANES) }
    }

    /// Wants a purse opened.
    pub(super) fn request(&mut self, purse: &QuotaWindow, counted_since: Option<Timestamp>) {
        if !self.contains(purse) {
            self.waiting.insert(purse.clone(), counted_since);
        }
    }

    /// True where it is being opened.
    pub(super) fn contains(&self, purse: &QuotaWindow) -> bool {
        self.waiting.contains_key(purse) || self.running.iter().any(|lane| lane.contains_key(purse))
    }

    /// Begins what can be begun. A lane has one task at a time, and its answer has a place in the channel.
    pub(super) fn start(&mut self, tasks: &Tasks, ledger: &Ledger, sharing: &Arc<QuotaClient>) {
        for at in 0..LANES {
            let theirs = self.waiting.keys().filter(|purse| lane(purse) == at);
            let theirs: Vec<QuotaWindow> = theirs.take(PURSES_MAX).cloned().collect();
            if theirs.is_empty() || !self.running[at].is_empty() {
                continue;
            }
            let part = theirs.into_iter().filter_map(|purse| self.waiting.remove_entry(&purse));
            self.running[at] = part.collect();
            let openings = self.running[at]
                .iter()
                .map(|(purse, since)| WindowOpening { window: purse.clone(), counted_since: *since });
            let openings: Vec<WindowOpening> = openings.collect();
            // What was resolved before it was counted is to be in the rows.
            let is_late = openings.iter().any(|opening| opening.counted_since.is_some());
            let queue = is_late.then(|| ledger.inner.queue.clone());
            let work = open(at, openings, queue, sharing.clone());
            let (opened, done) = (self.opened.0.clone(), sharing.done.clone());
            tasks.spawn(async move {
                let told = tokio::select! {
                    biased;
                    () = done.cancelled() => return,
                    told = work => told,
                };
                // Nobody may be there to hear of it any more.
                drop(opened.send(told).await);
            });
        }
    }

    /// What is opened next. May be dropped and called again.
    pub(super) async fn next(&mut self) -> OpenedWindows {
        match self.opened.1.recv().await {
            Some(opened) => opened,
            // This holds a sender itself.
            None => std::future::pending().await,
        }
    }

    /// Takes over what was used before.
    pub(super) fn complete(&mut self, opened: OpenedWindows, ledger: &Ledger, sharing: &QuotaClient) {
        self.running[opened.lane].clear();
        match opened.prior_usage {
            Ok(before) if sharing.epoch() == opened.epoch => {
                let mut accounts = ledger.accounts();
                for (opening, used) in before {
                    if let Some(since) = opening.counted_since {
                        accounts.add_prior_usage(&opening.window, since, used);
                    }
                }
            }
            // Another life begins with nothing, and asks anew.
            Ok(_) => {}
            Err(error) if error.is_lease_lost() => sharing.lease_lost.notify_one(),
            Err(error) => sharing.outage.record_failure("a new limit's purse is not opened", &error),
        }
    }
}

fn lane(purse: &QuotaWindow) -> usize {
    if let Facet::Episode(_) | Facet::Tool(..) = purse.facet {
        return 2;
    }
    match purse.window {
        Window::Minute | Window::Hour | Window::Day => 0,
        Window::Week | Window::Month | Window::Total => 1,
    }
}

async fn open(
    lane: usize,
    openings: Vec<WindowOpening>,
    queue: Option<Arc<JournalQueue>>,
    sharing: Arc<QuotaClient>,
) -> OpenedWindows {
    let epoch = sharing.epoch();
    let opened = timeout(OPEN_MAX, async {
        if let Some(queue) = queue {
            queue.flush().await?;
        }
        sharing.coordinator.open_windows(epoch, &openings).await
    });
    let told = opened.await.unwrap_or_else(|_| Err(JournalError::new("the bank took too long")));
    if told.as_ref().is_err_and(|error| !error.is_lease_lost()) {
        sleep(FAILURE_DELAY).await;
    }
    OpenedWindows { lane, epoch, prior_usage: told.map(|used| openings.into_iter().zip(used).collect()) }
}
