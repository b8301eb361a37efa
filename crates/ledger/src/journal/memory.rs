//! A journal in memory that is lost when the process ends: for tests, and for trying things out.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::rows::{
    AccountSpend, DispatchEntry, EpisodeUsage, ExtensionEntry, GroupUsage, JournalEntry, MeterEntry,
    ResolutionEntry, ResolutionKind, RollupSpan, UsageQuery,
};
use stint_types::units::{AccountId, EpisodeId, RequestId, Timestamp};

use super::Journal;
use super::error::JournalError;

/// A journal in memory. It keeps a row of every request that was resolved, so it grows with every request.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    rows: Mutex<JournalRows>,
}

#[derive(Debug, Default)]
struct JournalRows {
    dispatched: BTreeMap<RequestId, DispatchEntry>,
    extended: BTreeMap<(RequestId, u32), ExtensionEntry>,
    metered: BTreeMap<(RequestId, u32), MeterEntry>,
    resolved: BTreeMap<RequestId, ResolutionEntry>,
}

impl MemoryJournal {
    fn rows(&self) -> MutexGuard<'_, JournalRows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JournalRows {
    /// Extensions and resolutions must refer to a reservation, here or among the new entries.
    fn check(&self, entries: &[JournalEntry]) -> Result<(), JournalError> {
        let is_new =
            |id| entries.iter().any(|entry| matches!(entry, JournalEntry::Dispatched(row) if row.id == id));
        let dangling = entries.iter().find(|entry| {
            !matches!(entry, JournalEntry::Dispatched(_))
                && !self.dispatched.contains_key(&entry.id())
                && !self.resolved.contains_key(&entry.id())
                && !is_new(entry.id())
        });
        match dangling {
            None => Ok(()),
            Some(entry) => Err(JournalError::new(format!("{} was never dispatched", entry.id()))),
        }
    }

    /// Of what is resolved the resolution alone is kept: it says all that anybody asks for.
    fn append(&mut self, entry: JournalEntry) {
        let id = entry.id();
        if self.resolved.contains_key(&id) {
            return;
        }
        match entry {
            JournalEntry::Dispatched(row) => drop(self.dispatched.entry(id).or_insert(row)),
            JournalEntry::Extended(row) => drop(self.extended.entry((id, row.step)).or_insert(row)),
            JournalEntry::Metered(row) => drop(self.metered.entry((id, row.step)).or_insert(row)),
            JournalEntry::Resolved(row) => {
                self.resolved.insert(id, row);
                self.dispatched.remove(&id);
                self.extended.extract_if((id, 0)..=(id, u32::MAX), |_, _| true).for_each(drop);
                self.metered.extract_if((id, 0)..=(id, u32::MAX), |_, _| true).for_each(drop);
            }
        }
    }

    fn with_updates(&self, row: &DispatchEntry) -> DispatchEntry {
        let mut now = row.clone();
        for step in self.extended.range((row.id, 0)..=(row.id, u32::MAX)).map(|(_, step)| step) {
            now.held += step.more;
            now.about.model.clone_from(&step.model);
        }
        let last = self.metered.range((row.id, 0)..=(row.id, u32::MAX)).next_back();
        now.metered = last.map(|(_, metered)| metered.spent);
        now.metered_at = last.and_then(|(_, metered)| metered.at);
        now
    }

    fn unresolved(&self) -> Vec<DispatchEntry> {
        self.dispatched.values().map(|row| self.with_updates(row)).collect()
    }

    /// Sums by account, what it was about, and the beginning that `bucket` gives a moment.
    fn sums(&self, since: Timestamp, bucket: impl Fn(Timestamp) -> Timestamp) -> Vec<AccountSpend> {
        let mut sums = BTreeMap::new();
        for row in self.resolved.values().filter(|row| row.admitted >= since) {
            let (account, about) = (row.account.clone(), row.about.without_episode());
            let since = bucket(row.admitted);
            let none = AccountSpend::none(account.clone(), about.clone(), since);
            let sum = sums.entry((account, about, since)).or_insert(none);
            sum.spent += row.spent;
            sum.overrun += row.overrun.money;
            sum.settled += u64::from(row.how == ResolutionKind::Settled);
        }
        sums.into_values().collect()
    }
}

impl Journal for MemoryJournal {
    fn append<'a>(&'a self, entries: &'a [JournalEntry]) -> BoxFuture<'a, Result<(), JournalError>> {
        async move {
            let mut rows = self.rows();
            rows.check(entries)?;
            entries.iter().for_each(|entry| rows.append(entry.clone()));
            Ok(())
        }
        .boxed()
    }

    fn unresolved(&self) -> BoxFuture<'_, Result<Vec<DispatchEntry>, JournalError>> {
        async { Ok(self.rows().unresolved()) }.boxed()
    }

    fn spend_since(&self, since: Timestamp) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        async move { Ok(self.rows().sums(since, |moment| RollupSpan::Quarter.start(moment).max(since))) }
            .boxed()
    }

    fn episode_usage<'a>(
        &'a self,
        account: &'a AccountId,
        episode: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<EpisodeUsage, JournalError>> {
        async move {
            let (rows, mut used) = (self.rows(), EpisodeUsage::default());
            let is_step = |row: &&ResolutionEntry| {
                row.account == *account && row.about.episode.as_ref() == Some(episode)
            };
            for row in rows.resolved.values().filter(is_step) {
                used.add(row.about.episode_amounts(row.spent), &row.detail.tools);
            }
            Ok(used)
        }
        .boxed()
    }

    fn balances(&self) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        let always = Timestamp(i64::MIN);
        async move { Ok(self.rows().sums(always, |_| always)) }.boxed()
    }

    fn usage<'a>(&'a self, query: &'a UsageQuery) -> BoxFuture<'a, Result<Vec<GroupUsage>, JournalError>> {
        async move { Ok(query.evaluate(self.rows().resolved.values())) }.boxed()
    }
}
