//! The journal: the durable list of entries, behind a trait that storage implements.

mod error;
mod fault;
mod memory;
mod outage;
mod spend_between;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::rows::{AccountSpend, DispatchEntry, EpisodeUsage, GroupUsage, JournalEntry, UsageQuery};
use crate::seal::Seal;
use stint_types::units::{AccountId, EpisodeId, Timestamp};

pub use error::JournalError;
pub use fault::DatabaseFault;
pub use memory::MemoryJournal;
pub(crate) use outage::DatabaseOutage;
pub use outage::OutageStatus;
use spend_between::SpendBetween;

/// A durable list of entries. `conformance` says in tests what one must do.
pub trait Journal: Send + Sync {
    /// Makes all entries durable, or none. An entry that is there already (by its reservation, its kind and, where it has one,
    /// its step) is left as it is, so that appending again is safe after any failure.
    fn append<'a>(&'a self, entries: &'a [JournalEntry]) -> BoxFuture<'a, Result<(), JournalError>>;

    /// The dispatched reservations that are not resolved, with all that was reserved for each, what was metered last,
    /// and the model that it came to.
    fn unresolved(&self) -> BoxFuture<'_, Result<Vec<DispatchEntry>, JournalError>>;

    /// What each account spent on requests admitted at `since` or later, by the quarter of an hour of the admission:
    /// no time zone's days begin elsewhere.
    fn spend_since(&self, since: Timestamp) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>>;

    /// What each account spent on requests admitted at the first of these moments or later, each request under the last
    /// of them that it was not admitted before; by moment, account, and what the
    /// requests were about. They are in order, and none is of voided requests alone.
    fn spend_between<'a>(
        &'a self,
        moments: &'a [Timestamp],
    ) -> BoxFuture<'a, Result<Vec<AccountSpend>, JournalError>> {
        async move {
            let mut sums = SpendBetween::default();
            for &moment in moments.iter().rev() {
                sums.add_since(moment, self.spend_since(moment).await?);
            }
            Ok(sums.finish())
        }
        .boxed()
    }

    /// What the resolved steps of one episode of an account used, however long ago.
    fn episode_usage<'a>(
        &'a self,
        account: &'a AccountId,
        episode: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<EpisodeUsage, JournalError>>;

    /// What each account spent over all time; `since` in it is the beginning of time.
    fn balances(&self) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>>;

    /// Seals the oldest resolutions that are not sealed yet, as many as one seal may cover. `None` if there are none, or
    /// if another process sealed them while this one waited. Sums are the same before and after. A journal that is lost
    /// with its process need not seal.
    fn seal(&self, now: Timestamp) -> BoxFuture<'_, Result<Option<Seal>, JournalError>> {
        let _ = now;
        async { Ok(None) }.boxed()
    }

    /// The last seal.
    fn last_seal(&self) -> BoxFuture<'_, Result<Option<Seal>, JournalError>> {
        async { Ok(None) }.boxed()
    }

    /// Whether what is written is still where the next start looks for it. This is quick.
    fn check_place(&self) -> Result<(), JournalError> {
        Ok(())
    }

    /// What was used, by group, in the order of the groups.
    fn usage<'a>(&'a self, query: &'a UsageQuery) -> BoxFuture<'a, Result<Vec<GroupUsage>, JournalError>> {
        let _ = query;
        async { Err(JournalError::new("this journal keeps no sums of what was used")) }.boxed()
    }
}
