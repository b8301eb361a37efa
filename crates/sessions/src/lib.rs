//! What lives longer than a request: episodes of agents, conversations, stored responses, idempotency keys, request records.

pub mod agent;
pub mod history;
pub mod idempotency;

mod store_writer;
