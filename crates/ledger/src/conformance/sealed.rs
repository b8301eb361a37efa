//! A journal for tests that seals itself while it is tested.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::{
    AccountId, AccountSpend, DispatchEntry, EpisodeUsage, GroupUsage, Journal, JournalEntry, JournalError,
    Seal, UsageQuery,
};
use stint_types::units::{EpisodeId, Timestamp};

/// A journal that seals what is there after every so many appends.
pub struct Sealed<J> {
    journal: J,
    every: usize,
    appends: AtomicUsize,
}

impl<J: Journal> Sealed<J> {
    /// Seals after each so many appends.
    pub fn every(every: usize, journal: J) -> Sealed<J> {
        Sealed { journal, every, appends: AtomicUsize::new(0) }
    }
}

impl<J: Journal> Journal for Sealed<J> {
    fn append<'a>(&'a self, entries: &'a [JournalEntry]) -> BoxFuture<'a, Result<(), JournalError>> {
        async move {
            let appended = self.journal.append(entries).await;
            if self.appends.fetch_add(1, Ordering::Relaxed).is_multiple_of(self.every) {
                while let Some(seal) = self.journal.seal(Timestamp(0)).await? {
                    assert_eq!(self.journal.last_seal().await?, Some(seal));
                }
            }
            appended
        }
        .boxed()
    }

    fn unresolved(&self) -> BoxFuture<'_, Result<Vec<DispatchEntry>, JournalError>> {
        self.journal.unresolved()
    }

    fn spend_since(&self, since: Timestamp) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        self.journal.spend_since(since)
    }

    fn spend_between<'a>(
        &'a self,
        moments: &'a [Timestamp],
    ) -> BoxFuture<'a, Result<Vec<AccountSpend>, JournalError>> {
        self.journal.spend_between(moments)
    }

    fn episode_usage<'a>(
        &'a self,
        account: &'a AccountId,
        episode: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<EpisodeUsage, JournalError>> {
        self.journal.episode_usage(account, episode)
    }

    fn balances(&self) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        self.journal.balances()
    }

    fn seal(&self, now: Timestamp) -> BoxFuture<'_, Result<Option<Seal>, JournalError>> {
        self.journal.seal(now)
    }

    fn last_seal(&self) -> BoxFuture<'_, Result<Option<Seal>, JournalError>> {
        self.journal.last_seal()
    }

    fn usage<'a>(&'a self, query: &'a UsageQuery) -> BoxFuture<'a, Result<Vec<GroupUsage>, JournalError>> {
        self.journal.usage(query)
    }
}
