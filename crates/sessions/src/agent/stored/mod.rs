//! Responses that callers may come back to: read again, continued, deleted.
//!
//! Each belongs to one account and nobody else ever sees it. A response holds what was put in and what came out; whoever
//! continues it is given the whole chain before it, read from its end to its beginning.

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
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
