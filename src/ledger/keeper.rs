//! Keeps the lease: renews it in time, and begins anew when it was over. Buries the dead.

use std::sync::{Arc, Weak};

use tokio::time::{Duration, Instant, sleep, timeout};

use super::lease::{Epoch, Lease};
use super::ledger::Inner;
use super::sharing::Sharing;
use super::tenure::Tenure;
use super::{Accounts, JournalError, Ledger};

/// How long giving a lease back may take, and how long to wait before it is tried again.
const RETIRE_MAX: Duration = Duration::from_secs(3);
const AGAIN: Duration = Duration::from_millis(50);

pub(super) struct Keeper {
    pub(super) ledger: Weak<Inner>,
    pub(super) sharing: Arc<Sharing>,
}

impl Keeper {
    /// Runs until nothing will be written any more, and ends this life then.
    pub(super) async fn run(self) {
        loop {
            tokio::select! {
                biased;
                () = self.sharing.done.cancelled() => break,
                // It may be about a life that is over already: the bank knows.
                () = self.sharing.over.notified() => {}
                () = sleep(self.sharing.tenure().pace()) => {}
            }
            self.renew().await;
        }
        let epoch = self.sharing.epoch();
        if timeout(RETIRE_MAX, self.retire(epoch)).await.is_err() {
            tracing::warn!("this replica's lease was not given back; it runs out by itself");
        }
    }

    /// Tries until it is done, since a connection that died while nobody used it is found by whoever uses it next.
    async fn retire(&self, epoch: Epoch) {
        while let Err(error) = self.sharing.bank.retire(epoch).await {
            tracing::debug!(%error, "the lease is not given back yet; trying again");
            sleep(AGAIN).await;
        }
    }

    async fn renew(&self) {
        let (asked, Tenure { epoch, lasts, .. }) = (Instant::now(), self.sharing.tenure());
        match within(lasts / 2, self.sharing.bank.renew(epoch)).await {
            Ok(news) => {
                self.sharing.outage.worked();
                self.sharing.renewed(epoch, asked, news.now, news.replicas);
                if let Some(inner) = self.ledger.upgrade() {
                    Ledger { inner }.hear(&news);
                }
                self.sharing.tick.notify_one();
            }
            Err(error) if error.is_lease_over() => return self.begin_anew(lasts).await,
            Err(error) => self.sharing.outage.failed("the lease is not renewed", &error),
        }
    }

    /// What was open is posted by whoever ended the old life; nothing of it can be written any more.
    async fn begin_anew(&self, lasts: Duration) {
        tracing::error!("this replica's lease has run out; what it left open is posted, and it begins anew");
        let (asked, lease) = loop {
            let asked = Instant::now();
            match within(lasts, self.sharing.bank.register()).await {
                Ok(lease) => {
                    self.sharing.outage.worked();
                    break (asked, lease);
                }
                Err(error) => self.sharing.outage.failed("no lease is to be had", &error),
            }
            tokio::select! {
                biased;
                () = self.sharing.done.cancelled() => return,
                () = sleep(self.sharing.tenure().pace()) => {}
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
            biased;
            () = sharing.done.cancelled() => return,
            () = sleep(sharing.tenure().pace()) => {}
        }
        if !sharing.tenure().may_mourn(Instant::now()) {
            continue;
        }
        let buried = tokio::select! {
            biased;
            buried = sharing.bank.bury() => buried,
            () = bereft(&sharing) => continue,
        };
        match buried {
            Ok(0) => {}
            Ok(count) => tracing::warn!(count, "replicas have died; what they left open is posted"),
            Err(error) => sharing.outage.failed("what a dead replica left open is not posted", &error),
        }
    }
}

/// Resolves once this replica's own lease is over: a burial that it began before may come through much later, when
/// others who could not reach the bank either are about to come back.
async fn bereft(sharing: &Sharing) {
    while sharing.is_held() {
        sleep(sharing.tenure().pace()).await;
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
