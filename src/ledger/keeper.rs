//! Keeps the lease: renews it in time, and begins anew when it was over. Buries the dead.

use std::sync::{Arc, Weak};

use tokio::time::{Duration, Instant, sleep, timeout};

use super::lease::Lease;
use super::ledger::Inner;
use super::sharing::Sharing;
use super::{Accounts, JournalError, Ledger};

/// A lease is renewed so many times before it could run out.
const RENEWALS: u32 = 5;

pub(super) struct Keeper {
    pub(super) ledger: Weak<Inner>,
    pub(super) sharing: Arc<Sharing>,
}

impl Keeper {
    /// Runs until nothing will be written any more, and ends this life then.
    pub(super) async fn run(self) {
        loop {
            let lasts = self.sharing.lasts();
            tokio::select! {
                () = self.sharing.done.cancelled() => break,
                () = sleep(lasts / RENEWALS) => self.renew(lasts).await,
                // It may be about a life that is over already: the bank knows.
                () = self.sharing.over.notified() => self.renew(lasts).await,
            }
        }
        let epoch = self.sharing.epoch();
        let retired = timeout(Duration::from_secs(3), self.sharing.bank.retire(epoch)).await;
        if !matches!(retired, Ok(Ok(()))) {
            tracing::warn!("this replica's lease was not given back; it runs out by itself");
        }
    }

    async fn renew(&self, lasts: Duration) {
        let (asked, epoch) = (Instant::now(), self.sharing.epoch());
        match within(lasts / 2, self.sharing.bank.renew(epoch)).await {
            Ok(news) => {
                self.sharing.renewed(asked, news.now, news.replicas);
                if let Some(inner) = self.ledger.upgrade() {
                    Ledger { inner }.hear(&news);
                }
                self.sharing.tick.notify_one();
            }
            Err(error) if error.is_lease_over() => return self.begin_anew(lasts).await,
            Err(error) => tracing::warn!(%error, "the lease is not renewed; trying again"),
        }
    }

    /// What was open is posted by whoever ended the old life; nothing of it can be written any more.
    async fn begin_anew(&self, lasts: Duration) {
        tracing::error!("this replica's lease has run out; what it left open is posted, and it begins anew");
        let (asked, lease) = loop {
            let asked = Instant::now();
            match within(lasts, self.sharing.bank.register()).await {
                Ok(lease) => break (asked, lease),
                Err(error) => tracing::warn!(%error, "no lease is to be had; trying again"),
            }
            tokio::select! {
                () = self.sharing.done.cancelled() => return,
                () = sleep(lasts / RENEWALS) => {}
            }
        };
        let Some(inner) = self.ledger.upgrade() else { return };
        begin(&Ledger { inner }, &self.sharing, asked, &lease);
    }
}

/// Buries the dead, beside the renewals: whoever had many requests is long in burying.
pub(super) async fn mourn(sharing: Arc<Sharing>) {
    loop {
        tokio::select! {
            () = sharing.done.cancelled() => return,
            () = sleep(sharing.lasts() / RENEWALS) => {}
        }
        match sharing.bank.bury().await {
            Ok(0) => {}
            Ok(count) => tracing::warn!(count, "replicas have died; what they left open is posted"),
            Err(error) => tracing::warn!(%error, "a dead replica is not buried; trying again"),
        }
    }
}

/// Fresh accounts, under the new lease; what waits for the old journal is let go.
fn begin(ledger: &Ledger, sharing: &Sharing, asked: Instant, lease: &Lease) {
    // Terms that change meanwhile wait for the lock, and are declared to the fresh accounts then.
    let mut accounts = ledger.accounts();
    let mut fresh = Accounts::default();
    fresh.share();
    fresh.now(lease.now);
    fresh.declare(&sharing.terms());
    *accounts = fresh;
    ledger.inner.queue.begin_anew(lease.journal.clone());
    sharing.begun(asked, lease);
}

async fn within<T>(
    patience: Duration,
    asked: impl Future<Output = Result<T, JournalError>>,
) -> Result<T, JournalError> {
    let answered = timeout(patience, asked).await;
    answered.unwrap_or_else(|_| Err(JournalError::new("the bank took too long")))
}
