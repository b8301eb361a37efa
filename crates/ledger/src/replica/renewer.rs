//! The task that renews this replica's lease in time, and registers again when the lease was lost.

use std::sync::{Arc, Weak};

use tokio::time::{Duration, Instant, sleep, timeout};

use crate::accounts::LedgerState;
use crate::commit::LedgerCore;
use crate::journal::{DatabaseFault, JournalError};
use crate::quota::{LeaseState, QuotaClient, ReplicaEpoch, ReplicaLease};

/// How long giving a lease back may take, and how long to wait before it is tried again.
const RETIRE_MAX: Duration = Duration::from_secs(3);
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Keeps the lease.
pub(super) struct LeaseRenewer {
    pub(super) core: Weak<LedgerCore>,
    pub(super) client: Arc<QuotaClient>,
}

impl LeaseRenewer {
    /// Runs until nothing will be written any more, and retires the lease then.
    pub(super) async fn run(self) {
        loop {
            tokio::select! {
                biased;
                () = self.client.done.cancelled() => break,
                // It may be about an epoch that is over already: the coordinator knows.
                () = self.client.lease_lost.notified() => {}
                () = sleep(self.client.lease_state().renew_interval()) => {}
            }
            self.renew().await;
        }
        let epoch = self.client.epoch();
        if timeout(RETIRE_MAX, self.retire(epoch)).await.is_err() {
            tracing::warn!("this replica's lease was not given back; it runs out by itself");
        }
    }

    /// Tries until it succeeds: a connection that died while it was idle fails when it is used next.
    async fn retire(&self, epoch: ReplicaEpoch) {
        while let Err(error) = self.client.coordinator.retire(epoch).await {
            tracing::debug!(%error, "the lease is not given back yet; trying again");
            sleep(RETRY_DELAY).await;
        }
    }

    async fn renew(&self) {
        let asked = Instant::now();
        let LeaseState { epoch, duration, .. } = self.client.lease_state();
        match with_timeout(duration / 2, self.client.coordinator.renew(epoch)).await {
            Ok(renewal) => {
                self.client.outage.record_success();
                self.client.apply_renewal(epoch, asked, renewal.now, renewal.replicas);
                if let Some(core) = self.core.upgrade() {
                    core.apply_renewal(&renewal);
                }
                self.client.tick.notify_one();
            }
            Err(error) if error.is_lease_lost() => return self.register_anew(duration).await,
            Err(error) => self.client.outage.record_failure("the lease is not renewed", &error),
        }
    }

    /// What was open is posted by the replica that reclaimed the old epoch; nothing of it can be written any more.
    async fn register_anew(&self, duration: Duration) {
        tracing::error!("this replica's lease has run out; what it left open is posted; it registers again");
        let (asked, lease) = loop {
            let asked = Instant::now();
            match with_timeout(duration, self.client.coordinator.register()).await {
                Ok(lease) => {
                    self.client.outage.record_success();
                    break (asked, lease);
                }
                Err(error) => self.client.outage.record_failure("no lease is to be had", &error),
            }
            tokio::select! {
                biased;
                () = self.client.done.cancelled() => return,
                () = sleep(self.client.lease_state().renew_interval()) => {}
            }
        };
        let Some(core) = self.core.upgrade() else { return };
        reset_state(&core, &self.client, asked, &lease);
    }
}

/// Starts with fresh accounts under the new lease; what waits for the old journal fails.
fn reset_state(core: &LedgerCore, client: &QuotaClient, asked: Instant, lease: &ReplicaLease) {
    // Terms that change meanwhile wait for the lock, and are declared to the fresh accounts then.
    let mut accounts = core.accounts();
    *accounts = LedgerState::shared(&client.terms(), lease.now);
    core.queue.replace_journal(lease.journal.clone());
    client.replace_lease(asked, lease);
}

async fn with_timeout<T>(
    timeout_after: Duration,
    call: impl Future<Output = Result<T, JournalError>>,
) -> Result<T, JournalError> {
    let answered = timeout(timeout_after, call).await;
    answered.unwrap_or_else(|_| {
        Err(JournalError::new("the coordinator took too long").with_fault(DatabaseFault::Silent))
    })
}
