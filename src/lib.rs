//! Stint decides how much thinking each request deserves, and holds models to it.
//!
//! The modules below are a ladder: each paragraph is a level, top first, and a module names only modules on
//! lower levels. `tests/it/layers.rs` checks it.

pub mod app;

pub mod config;

pub mod http;
pub mod simulate;

pub mod gateway;
pub mod storage;

pub mod execute;
pub mod learn;

pub mod agent;

pub mod backend;
pub mod estimate;
pub mod history;
pub mod idempotency;
pub mod ledger;
pub mod plan;

pub mod catalog;
pub mod prompt;
pub mod tenant;

pub mod chat;
pub mod engine;

pub mod metrics;
pub mod tasks;
pub mod units;
