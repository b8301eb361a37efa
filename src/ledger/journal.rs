//! Where entries become durable, behind a trait. Entries are immutable and never deleted.

use futures_util::future::BoxFuture;

use crate::catalog::Prices;
use crate::units::{Money, RequestId, Timestamp, Tokens};

use super::{AccountId, Amounts, JournalError};

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Something is about to be sent for this reservation.
    Dispatched(Dispatched),
    /// More was set aside for it.
    Extended(Extended),
    /// It was resolved.
    Resolved(Resolved),
}

/// A reservation whose request goes upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatched {
    /// Which reservation.
    pub id: RequestId,
    /// Whose.
    pub account: AccountId,
    /// What was set aside for it until then.
    pub held: Amounts,
    /// The prices in force, at which it will be settled.
    pub prices: Option<Prices>,
    /// When it was admitted: the moment that says to which windows it belongs.
    pub admitted: Timestamp,
    /// When it expires unless renewed.
    pub expires: Timestamp,
}

/// More set aside for a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extended {
    /// Which reservation.
    pub id: RequestId,
    /// Counts its extensions.
    pub step: u32,
    /// How much more.
    pub more: Amounts,
}

/// How a reservation was resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum How {
    /// At what was really used.
    Settled,
    /// Given back whole: nothing was sent.
    Voided,
    /// Posted whole: it was dispatched, and nobody said what was used.
    Expired,
}

/// The end of a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// Which reservation.
    pub id: RequestId,
    /// Whose.
    pub account: AccountId,
    /// When it was admitted.
    pub admitted: Timestamp,
    /// When it was resolved.
    pub at: Timestamp,
    /// How.
    pub how: How,
    /// What it is charged.
    pub spent: Amounts,
    /// What of that was more than the reservation.
    pub overrun: Amounts,
    /// What was done for it.
    pub detail: SettlementDetail,
}

/// What was done for the money.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettlementDetail {
    /// Who did it; nobody, where nothing was sent.
    pub model: Option<std::sync::Arc<str>>,
    /// Prompt tokens as billed.
    pub prompt: Tokens,
    /// Tags, hand-off and end of text.
    pub overhead: Tokens,
    /// Solution tokens.
    pub solution: Tokens,
    /// Output tokens that were not delivered.
    pub other: Tokens,
    /// How it ended, in one word.
    pub outcome: std::borrow::Cow<'static, str>,
}

/// What an account spent on requests that were admitted since some moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Total {
    /// Whose.
    pub account: AccountId,
    /// What it was charged.
    pub spent: Amounts,
    /// What of that was more money than reserved.
    pub overrun: Money,
    /// How many of its requests were settled; neither voided nor expired.
    pub settled: u64,
}

/// A durable list of entries. `conformance` says in tests what one must do.
pub trait Journal: Send + Sync {
    /// Makes all entries durable, or none. An entry that is there already (by its reservation, its kind and, for
    /// extensions, its step) is left as it is, so that appending again is safe after any failure.
    fn append<'a>(&'a self, entries: &'a [Entry]) -> BoxFuture<'a, Result<(), JournalError>>;

    /// The dispatched reservations that are not resolved, with all that was set aside for each.
    fn unresolved(&self) -> BoxFuture<'_, Result<Vec<Dispatched>, JournalError>>;

    /// What each account spent on requests admitted at `since` or later.
    fn spent(&self, since: Timestamp) -> BoxFuture<'_, Result<Vec<Total>, JournalError>>;
}

impl Entry {
    /// Which reservation it is about.
    pub fn id(&self) -> RequestId {
        match self {
            Entry::Dispatched(dispatched) => dispatched.id,
            Entry::Extended(extended) => extended.id,
            Entry::Resolved(resolved) => resolved.id,
        }
    }
}

impl Total {
    /// An account that spent nothing.
    pub fn of(account: AccountId) -> Total {
        Total { account, spent: Amounts::ZERO, overrun: Money::ZERO, settled: 0 }
    }
}

impl How {
    /// The word for it in the journal.
    pub fn word(self) -> &'static str {
        match self {
            How::Settled => "settled",
            How::Voided => "voided",
            How::Expired => "expired",
        }
    }
}
