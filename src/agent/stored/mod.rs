//! Responses that callers may come back to: read again, continued, deleted.
//!
//! Each belongs to one account and nobody else ever sees it. A response holds its input and its output. A request that
//! continues it gets the whole chain before it, which is read from its end to its beginning.

#[cfg(test)]
pub(crate) mod conformance;
mod memory;
mod record;
mod service;
mod settings;
mod store;

pub use memory::MemoryResponses;
pub use record::{ResponseChain, StoredResponse};
pub use service::{ResponseService, ResponseStoreResult};
pub use settings::Settings;
pub use store::{ResponseStore, ResponsesError};
