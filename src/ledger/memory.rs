//! A journal that forgets everything when the process ends: for tests, and for trying things out.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::units::{RequestId, Timestamp};

use super::{Dispatched, Entry, Extended, How, Journal, JournalError, Resolved, Total};

/// A journal in memory. It keeps all that it is given, so it grows with every request.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    rows: Mutex<Rows>,
}

#[derive(Debug, Default)]
struct Rows {
    dispatched: BTreeMap<RequestId, Dispatched>,
    extended: BTreeMap<(RequestId, u32), Extended>,
    resolved: BTreeMap<RequestId, Resolved>,
}

impl MemoryJournal {
    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rows {
    /// Extensions and resolutions must refer to a reservation, here or among the new entries.
    fn check(&self, entries: &[Entry]) -> Result<(), JournalError> {
        let is_new = |id| entries.iter().any(|entry| matches!(entry, Entry::Dispatched(row) if row.id == id));
        let dangling = entries.iter().find(|entry| {
            !matches!(entry, Entry::Dispatched(_))
                && !self.dispatched.contains_key(&entry.id())
                && !is_new(entry.id())
        });
        match dangling {
            None => Ok(()),
            Some(entry) => Err(JournalError::new(format!("{} was never dispatched", entry.id()))),
        }
    }

    fn append(&mut self, entry: Entry) {
        match entry {
            Entry::Dispatched(row) => drop(self.dispatched.entry(row.id).or_insert(row)),
            Entry::Extended(row) => drop(self.extended.entry((row.id, row.step)).or_insert(row)),
            Entry::Resolved(row) => drop(self.resolved.entry(row.id).or_insert(row)),
        }
    }

    fn with_extensions(&self, row: &Dispatched) -> Dispatched {
        let steps = self.extended.range((row.id, 0)..=(row.id, u32::MAX));
        let held = steps.fold(row.held, |held, (_, step)| held + step.more);
        Dispatched { held, ..row.clone() }
    }

    fn unresolved(&self) -> Vec<Dispatched> {
        let open = self.dispatched.values().filter(|row| !self.resolved.contains_key(&row.id));
        open.map(|row| self.with_extensions(row)).collect()
    }

    fn spent(&self, since: Timestamp) -> Vec<Total> {
        let mut totals = BTreeMap::new();
        for row in self.resolved.values().filter(|row| row.admitted >= since) {
            let total = totals.entry(row.account.clone()).or_insert_with(|| Total::of(row.account.clone()));
            total.spent += row.spent;
            total.overrun += row.overrun.money;
            total.settled += u64::from(row.how == How::Settled);
        }
        totals.into_values().collect()
    }
}

impl Journal for MemoryJournal {
    fn append<'a>(&'a self, entries: &'a [Entry]) -> BoxFuture<'a, Result<(), JournalError>> {
        async move {
            let mut rows = self.rows();
            rows.check(entries)?;
            entries.iter().for_each(|entry| rows.append(entry.clone()));
            Ok(())
        }
        .boxed()
    }

    fn unresolved(&self) -> BoxFuture<'_, Result<Vec<Dispatched>, JournalError>> {
        async { Ok(self.rows().unresolved()) }.boxed()
    }

    fn spent(&self, since: Timestamp) -> BoxFuture<'_, Result<Vec<Total>, JournalError>> {
        async move { Ok(self.rows().spent(since)) }.boxed()
    }
}
