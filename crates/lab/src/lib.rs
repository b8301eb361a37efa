//! Decisions tried outside of service: replayed from a log, and simulated in virtual time.

pub mod replay;
pub mod simulate;
