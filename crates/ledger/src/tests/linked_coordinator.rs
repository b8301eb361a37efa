//! The connection of one replica to the coordinator, which a test can cut.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, unfold};
use futures_util::{FutureExt, StreamExt};
use tokio::sync::{broadcast, watch};
use tokio::time::sleep;

use crate::{AccountSpend, DispatchEntry, EpisodeUsage, Journal, JournalEntry, JournalError};
use crate::{
    ChangeNotice, DecideFn, ExchangeResult, LeaseRenewal, PostedFn, QuotaCoordinator, QuotaWindow,
    ReplicaEpoch, ReplicaLease, WindowOpening,
};
use stint_types::units::{AccountId, EpisodeId, Timestamp};

use super::vault::{Life, Vault, VaultState};

/// How a replica reaches the coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CoordinatorLink {
    Whole,
    /// What is asked for is done, and no answer comes.
    Deaf,
    /// Nothing gets through.
    Cut,
}

/// The way of one replica to the coordinator.
#[derive(Clone)]
pub(super) struct LinkedCoordinator {
    vault: Vault,
    link: watch::Receiver<CoordinatorLink>,
}

impl LinkedCoordinator {
    pub(super) fn new(vault: &Vault, link: watch::Receiver<CoordinatorLink>) -> LinkedCoordinator {
        LinkedCoordinator { vault: vault.clone(), link }
    }

    /// Waits while nothing gets through, does it, and waits while no answer comes.
    async fn ask<T>(&self, what: impl FnOnce(&mut VaultState) -> T) -> T {
        let mut link = self.link.clone();
        link.wait_for(|link| *link != CoordinatorLink::Cut).await.unwrap();
        let answer = what(&mut self.vault.state());
        link.wait_for(|link| *link == CoordinatorLink::Whole).await.unwrap();
        answer
    }
}

impl QuotaCoordinator for LinkedCoordinator {
    fn register(&self) -> BoxFuture<'_, Result<ReplicaLease, JournalError>> {
        async move {
            let (epoch, lasts, now) = self
                .ask(|state| {
                    let epoch = state.lives.last_key_value().map_or(1, |(last, _)| last + 1);
                    let expires = state.now + state.lasts;
                    state.lives.insert(epoch, Life { expires, is_over: false, heard: 0 });
                    (epoch, state.lasts, state.now)
                })
                .await;
            let journal = Arc::new(EpochJournal { door: self.clone(), epoch });
            Ok(ReplicaLease { epoch: ReplicaEpoch(epoch), journal, duration: lasts, now })
        }
        .boxed()
    }

    fn renew(&self, epoch: ReplicaEpoch) -> BoxFuture<'_, Result<LeaseRenewal, JournalError>> {
        self.ask(move |state| state.renew(epoch.0)).boxed()
    }

    fn open_windows<'a>(
        &'a self,
        epoch: ReplicaEpoch,
        openings: &'a [WindowOpening],
    ) -> BoxFuture<'a, Result<Vec<u64>, JournalError>> {
        async move {
            let long = self.vault.state().opens_in;
            if !long.is_zero() {
                sleep(long).await;
            }
            self.ask(|state| state.open(epoch.0, openings)).await
        }
        .boxed()
    }

    fn exchange<'a>(
        &'a self,
        epoch: ReplicaEpoch,
        windows: &'a [QuotaWindow],
        decide: DecideFn<'a>,
    ) -> BoxFuture<'a, Result<ExchangeResult, JournalError>> {
        let notices = self.vault.notices.clone();
        let asked = self.ask(move |state| {
            let (traded, recalled) = state.exchange(epoch.0, windows, decide)?;
            for window in recalled {
                // Nobody may be listening.
                drop(notices.send(ChangeNotice::Recall { account: window.account, by: epoch }));
            }
            Ok(traded)
        });
        asked.boxed()
    }

    fn reclaim<'a>(&'a self, posted: PostedFn<'a>) -> BoxFuture<'a, Result<usize, JournalError>> {
        async move {
            let (count, entries) = self.ask(VaultState::reclaim_expired).await;
            posted(&entries);
            Ok(count)
        }
        .boxed()
    }

    fn retire(&self, epoch: ReplicaEpoch) -> BoxFuture<'_, Result<(), JournalError>> {
        async move {
            self.ask(|state| state.end(epoch.0)).await;
            Ok(())
        }
        .boxed()
    }

    fn changes(&self) -> BoxStream<'static, ChangeNotice> {
        let heard = (self.vault.notices.subscribe(), self.link.clone());
        unfold(heard, async |(mut notices, mut link)| {
            let change = heard_of(&mut notices, &mut link).await?;
            Some((change, (notices, link)))
        })
        .boxed()
    }
}

/// The next change, or that some may have been missed, once the link is whole again.
async fn heard_of(
    notices: &mut broadcast::Receiver<ChangeNotice>,
    link: &mut watch::Receiver<CoordinatorLink>,
) -> Option<ChangeNotice> {
    let is_whole = *link.borrow() == CoordinatorLink::Whole;
    if is_whole {
        tokio::select! {
            biased;
            broken = async { link.wait_for(|link| *link != CoordinatorLink::Whole).await.is_ok() } => {
                if !broken {
                    return None;
                }
            }
            change = notices.recv() => return Some(change.unwrap_or(ChangeNotice::Unknown)),
        }
    }
    link.wait_for(|link| *link == CoordinatorLink::Whole).await.ok()?;
    *notices = notices.resubscribe();
    Some(ChangeNotice::Unknown)
}

/// The journal, as one epoch may write it.
struct EpochJournal {
    door: LinkedCoordinator,
    epoch: i64,
}

impl Journal for EpochJournal {
    fn append<'a>(&'a self, entries: &'a [JournalEntry]) -> BoxFuture<'a, Result<(), JournalError>> {
        self.door.ask(|state| state.append(self.epoch, entries)).boxed()
    }

    fn unresolved(&self) -> BoxFuture<'_, Result<Vec<DispatchEntry>, JournalError>> {
        let open = |state: &mut VaultState| {
            let open = state.rows.values().filter(|row| row.epoch == self.epoch && row.ended.is_none());
            Ok(open.map(|row| row.sent.clone()).collect())
        };
        self.door.ask(open).boxed()
    }

    fn spend_since(&self, _: Timestamp) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        self.balances()
    }

    fn episode_usage<'a>(
        &'a self,
        account: &'a AccountId,
        episode: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<EpisodeUsage, JournalError>> {
        self.door
            .ask(|state| {
                let mut used = EpisodeUsage::default();
                let ended = state.rows.values().filter_map(|row| row.ended.as_ref());
                let steps = ended
                    .filter(|row| row.account == *account && row.about.episode.as_ref() == Some(episode));
                steps.for_each(|row| used.add(row.spent, &row.detail.tools));
                Ok(used)
            })
            .boxed()
    }

    fn balances(&self) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>> {
        async { Ok(Vec::new()) }.boxed()
    }
}
