//! Seals: a hash chain over the resolutions, and sums that save reading them again. Pure; a journal calls it.

mod bytes;
mod chain;
mod record;

pub use chain::{Rollups, SEAL_MAX, Seal, SealBuilder};
pub use record::ResolutionRecord;
