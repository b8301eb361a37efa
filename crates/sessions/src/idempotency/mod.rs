//! One charge for one idempotency key: what a caller asked for once is not run again when it asks again.
//!
//! A request gets the one ticket for its key in memory, is begun durably before anything is sent, and ends with its
//! answer, or with the word that there is none. Keys belong to an account. Of a request only a hash is kept.

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
#[expect(clippy::module_inception, reason = "the handle is what the module is named for")]
mod idempotency;
mod inner;
mod memory;
mod record;
mod settings;
mod store;
#[cfg(test)]
mod tests;
mod ticket;
mod writer;

pub use idempotency::{Idempotency, IdempotencyLookup, LookupError};
pub use memory::MemoryIdempotencyStore;
pub use record::{
    Fingerprint, IdempotencyKey, IdempotencyOutcome, IdempotencyRecord, StoredAnswer, StoredBody,
};
pub use settings::Settings;
pub use store::{IdempotencyChange, IdempotencyStore, IdempotencyStoreError};
pub use ticket::{BeginError, IdempotencyTicket};
