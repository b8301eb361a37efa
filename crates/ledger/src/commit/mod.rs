//! The accounts behind their lock, and the path of their entries to the journal: a queue, and one writer that commits in
//! groups.

mod guard;
mod ledger_core;
mod notifiers;
mod observer;
mod queue;
mod settlement;
mod writer;

pub(crate) use guard::ReservationGuard;
pub(crate) use ledger_core::{LedgerCore, root};
pub use observer::Observer;
pub(crate) use queue::{CommitReceiver, JournalQueue};
pub use settlement::{PendingSettlement, SettlementReceipt, SettlementStatus};
