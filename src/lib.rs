//! Stint decides how much thinking each request deserves, and holds models to it.
//!
//! The modules below are a ladder: each paragraph is a rung, top first, and a module names only modules on
//! lower rungs. `tests/it/layers.rs` checks it.

pub mod backend;

pub mod catalog;
pub mod prompt;

pub mod chat;

pub mod tasks;
pub mod units;

pub mod engine;
