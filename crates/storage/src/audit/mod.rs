//! Verifying the books: everything is recomputed from all entries, and compared with what is stored.

mod changes;
mod describe;
mod verify;

pub use verify::VerifyReport;
pub(super) use verify::{Invariant, verify};
