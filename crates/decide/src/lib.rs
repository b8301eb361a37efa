//! How hard a request is, what it is worth, and what outcomes teach. Everything here computes: no I/O, no clock, no
//! randomness of its own.
//!
//! The modules form a ladder, top rung first: a module names only modules on lower rungs.

pub mod plan;

pub mod estimate;
pub mod learn;
