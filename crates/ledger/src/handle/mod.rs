//! The ledger and its reservations as the rest of the program holds them.

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
