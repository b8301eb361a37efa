//! One charge for one idempotency key: what a caller asked for once is not run again when it asks again.
//!
//! A request gets the one ticket for its key in memory, is begun durably before anything is sent, and ends with its
//! answer, or with the word that there is none. Keys belong to an account. Of a request only a hash is kept.

#[cfg(test)]
pub(crate) mod conformance;
#[expect(clippy::module_inception, reason = "the handle is what the module is named for")]
mod idempotency;
mod memory;
mod record;
mod settings;
mod store;
#[cfg(test)]
mod tests;
mod ticket;
mod writer;

pub use idempotency::{Found, Idempotency, LookError};
pub use memory::MemoryAnswers;
pub use record::{Answer, Body, End, Fingerprint, Record, Scope};
pub use settings::Settings;
pub use store::{Answers, AnswersError, Change};
pub use ticket::{BeginError, Ticket};
