//! What decisions leave behind: the story of each request, what was said of its answer, and what was learned from them,
//! kept for a while; and a log of all decisions for those who judge them afterwards.
//!
//! Of a request there is what was predicted, decided and spent, never a word of its prompt or its answer. Nothing here
//! delays an answer: a separate task does the writing.

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod log_file;
mod log_line;
mod log_writer;
mod memory;
mod record;
mod store;
mod writable_record;

pub use log_file::{DecisionLogFile, DecisionLogSettings};
pub use log_line::{DecisionLogLine, VERSION};
pub use log_writer::{DecisionLogEntry, DecisionLogWriter, LogLossObserver};
pub use memory::MemoryHistoryStore;
pub use record::RequestRecord;
pub use store::{HistoryStore, HistoryStoreError, ReplicaId, ReplicaState};
pub use writable_record::{WritableRecord, read_stored_decision};
