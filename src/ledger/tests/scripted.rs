//! A journal that fails and waits as it is told.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::ledger::{Dispatched, Entry, EpisodeUse, Journal, JournalError, MemoryJournal, Spent};
use crate::units::{AccountId, EpisodeId, Timestamp};

#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// Nothing is written.
    Before,
    /// Everything is written, and nobody is told.
    After,
    /// The journal panics.
    Panic,
}

pub(super) struct Scripted {
    inner: MemoryJournal,
    faults: Mutex<VecDeque<Fault>>,
    is_open: watch::Sender<bool>,
    batches: Mutex<Vec<usize>>,
}

impl Scripted {
    /// Fails with these faults, one for each append, and works then.
    pub(super) fn failing(faults: &[Fault]) -> Arc<Scripted> {
        Arc::new(Scripted {
            inner: MemoryJournal::default(),
            faults: Mutex::new(faults.iter().copied().collect()),
            is_open: watch::channel(true).0,
            batches: Mutex::default(),
        })
    }

    /// Fails again.
    pub(super) fn fail(&self, faults: &[Fault]) {
        self.faults.lock().unwrap().extend(faults);
    }

    /// Commits nothing until it is opened.
    pub(super) fn stuck() -> Arc<Scripted> {
        let journal = Scripted::failing(&[]);
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

impl Journal for Scripted {
    fn append<'a>(&'a self, entries: &'a [Entry]) -> BoxFuture<'a, Result<(), JournalError>> {
        async move {
            self.batches.lock().unwrap().push(entries.len());
            self.is_open.subscribe().wait_for(|is_open| *is_open).await.unwrap();
            let fault = self.faults.lock().unwrap().pop_front();
            match fault {
                None => self.inner.append(entries).await,
                Some(Fault::Before) => Err(JournalError::new("the disk is full")),
                Some(Fault::After) => {
                    self.inner.append(entries).await?;
                    Err(JournalError::new("the answer got lost"))
                }
                Some(Fault::Panic) => panic!("as it was told"),
            }
        }
        .boxed()
    }

    fn unresolved(&self) -> BoxFuture<'_, Result<Vec<Dispatched>, JournalError>> {
        self.inner.unresolved()
    }

    fn spent(&self, since: Timestamp) -> BoxFuture<'_, Result<Vec<Spent>, JournalError>> {
        self.inner.spent(since)
    }

    fn episode<'a>(
        &'a self,
        account: &'a AccountId,
        episode: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<EpisodeUse, JournalError>> {
        self.inner.episode(account, episode)
    }

    fn balances(&self) -> BoxFuture<'_, Result<Vec<Spent>, JournalError>> {
        self.inner.balances()
    }
}
