//! The account machine: who spent and reserved what, under which limits. Pure: no I/O, no clock.
//!
//! `LedgerState` is its entry point. A tree of accounts holds each account's limits and windows, and the episodes under it.

mod account;
mod counted_limit;
mod demand;
mod episode_account;
mod episode_cache;
mod episodes;
mod error;
mod leases;
mod open_reservation;
mod request;
mod state;
mod statement;
mod tally;
mod tree;
mod warnings;

pub use error::{LedgerError, QuotaNeed, ReserveError, Shortfall};
pub(crate) use leases::LeaseReturn;
pub use open_reservation::ClosedReservation;
pub(crate) use request::ExtendRequest;
pub use request::ReservationRequest;
pub use state::{ExtensionResult, LedgerState};
pub use statement::{AccountTotals, LimitStatus};
#[cfg(any(test, feature = "conformance"))]
pub(crate) use tally::WINDOWS;
pub(crate) use tree::LimitsOn;
pub use warnings::{LimitWarning, WarningCause};
