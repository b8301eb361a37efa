//! Checks an episode out of the store for one step. Several episodes may have the same history; which of them the step
//! continues is final once the step is reserved. If the step is refused, its caller leaves, or the store answers too late,
//! the episode is free again. So the next try gets the same one.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use stint_sessions::agent::{EpisodeOwner, EpisodesError, HistoryHash};
use stint_types::units::{AccountId, EpisodeId, Timestamp};

use super::manager::{EpisodeManager, STORE_PATIENCE};

/// How long an answer of the store is waited for. This is much longer than any step waits, and than a database takes for a
/// statement, since a run whose checkout was not reported is never given back.
const LATE_MAX: Duration = Duration::from_secs(30);

/// An episode that was handed out for a step.
pub(crate) struct EpisodeCheckout {
    manager: EpisodeManager,
    account: AccountId,
    link: HistoryHash,
    id: EpisodeId,
    /// False once it is kept, or given back.
    is_checked_out: bool,
}

impl EpisodeCheckout {
    /// The store has just handed it out, by this history.
    fn new(
        manager: &EpisodeManager,
        account: &AccountId,
        link: HistoryHash,
        id: EpisodeId,
    ) -> EpisodeCheckout {
        EpisodeCheckout { manager: manager.clone(), account: account.clone(), link, id, is_checked_out: true }
    }

    /// Which episode.
    pub(crate) fn id(&self) -> &EpisodeId {
        &self.id
    }

    /// The step is reserved.
    pub(crate) fn commit(mut self) {
        self.is_checked_out = false;
    }

    /// It was refused: when its caller hears that, the episode is free again, unless that takes the store too long.
    pub(crate) async fn release(mut self) {
        let (done, is_done) = oneshot::channel();
        self.give_back(done);
        // It is given back once, also where nobody waits for that any more.
        let _ = timeout(STORE_PATIENCE, is_done).await;
    }

    fn give_back(&mut self, done: oneshot::Sender<()>) {
        if !std::mem::take(&mut self.is_checked_out) {
            return;
        }
        let (manager, account) = (self.manager.clone(), self.account.clone());
        let (link, id) = (self.link, self.id.clone());
        self.manager.spawn(async move {
            manager.release(&account, &link, &id).await;
            let _ = done.send(());
        });
    }
}

impl Drop for EpisodeCheckout {
    fn drop(&mut self) {
        self.give_back(oneshot::channel().0);
    }
}

impl EpisodeManager {
    /// An episode that ends with this history, handed out by the store. If the caller has stopped waiting when the store
    /// answers, the episode is given back.
    pub(crate) async fn check_out(
        &self,
        owner: &EpisodeOwner,
        link: &HistoryHash,
        since: Timestamp,
    ) -> Result<Option<EpisodeCheckout>, EpisodesError> {
        let (manager, owner, link) = (self.clone(), owner.clone(), *link);
        let (answer, answered) = oneshot::channel();
        self.spawn(async move {
            let found = with_late_timeout(manager.inner.store.find(&owner, &link, since)).await;
            // What nobody takes here is dropped.
            let new = |id| EpisodeCheckout::new(&manager, &owner.account, link, id);
            let _ = answer.send(found.map(|id| id.map(new)));
        });
        answered.await.unwrap_or_else(|_| Err(EpisodesError::new("the store's answer got lost")))
    }

    async fn release(&self, account: &AccountId, link: &HistoryHash, id: &EpisodeId) {
        if let Err(error) = with_late_timeout(self.inner.store.release(account, link, id)).await {
            self.report_lost("an unused run could not be given back to the store", &error);
        }
    }
}

async fn with_late_timeout<T>(
    answer: impl Future<Output = Result<T, EpisodesError>>,
) -> Result<T, EpisodesError> {
    let late = |_| EpisodesError::new("the store did not answer at all");
    timeout(LATE_MAX, answer).await.map_err(late)?
}
