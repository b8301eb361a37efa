//! Stored responses, which callers can read again, continue and delete.
//!
//! Each belongs to one key, and no other key ever sees it, not even a later one of the same name. A response holds its input and its
//! output. A request that continues it gets the whole chain before it, which is read from its end to its beginning.

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
