//! Seals: a chain of hashes over what was resolved, and sums that spare reading it again. Pure; a journal calls it.

mod bytes;
mod chain;
mod record;

pub use chain::{Rollups, SEAL_MAX, Seal, SealBuilder};
pub use record::ResolutionRecord;
