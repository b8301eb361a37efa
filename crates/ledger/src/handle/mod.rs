//! The public handles of the ledger and its reservations.

mod episode_loading;
mod episodes;
mod ledger;
mod queries;
mod recover;
mod reservation;
mod sealing;

pub use ledger::Ledger;
pub use recover::accounts_from_journal;
pub use reservation::Reservation;
