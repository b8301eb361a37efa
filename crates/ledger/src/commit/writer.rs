//! The one writer: it commits whatever arrived while the previous commit ran.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::time::{Instant, sleep};

use crate::Settings;
use crate::journal::{DatabaseFault, DatabaseOutage, Journal, JournalError};
use crate::quota::QuotaClient;
use crate::rows::JournalEntry;
use stint_types::tasks::Tasks;

use super::observer::Observer;
use super::queue::JournalQueue;

/// The task that writes.
pub(crate) struct LedgerWriter {
    pub(crate) queue: Arc<JournalQueue>,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) settings: Settings,
    /// Where replicas share the accounts.
    pub(crate) quota: Option<Arc<QuotaClient>>,
    pub(crate) outage: Arc<DatabaseOutage>,
}

impl LedgerWriter {
    /// Runs until everything is written and nothing can come any more.
    pub(crate) async fn run(self, tasks: Tasks) {
        let mut wait = self.settings.retry_min;
        while let Some(mut batch) = self.queue.next(&tasks).await {
            let entries = batch.take_entries();
            let began = Instant::now();
            match self.append(&*batch.journal, &entries).await {
                Ok(()) => {
                    if !entries.is_empty() {
                        self.outage.record_success();
                    }
                    let took = began.elapsed();
                    self.queue.committed(batch, entries.len(), took);
                    self.observer.committed(entries.len(), took);
                    wait = self.settings.retry_min;
                }
                Err(error) => {
                    self.failed(&error);
                    batch.put_back(entries);
                    self.queue.failed(batch, &error);
                    sleep(wait).await;
                    wait = self.settings.retry_max.min(wait * 2);
                }
            }
        }
        if let Some(quota) = &self.quota {
            quota.done.cancel();
        }
    }

    /// Writes them. What takes longer than new requests wait for is an outage from then on, whatever comes of it.
    async fn append(&self, journal: &dyn Journal, entries: &[JournalEntry]) -> Result<(), JournalError> {
        let mut appending = pin!(append(journal, entries));
        // There is no clock where threads are scheduled by a test.
        if cfg!(feature = "shuttle") {
            return appending.await;
        }
        let limit = self.settings.stall_max;
        tokio::select! {
            biased;
            appended = &mut appending => return appended,
            // Begun only where it waits.
            () = async { sleep(limit).await } => {}
        }
        let late = JournalError::new(format!("nothing was written within {limit:?}"));
        self.outage
            .record_failure("the ledger's journal takes too long", &late.with_fault(DatabaseFault::Silent));
        appending.await
    }

    fn failed(&self, error: &JournalError) {
        self.observer.failed(error);
        if !error.is_lease_lost() {
            self.outage.record_failure("the ledger's journal failed", error);
        }
        if let Some(quota) = self.quota.as_ref().filter(|_| error.is_lease_lost()) {
            quota.lease_lost.notify_one();
        }
    }
}

/// A journal that panics has failed; the writer continues.
async fn append(journal: &dyn Journal, entries: &[JournalEntry]) -> Result<(), JournalError> {
    if entries.is_empty() {
        return Ok(());
    }
    let appended = AssertUnwindSafe(journal.append(entries)).catch_unwind().await;
    appended.unwrap_or_else(|_| Err(JournalError::new("the journal panicked")))
}
