//! Stint decides how much thinking each request deserves, and holds models to it.
//!
//! The modules below are a ladder: each paragraph is a level, top first, and a module names only modules on
//! lower levels. `tests/it/layers.rs` checks it.

pub mod app;

pub mod config;

pub mod http;

pub mod guardrail;
pub mod oidc;

pub mod traces;

pub mod gateway;

pub mod execute;

mod outbound;
