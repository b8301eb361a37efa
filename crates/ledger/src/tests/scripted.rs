//! A journal that fails and waits on demand.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::{AccountSpend, DispatchEntry, EpisodeUsage, Journal, JournalEntry, JournalError, MemoryJournal};
use stint_types::units::{AccountId, EpisodeId, Timestamp};

#[derive(Debug, Clone, Copy)]
pub(super) enum JournalFault {
    /// Nothing is written.
    Before,
    /// Everything is written, and the caller gets an error.
    After,
    /// The journal panics.
    Panic,
}

pub(super) struct ScriptedJournal {
    inner: MemoryJournal,
    faults: Mutex<VecDeque<JournalFault>>,
    is_open: watch::Sender<bool>,
    batches: Mutex<Vec<usize>>,
}

impl ScriptedJournal {
    /// Fails with these faults, one for each append, and works then.
    pub(super) fn failing(faults: &[JournalFault]) -> Arc<ScriptedJournal> {
        Arc::new(ScriptedJournal {
            inner: MemoryJournal::default(),
            faults: Mutex::new(faults.iter().copied().collect()),
            is_open: watch::channel(true).0,
            batches: Mutex::default(),
        })
    }

    /// Fails again.
    pub(super) fn fail(&self, faults: &[JournalFault]) {
        self.faults.lock().unwrap().extend(faults);
    }

    /// Commits nothing until it is opened.
    pub(super) fn stuck() -> Arc<ScriptedJournal> {
        let journal = ScriptedJournal::failing(&[]);
        journal.close();
        journal
    }

    pub(super) fn open(&self) {
        self.is_open.send_replace(true);
    }

    pub(super) fn close(&self) {
        self.is_open.send_replace(false);
    }

    /// How many entries each append had.
    pub(super) fn batches(&self) -> Vec<usize> {
        self.batches.lock().unwrap().clone()
    }
}

impl Journal for ScriptedJournal {
    fn append<'a>(&'a self, entries: &'a [JournalEntry]) -> BoxFuture<'a, Result<(), JournalError>> {
        async move {
            self.batches.lock().unwrap().push(entries.len());
            self.is_open.subscribe().wait_for(|is_open| *is_open).await.unwrap();
            let fault = self.faults.lock().unwrap().pop_front();
            match fault {
                None => self.inner.append(entries).await,
                Some(JournalFault::Before) => Err(JournalError::new("the disk is full")),
                Some(JournalFault::After) => {
                    self.inner.append(entries).await?;
                    Err(JournalError::new("the answer got lost"))
                }
                Some(JournalFault::Panic) => panic!("as it was told"),
            }
        }
        .boxed()
    }

    fn unresolved(&self) -> BoxFuture<'_, Result<Vec<DispatchEntry>, JournalError>> {
        self.inner.unresolved()
    }

    fn spend_since(&self, since: Timestamp) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        self.inner.spend_since(since)
    }

    fn episode_usage<'a>(
        &'a self,
        account: &'a AccountId,
        episode: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<EpisodeUsage, JournalError>> {
        self.inner.episode_usage(account, episode)
    }

    fn balances(&self) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        self.inner.balances()
    }
}
