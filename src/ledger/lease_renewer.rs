//! Keeps the lease: renews it in time, and begins anew when it was over. Buries the dead.

use std::sync::{Arc, Weak};

use tokio::time::{Duration, Instant, sleep, timeout};

use super::lease_state::LeaseState;
use super::ledger::LedgerInner;
use super::quota_client::QuotaClient;
use super::quota_coordinator::{ReplicaEpoch, ReplicaLease};
use super::{JournalError, Ledger, LedgerState};

/// How long giving a lease back may take, and how long to wait before it is tried again.
const RETIRE_MAX: Duration = Duration::from_secs(3);
const RETRY_DELAY: Duration = Duration::from_millis(50);

pub(super) struct LeaseRenewer {
    pub(super) ledger: Weak<LedgerInner>,
    pub(super) sharing: Arc<QuotaClient>,
}

impl LeaseRenewer {
    /// Runs until nothing will be written any more, and ends this life then.
    pub(super) async fn run(self) {
        loop {
            tokio::select! {
                biased;
                () = self.sharing.done.cancelled() => break,
                // It may be about a life that is over already: the bank knows.
                () = self.sharing.lease_lost.notified() => {}
                () = sleep(self.sharing.lease_state().renew_interval()) => {}
            }
            self.renew().await;
        }
        let epoch = self.sharing.epoch();
        if timeout(RETIRE_MAX, self.retire(epoch)).await.is_err() {
            tracing::warn!("this replica's lease was not given back; it runs out by itself");
        }
    }

    /// Tries until it is done, since a connection that died while nobody used it is found by whoever uses it next.
    async fn retire(&self, epoch: ReplicaEpoch) {
        while let Err(error) = self.sharing.coordinator.retire(epoch).await {
            tracing::debug!(%error, "the lease is not given back yet; trying again");
            sleep(RETRY_DELAY).await;
        }
    }

    async fn renew(&self) {
        let (asked, LeaseState { epoch, duration: lasts, .. }) = (Instant::now(), self.sharing.lease_state());
        match with_timeout(lasts / 2, self.sharing.coordinator.renew(epoch)).await {
            Ok(news) => {
                self.sharing.outage.record_success();
                self.sharing.apply_renewal(epoch, asked, news.now, news.replicas);
                if let Some(inner) = self.ledger.upgrade() {
                    Ledger { inner }.apply_renewal(&news);
                }
                self.sharing.tick.notify_one();
            }
            Err(error) if error.is_lease_lost() => return self.register_anew(lasts).await,
            Err(error) => self.sharing.outage.record_failure("the lease is not renewed", &error),
        }
    }

    /// What was open is posted by whoever ended the old life; nothing of it can be written any more.
    async fn register_anew(&self, lasts: Duration) {
        tracing::error!("this replica's lease has run out; what it left open is posted, and it begins anew");
        let (asked, lease) = loop {
            let asked = Instant::now();
            match with_timeout(lasts, self.sharing.coordinator.register()).await {
                Ok(lease) => {
                    self.sharing.outage.record_success();
                    break (asked, lease);
                }
                Err(error) => self.sharing.outage.record_failure("no lease is to be had", &error),
            }
            tokio::select! {
                biased;
                () = self.sharing.done.cancelled() => return,
                () = sleep(self.sharing.lease_state().renew_interval()) => {}
            }
        };
        let Some(inner) = self.ledger.upgrade() else { return };
        reset_state(&Ledger { inner }, &self.sharing, asked, &lease);
    }
}

/// Buries the dead, beside the renewals: whoever had many requests is long in burying.
pub(super) async fn reap_expired(sharing: Arc<QuotaClient>) {
    loop {
        tokio::select! {
            biased;
            () = sharing.done.cancelled() => return,
            () = sleep(sharing.lease_state().renew_interval()) => {}
        }
        if !sharing.lease_state().can_reap(Instant::now()) {
            continue;
        }
        let buried = tokio::select! {
            biased;
            buried = sharing.coordinator.reclaim() => buried,
            () = lease_lost(&sharing) => continue,
        };
        match buried {
            Ok(0) => {}
            Ok(count) => tracing::warn!(count, "replicas have died; what they left open is posted"),
            Err(error) => {
                sharing.outage.record_failure("what a dead replica left open is not posted", &error);
            }
        }
    }
}

/// Resolves once this replica's own lease is over: a burial that it began before may come through much later, when
/// others who could not reach the bank either are about to come back.
async fn lease_lost(sharing: &QuotaClient) {
    while sharing.is_held() {
        sleep(sharing.lease_state().renew_interval()).await;
    }
}

/// Fresh accounts, under the new lease; what waits for the old journal is let go.
fn reset_state(ledger: &Ledger, sharing: &QuotaClient, asked: Instant, lease: &ReplicaLease) {
    // Terms that change meanwhile wait for the lock, and are declared to the fresh accounts then.
    let mut accounts = ledger.accounts();
    let mut fresh = LedgerState::default();
    fresh.share();
    fresh.advance_to(lease.now);
    fresh.declare(&sharing.terms());
    *accounts = fresh;
    ledger.inner.queue.replace_journal(lease.journal.clone());
    sharing.replace_lease(asked, lease);
}

async fn with_timeout<T>(
    patience: Duration,
    asked: impl Future<Output = Result<T, JournalError>>,
) -> Result<T, JournalError> {
    let answered = timeout(patience, asked).await;
    answered.unwrap_or_else(|_| Err(JournalError::new("the bank took too long")))
}
