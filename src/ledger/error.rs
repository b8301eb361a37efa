//! What can go wrong with money: not enough of it, or no way to write it down.

use crate::units::{Amount, Limit, RequestId, Timestamp};

use super::AccountId;

/// A limit that a worst case does not fit under.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the limit {limit:?} leaves {left}, and {needed} are needed", limit = limit.to_string())]
pub struct Shortfall {
    /// Which limit it is.
    pub limit: Limit,
    /// What was to be set aside.
    pub needed: Amount,
    /// What could have been.
    pub left: Amount,
    /// When counting starts anew; never, for a limit on all time.
    pub resets_at: Option<Timestamp>,
}

/// Why nothing was set aside.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It does not fit under a limit.
    #[error(transparent)]
    Shortfall(#[from] Shortfall),
    /// Nobody has such an account, or not any more.
    #[error("there is no account {0}: declare the tenant")]
    NoAccount(AccountId),
    /// The request has a reservation already.
    #[error("{0} has a reservation already: extend that one")]
    Twice(RequestId),
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
    Refused(#[from] Refused),
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

/// A journal that did not do its work. Whether the entries are in it is unknown; appending them again is safe.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct JournalError {
    message: String,
    #[source]
    source: Option<std::sync::Arc<dyn std::error::Error + Send + Sync>>,
}

impl JournalError {
    /// A failure without a deeper cause.
    pub fn new(message: impl Into<String>) -> JournalError {
        JournalError { message: message.into(), source: None }
    }

    /// A failure with its cause.
    pub fn caused(
        message: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> JournalError {
        JournalError { message: message.into(), source: Some(std::sync::Arc::new(source)) }
    }
}

impl PartialEq for JournalError {
    fn eq(&self, other: &JournalError) -> bool {
        self.message == other.message
    }
}

impl Eq for JournalError {}
