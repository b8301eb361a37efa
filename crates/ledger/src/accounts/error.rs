//! Why money cannot be reserved or used: not enough is left, or it cannot be recorded.

use crate::journal::JournalError;
use crate::quota::QuotaWindow;
use stint_types::units::{AccountId, Amount, Limit, Money, RequestId, Timestamp};

/// A limit that a worst case does not fit under.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("needs {needed}, and {limit} has {left} left")]
pub struct Shortfall {
    /// Which limit it is.
    pub limit: Limit,
    /// What was to be reserved.
    pub needed: Amount,
    /// What could have been.
    pub left: Amount,
    /// When counting starts again; never, for a limit on all time.
    pub resets_at: Option<Timestamp>,
}

impl Shortfall {
    /// What is left of it in money; nothing, where it limits something else.
    pub fn money_left(&self) -> Money {
        match self.left {
            Amount::Money(left) => left,
            _ => Money::ZERO,
        }
    }
}

/// A limit under which a worst case may fit, but this replica holds too little of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaNeed {
    /// Of which window more is needed.
    pub window: QuotaWindow,
    /// The limit.
    pub max: u64,
    /// Since when this replica counts it, if it used something of it before.
    pub counted_since: Option<Timestamp>,
    /// The refusal, if no more is available.
    pub shortfall: Shortfall,
}

/// Why nothing was reserved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReserveError {
    /// It does not fit under a limit.
    #[error(transparent)]
    Shortfall(#[from] Shortfall),
    /// It may fit, but this replica must get more of some limits first.
    #[error("this replica's quota leases are too small: ask for more")]
    NeedsQuota(Vec<QuotaNeed>),
    /// The lease has run out, or the coordinator does not answer.
    #[error("the limits are shared through a database that does not answer: try again shortly")]
    NoLease,
    /// A limit is new, or an episode is not known here yet, and it takes long to sum up what was spent before.
    #[error("what was spent under a new limit is still being summed up: try again shortly")]
    Summing,
    /// Nobody has such an account, or not any more.
    #[error("there is no account {0}: declare the tenant")]
    NoAccount(AccountId),
    /// The request has a reservation already.
    #[error("{0} has a reservation already: extend that one")]
    Duplicate(RequestId),
    /// The reservation was resolved by its expiry.
    #[error("the reservation of {0} has expired: reserve again")]
    Expired(RequestId),
    /// More than one entry can hold.
    #[error(
        "a worst case of more than nine million dollars or 2^53 tokens cannot be reserved: bound the request"
    )]
    TooLarge,
}

/// Why a reservation could not be dispatched or extended. Nothing may be sent then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// The accounts do not allow it.
    #[error(transparent)]
    Refused(#[from] ReserveError),
    /// Entries wait to be journalled and do not get there.
    #[error("the ledger's journal is stalled: see the log for its error, and try again")]
    Stalled,
    /// This entry could not be journalled.
    #[error("the ledger's journal failed")]
    Journal(#[from] JournalError),
    /// An extension of a reservation whose dispatch is not journalled.
    #[error("the dispatch of {0} is not journalled: dispatch it again, or void it")]
    NotDispatched(RequestId),
    /// The ledger has shut down.
    #[error("the ledger has shut down")]
    Closed,
}
