//! Responses that callers may come back to: read again, continued, deleted.
//!
//! Each belongs to one account and nobody else ever sees it. A response holds what was put in and what came out; whoever
//! continues it is given the whole chain before it, read from its end to its beginning.

#[cfg(test)]
pub(crate) mod conformance;
mod keeper;
mod memory;
mod record;
mod settings;
mod store;

pub use keeper::{Kept, ResponseKeeper};
pub use memory::MemoryResponses;
pub use record::{Chain, StoredResponse};
pub use settings::Settings;
pub use store::{Responses, ResponsesError};
