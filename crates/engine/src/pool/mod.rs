//! The engines of a process, and the device's memory that they share.
//!
//! A model is loaded at the start or when it is first needed, and let go when nobody has used it for long or another needs its
//! room. One that is in use is never let go: each use has a lease. What is decided stands in `room` and `state`, the
//! thread that does it in `keeper`.

mod engine_spec;
mod entry;
mod keeper;
mod lease;
mod lease_refusal;
mod load_time;
mod pooled_engine;
mod room;
mod shared;
mod state;

pub use engine_spec::{EngineSpec, RemovalListener, Residency};
pub use entry::EngineTotals;
pub use lease::EngineLease;
pub use lease_refusal::LeaseRefusal;
pub use pooled_engine::{EnginePool, PooledEngine, PooledOutage};
