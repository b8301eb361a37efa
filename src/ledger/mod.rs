//! Accounts, reservations and windows: the two-phase transfer.
//!
//! A worst case is reserved in memory, made durable just before anything is sent, and resolved exactly once:
//! settled, voided or expired. The account machine is pure; the journal stands behind a trait and one writer
//! commits to it in groups.
//!
//! A run of an agent is a part of its key's account whose limits come with its steps; the rows say what it took, so it is read
//! when somebody asks for it, and forgotten when nobody does.
//!
//! Where replicas share the accounts, a machine reserves only what slices of the limits cover, which a bank hands out: the
//! keeper renews the lease that they are held under, the banker gets more of them and hands back what is idle.

mod account;
mod accounts;
mod amounts;
mod banker;
mod bytes;
#[cfg(test)]
pub(crate) mod conformance;
mod daily;
mod episode;
mod episodes;
mod error;
mod journal;
mod keeper;
mod lease;
#[expect(clippy::module_inception, reason = "the handle is what the module is named for")]
mod ledger;
mod memory;
mod observer;
mod open;
mod opening;
mod outage;
mod part;
mod purses;
mod queue;
mod rate;
mod recall;
mod recover;
mod reservation;
mod seal;
mod settings;
mod share;
mod sharing;
mod slices;
mod spent;
mod statement;
mod sync;
mod tally;
mod tenure;
#[cfg(test)]
pub(crate) mod tests;
mod tree;
mod usage;
mod warnings;
mod wish;
mod writer;

pub use accounts::{Accounts, Claim, Extension, IfAbandoned};
pub use amounts::Amounts;
pub use episode::{EpisodeStanding, EpisodeUse, Step};
pub use error::{JournalError, LedgerError, Need, Refused, Shortfall};
pub use journal::{
    Dispatched, Entry, Extended, How, Journal, Metered, QUARTER, Resolved, SettlementDetail, Spent,
};
pub use lease::{Balance, Bank, Change, Decide, Epoch, Lease, News, Opening, Order, Purse, Traded};
pub use ledger::Ledger;
pub use memory::MemoryJournal;
pub use observer::Observer;
pub use open::Closed;
pub use part::{Part, Parts};
pub use rate::Rate;
pub use recover::standing;
pub use reservation::{Receipt, Reservation, Settling};
pub use seal::{Record, Rollups, SEAL_MAX, Seal, Sealing, Span, Sums};
pub use settings::{LedgerStats, Settings};
pub use statement::{Line, Totals};
pub use usage::{GroupBy, Usage, UsageGroup, UsageQuery};
pub use warnings::{Cause, Warning};
pub use wish::About;

pub use crate::units::AccountId;
