//! What replicas that share accounts want of the bank that hands out slices of their limits.
//!
//! A slice is what one replica may have spent and reserved under one limit in one window. What is handed out of a limit
//! never passes it, so a replica that keeps to its slices asks nobody before it admits a request.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use crate::units::{Facet, Timestamp, Unit, Window};

use super::{AccountId, Journal, JournalError};

/// One limit in one window, from which slices are cut.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QuotaWindow {
    /// Whose limit.
    pub account: AccountId,
    /// On which of its requests.
    pub facet: Facet,
    /// What it counts.
    pub unit: Unit,
    /// Over what time.
    pub window: Window,
    /// When this window began.
    pub begins: Timestamp,
    /// When it ends; never, for a limit on all time.
    pub ends: Option<Timestamp>,
}

/// How a purse stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuotaBalance {
    /// All that was handed out: living replicas' slices, and what dead ones really used.
    pub granted: u64,
    /// The asking replica's part of that.
    pub own: u64,
    /// Other living replicas' parts.
    pub others: u64,
    /// True where others were asked to hand back what they do not use, and have not answered yet.
    pub is_recall_pending: bool,
    /// True where nothing of others' parts can come back: they have nothing open, and all is used.
    pub is_final: bool,
    /// How many replicas live.
    pub replicas: u64,
}

/// What is to become of a purse.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeaseAdjustment {
    /// The asking replica's slice from now on.
    pub amount: u64,
    /// True where that has nothing in it that it does not use.
    pub is_tight: bool,
    /// True where that is all that it ever used, and nothing is open.
    pub is_final: bool,
    /// True where others are to hand back what they do not use.
    pub is_recalling: bool,
}

/// One life of one replica. A replica whose lease has run out gets another epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplicaEpoch(pub i64);

/// A replica's right to hold slices, while it is renewed.
pub struct ReplicaLease {
    /// Which life this is.
    pub epoch: ReplicaEpoch,
    /// The journal as this life may write it: once it is over, it can write nothing any more.
    pub journal: Arc<dyn Journal>,
    /// How long it lasts without being renewed.
    pub duration: Duration,
    /// The bank's clock.
    pub now: Timestamp,
}

/// What is told when a lease is renewed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRenewal {
    /// The bank's clock.
    pub now: Timestamp,
    /// How many replicas live.
    pub replicas: u64,
    /// How purses stand that have changed.
    pub balances: Vec<(QuotaWindow, QuotaBalance)>,
}

/// A purse that is to be there before anything can be had of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowOpening {
    /// Which one.
    pub window: QuotaWindow,
    /// The moment from which on the asking life counts what falls under it; nothing, where it always did.
    pub counted_since: Option<Timestamp>,
}

/// What came of looking at purses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExchangeResult {
    /// How they stand, after they were changed as decided.
    Balances(Vec<QuotaBalance>),
    /// Nothing was changed: those at these places are to be opened first.
    Missing(Vec<usize>),
}

/// What one replica, or the operator, lets all of them know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeNotice {
    /// Hand back what you do not use of this account's purses.
    Recall {
        /// Whose.
        account: AccountId,
        /// Who asks, and need not answer.
        by: ReplicaEpoch,
    },
    /// Accounts and their limits are others now.
    Terms,
    /// Keys are others now.
    Keys,
    /// Something may have been missed: the connection was lost for a while.
    Unknown,
}

/// Says what is to become of purses, given how they stand.
pub type DecideFn<'a> = Box<dyn FnOnce(&[QuotaBalance]) -> Vec<LeaseAdjustment> + Send + 'a>;

/// Hands out slices. A call that failed may have had its effect; the next one says how things are.
pub trait QuotaCoordinator: Send + Sync {
    /// Begins a life. It buries nobody: who comes to a bank that was away cannot tell the dead from those who could not
    /// reach it either.
    fn register(&self) -> BoxFuture<'_, Result<ReplicaLease, JournalError>>;

    /// Goes on with it.
    fn renew(&self, epoch: ReplicaEpoch) -> BoxFuture<'_, Result<LeaseRenewal, JournalError>>;

    /// Sees to it that purses are there: what was used in their windows before is summed up, which may take long where
    /// much was. Says what this life had used of each, and resolved, before it began to count.
    fn open_windows<'a>(
        &'a self,
        epoch: ReplicaEpoch,
        openings: &'a [WindowOpening],
    ) -> BoxFuture<'a, Result<Vec<u64>, JournalError>>;

    /// Looks at purses and changes them as decided, at one moment.
    fn exchange<'a>(
        &'a self,
        epoch: ReplicaEpoch,
        purses: &'a [QuotaWindow],
        decide: DecideFn<'a>,
    ) -> BoxFuture<'a, Result<ExchangeResult, JournalError>>;

    /// Ends lives whose leases have run out: posts what they left open, and gives back what they did not use. Says how
    /// many there were.
    fn reclaim(&self) -> BoxFuture<'_, Result<usize, JournalError>>;

    /// Ends a life of one's own in the same way.
    fn retire(&self, epoch: ReplicaEpoch) -> BoxFuture<'_, Result<(), JournalError>>;

    /// What others let us know of, from when it is first asked for on.
    fn changes(&self) -> BoxStream<'static, ChangeNotice>;
}
