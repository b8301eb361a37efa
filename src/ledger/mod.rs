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
mod amounts;
#[cfg(test)]
pub(crate) mod conformance;
mod daily_seal;
mod episode;
mod episode_account;
mod episode_cache;
mod error;
mod extra_demand;
mod journal;
mod lease_allocation;
mod lease_manager;
mod lease_renewer;
mod lease_state;
#[expect(clippy::module_inception, reason = "the handle is what the module is named for")]
mod ledger;
mod ledger_state;
mod memory;
mod model_spend;
mod observer;
mod open_reservation;
mod outage;
mod queue;
mod quota_client;
mod quota_coordinator;
mod quota_leases;
mod quota_windows;
mod rate;
mod recover;
mod reservation;
mod seal;
mod seal_bytes;
mod settings;
mod spend_sums;
mod statement;
mod sync;
mod tally;
#[cfg(test)]
pub(crate) mod tests;
mod tree;
mod usage;
mod warnings;
mod window_opener;
mod writer;

pub use amounts::Amounts;
pub use episode::{EpisodeBalance, EpisodeUsage, StepReservation};
pub use error::{JournalError, LedgerError, QuotaNeed, ReserveError, Shortfall};
pub use extra_demand::RequestScope;
pub use journal::{
    AccountSpend, DispatchEntry, ExtensionEntry, Journal, JournalEntry, MeterEntry, QUARTER_HOUR_MS,
    ResolutionEntry, ResolutionKind, SettlementDetail,
};
pub use ledger::Ledger;
pub use ledger_state::{AbandonPolicy, ExtensionResult, LedgerState, ReservationRequest};
pub use memory::MemoryJournal;
pub use model_spend::{ModelSpend, SpendByModel};
pub use observer::Observer;
pub use open_reservation::ClosedReservation;
pub use quota_coordinator::{
    ChangeNotice, DecideFn, ExchangeResult, LeaseAdjustment, LeaseRenewal, QuotaBalance, QuotaCoordinator,
    QuotaWindow, ReplicaEpoch, ReplicaLease, WindowOpening,
};
pub use rate::SpendRate;
pub use recover::accounts_from_journal;
pub use reservation::{PendingSettlement, Reservation, SettlementReceipt};
pub use seal::{ResolutionRecord, RollupSpan, Rollups, SEAL_MAX, Seal, SealBuilder, UsageSums};
pub use settings::{LedgerStats, Settings};
pub use statement::{AccountTotals, LimitStatus};
pub use usage::{GroupBy, GroupUsage, UsageGroup, UsageQuery};
pub use warnings::{LimitWarning, WarningCause};

pub use crate::units::AccountId;
