//! Opens quota windows before leases of them can be granted.
//!
//! Opening a window sums up what was used in it before. For a new limit on all time this takes long if there were many
//! requests. So it is no part of an exchange: it runs in tasks beside them, and a request that needs such a window waits a
//! bounded time.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Duration, sleep, timeout};

use crate::commit::{JournalQueue, LedgerCore};
use crate::journal::JournalError;
use crate::quota::{QuotaClient, QuotaWindow, ReplicaEpoch, WindowOpening};
use stint_types::tasks::Tasks;
use stint_types::units::{Facet, Timestamp, Window};

/// How many windows are opened at once.
const WINDOWS_MAX: usize = 256;
/// How long it may take.
const OPEN_MAX: Duration = Duration::from_secs(600);
/// How long it waits after the coordinator failed.
const FAILURE_DELAY: Duration = Duration::from_millis(200);

/// A request for a minute's window does not wait for a year's sum, and an episode, which is short, waits for neither.
const LANES: usize = 3;

/// The windows that are being opened, and those that wait for it.
pub(crate) struct WindowOpener {
    waiting: HashMap<QuotaWindow, Option<Timestamp>>,
    running: [HashMap<QuotaWindow, Option<Timestamp>>; LANES],
    sender: Sender<OpenedWindows>,
    receiver: Receiver<OpenedWindows>,
}

/// The result for the windows of one lane.
pub(crate) struct OpenedWindows {
    lane: usize,
    epoch: ReplicaEpoch,
    /// What was used of each before it was counted here.
    prior_usage: Result<Vec<(WindowOpening, u64)>, JournalError>,
}

impl WindowOpener {
    pub(crate) fn new() -> WindowOpener {
        let (sender, receiver) = channel(LANES);
        WindowOpener { waiting: HashMap::new(), running: Default::default(), sender, receiver }
    }

    /// Wants a window opened.
    pub(crate) fn request(&mut self, window: &QuotaWindow, counted_since: Option<Timestamp>) {
        if !self.contains(window) {
            self.waiting.insert(window.clone(), counted_since);
        }
    }

    /// True while it waits to be opened, or is being opened.
    pub(crate) fn contains(&self, window: &QuotaWindow) -> bool {
        self.waiting.contains_key(window) || self.running.iter().any(|lane| lane.contains_key(window))
    }

    /// Starts what can be started. A lane has one task at a time, and the channel has room for its result.
    pub(crate) fn start(&mut self, tasks: &Tasks, core: &LedgerCore, client: &Arc<QuotaClient>) {
        for at in 0..LANES {
            let theirs = self.waiting.keys().filter(|window| lane(window) == at);
            let theirs: Vec<QuotaWindow> = theirs.take(WINDOWS_MAX).cloned().collect();
            if theirs.is_empty() || !self.running[at].is_empty() {
                continue;
            }
            let part = theirs.into_iter().filter_map(|window| self.waiting.remove_entry(&window));
            self.running[at] = part.collect();
            let openings = self.running[at]
                .iter()
                .map(|(window, since)| WindowOpening { window: window.clone(), counted_since: *since });
            let openings: Vec<WindowOpening> = openings.collect();
            // What was resolved before it was counted must be in the journal.
            let is_late = openings.iter().any(|opening| opening.counted_since.is_some());
            let queue = is_late.then(|| core.queue.clone());
            let work = open(at, openings, queue, client.clone());
            let (opened, done) = (self.sender.clone(), client.done.clone());
            tasks.spawn(async move {
                let result = tokio::select! {
                    biased;
                    () = done.cancelled() => return,
                    result = work => result,
                };
                // Nobody may be waiting any more.
                drop(opened.send(result).await);
            });
        }
    }

    /// The next result. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> OpenedWindows {
        match self.receiver.recv().await {
            Some(opened) => opened,
            // This holds a sender itself.
            None => std::future::pending().await,
        }
    }

    /// Takes over what was used before, unless another epoch has begun, which starts with nothing and asks again.
    pub(crate) fn complete(&mut self, opened: OpenedWindows, core: &LedgerCore, client: &QuotaClient) {
        self.running[opened.lane].clear();
        match opened.prior_usage {
            Ok(before) if client.epoch() == opened.epoch => {
                let mut accounts = core.accounts();
                for (opening, used) in before {
                    if let Some(since) = opening.counted_since {
                        accounts.add_prior_usage(&opening.window, since, used);
                    }
                }
            }
            Ok(_) => {}
            Err(error) if error.is_lease_lost() => client.lease_lost.notify_one(),
            Err(error) => client.outage.record_failure("a new limit's windows are not opened", &error),
        }
    }
}

fn lane(window: &QuotaWindow) -> usize {
    if let Facet::Episode(_) | Facet::Tool(..) = window.facet {
        return 2;
    }
    match window.window {
        Window::Minute | Window::Hour | Window::Day => 0,
        Window::Week | Window::Month | Window::Total => 1,
    }
}

async fn open(
    lane: usize,
    openings: Vec<WindowOpening>,
    queue: Option<Arc<JournalQueue>>,
    client: Arc<QuotaClient>,
) -> OpenedWindows {
    let epoch = client.epoch();
    let opened = timeout(OPEN_MAX, async {
        if let Some(queue) = queue {
            queue.flush().await?;
        }
        client.coordinator.open_windows(epoch, &openings).await
    });
    let used = opened.await.unwrap_or_else(|_| Err(JournalError::new("the coordinator took too long")));
    if used.as_ref().is_err_and(|error| !error.is_lease_lost()) {
        sleep(FAILURE_DELAY).await;
    }
    OpenedWindows { lane, epoch, prior_usage: used.map(|used| openings.into_iter().zip(used).collect()) }
}
