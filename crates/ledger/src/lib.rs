//! The ledger: accounts, reservations and windows, as a two-phase transfer.
//!
//! A worst case is reserved in memory, made durable just before anything is sent, and resolved exactly once: settled,
//! voided or expired. The account machine is pure. The journal is behind a trait, and one writer commits to it in groups.
//!
//! An episode is a part of its key's account, and its limits come with its steps. The journal's rows say what it used. So
//! it is loaded when it is used, and forgotten when it is not.
//!
//! If replicas share the accounts, a replica reserves only what its quota leases cover. A coordinator grants the leases:
//! the lease renewer keeps the replica registered, the lease manager gets more quota and returns what is idle.
//!
//! The folders form a ladder; each names only those before it: `rows`, `seal`, `journal`, `quota`, `accounts`, `commit`,
//! `replica`, `handle`.

mod accounts;
mod commit;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod handle;
mod journal;
mod quota;
mod replica;
mod rows;
mod seal;
mod settings;
mod sync;
#[cfg(test)]
pub(crate) mod tests;

pub use accounts::{
    AccountTotals, ClosedReservation, ExtensionResult, LedgerError, LedgerState, LimitStatus, LimitWarning,
    QuotaNeed, ReservationRequest, ReserveError, Shortfall, WarningCause,
};
pub use commit::{Observer, PendingSettlement, SettlementReceipt, SettlementStatus};
pub use handle::{Ledger, Reservation, accounts_from_journal};
pub use journal::{DatabaseFault, Journal, JournalError, MemoryJournal, OutageStatus};
pub use quota::{
    ChangeNotice, DecideFn, ExchangeResult, LeaseAdjustment, LeaseRenewal, PostedFn, QuotaBalance,
    QuotaCoordinator, QuotaWindow, ReplicaEpoch, ReplicaLease, WindowOpening,
};
pub use rows::{
    AbandonPolicy, AccountSpend, Amounts, DispatchEntry, EpisodeBalance, EpisodeUsage, ExtensionEntry,
    GroupBy, GroupUsage, JournalEntry, MeterEntry, ModelSpend, QUARTER_HOUR_MS, RequestScope,
    ResolutionEntry, ResolutionKind, RollupSpan, SettlementDetail, SpendByModel, SpendRate, StepReservation,
    UsageGroup, UsageQuery, UsageSums,
};
pub use seal::{ResolutionRecord, Rollups, SEAL_MAX, Seal, SealBuilder};
pub use settings::{LedgerStats, Settings};

pub use stint_types::units::AccountId;
