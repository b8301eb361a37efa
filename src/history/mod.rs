//! What decisions leave behind: the story of each request, what was said of its answer, and what was learned from them,
//! kept for a while; and a log of all decisions for those who judge them afterwards.
//!
//! Of a request there is what was predicted, decided and spent, never a word of its prompt or its answer. Nothing here is on
//! the way of an answer: whoever writes it is a task of its own.

#[cfg(test)]
pub(crate) mod conformance;
mod line;
mod log;
mod memory;
mod scribe;
mod store;
mod story;

pub use line::{Line, VERSION};
pub use log::{Log, LogSettings};
pub use memory::MemoryStories;
pub use scribe::{Scribe, ScribeObserver};
pub use store::{ReplicaId, Saved, Stories, StoriesError};
pub use story::Story;
