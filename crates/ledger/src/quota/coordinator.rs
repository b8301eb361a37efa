//! `QuotaCoordinator`: the service that leases parts of limits to the replicas that share accounts.
//!
//! A quota lease is what one replica may have spent and reserved under one limit in one window. The leases of a limit
//! never add up to more than the limit. So a replica that keeps to its leases need not ask before it admits a request.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use crate::journal::{Journal, JournalError};
use crate::rows::JournalEntry;
use stint_types::units::{AccountId, Timestamp};

use super::window::{QuotaBalance, QuotaWindow};

/// How a quota window is to be changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeaseAdjustment {
    /// The lease of the replica that asks, from now on.
    pub amount: u64,
    /// True if the replica uses all of it.
    pub is_tight: bool,
    /// True if that is all that it ever used, and nothing is open.
    pub is_final: bool,
    /// True if others are to return what they do not use.
    pub is_recalling: bool,
}

/// The number of a replica's registration. A replica whose lease has run out registers again and gets another epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplicaEpoch(pub i64);

/// A replica's right to hold quota leases, while it is renewed.
pub struct ReplicaLease {
    /// Which registration this is.
    pub epoch: ReplicaEpoch,
    /// The journal as this epoch may write it. Once the epoch is over, it can write nothing any more.
    pub journal: Arc<dyn Journal>,
    /// How long it lasts without being renewed.
    pub duration: Duration,
    /// The coordinator's clock.
    pub now: Timestamp,
}

/// The answer to a renewal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRenewal {
    /// The coordinator's clock.
    pub now: Timestamp,
    /// How many replicas there are.
    pub replicas: u64,
    /// How windows stand that have changed.
    pub balances: Vec<(QuotaWindow, QuotaBalance)>,
}

/// A quota window that must be opened before anything can be leased of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowOpening {
    /// Which one.
    pub window: QuotaWindow,
    /// Since when the asking epoch counts what falls under it; `None` if it always did.
    pub counted_since: Option<Timestamp>,
}

/// The result of an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExchangeResult {
    /// How the windows stand, after they were changed as decided.
    Balances(Vec<QuotaBalance>),
    /// Nothing was changed: the windows at these indices must be opened first.
    Missing(Vec<usize>),
}

/// What one replica, or the operator, announces to all replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeNotice {
    /// Hand back what you do not use of this account's windows.
    Recall {
        /// Whose.
        account: AccountId,
        /// The replica that asks, which need not answer.
        by: ReplicaEpoch,
    },
    /// Accounts or their limits have changed.
    Terms,
    /// Keys have changed.
    Keys,
    /// Something may have been missed: the connection was lost for a while.
    Unknown,
}

/// Decides how windows are changed, given how they stand.
pub type DecideFn<'a> = Box<dyn FnOnce(&[QuotaBalance]) -> Vec<LeaseAdjustment> + Send + 'a>;

/// Receives the resolutions of a dead replica's open reservations, once they are durable.
pub type PostedFn<'a> = &'a (dyn Fn(&[JournalEntry]) + Send + Sync);

/// Grants quota leases. A call that failed may have had its effect; the next one returns the current state.
pub trait QuotaCoordinator: Send + Sync {
    /// Registers a replica. It reclaims nothing: after an outage of the coordinator, a replica cannot tell replicas that
    /// are gone from those that could not reach the coordinator either.
    fn register(&self) -> BoxFuture<'_, Result<ReplicaLease, JournalError>>;

    /// Renews the lease.
    fn renew(&self, epoch: ReplicaEpoch) -> BoxFuture<'_, Result<LeaseRenewal, JournalError>>;

    /// Opens windows: what was used in them before is summed up, which may take long. Returns what this epoch had used
    /// of each, and resolved, before it began to count.
    fn open_windows<'a>(
        &'a self,
        epoch: ReplicaEpoch,
        openings: &'a [WindowOpening],
    ) -> BoxFuture<'a, Result<Vec<u64>, JournalError>>;

    /// Reads windows and changes them as decided, atomically.
    fn exchange<'a>(
        &'a self,
        epoch: ReplicaEpoch,
        windows: &'a [QuotaWindow],
        decide: DecideFn<'a>,
    ) -> BoxFuture<'a, Result<ExchangeResult, JournalError>>;

    /// Ends epochs whose leases have run out: posts what they left open, and gives back what they did not use. Calls
    /// `posted` after each of them, and returns how many there were.
    fn reclaim<'a>(&'a self, posted: PostedFn<'a>) -> BoxFuture<'a, Result<usize, JournalError>>;

    /// Ends this replica's own epoch in the same way.
    fn retire(&self, epoch: ReplicaEpoch) -> BoxFuture<'_, Result<(), JournalError>>;

    /// What is announced, from the first call on.
    fn changes(&self) -> BoxStream<'static, ChangeNotice>;
}
