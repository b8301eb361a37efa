//! What every part of Stint speaks of: tokens and money, conversations, models, tenants, tracked tasks, metrics.
//!
//! The modules form a ladder, top rung first: a module names only modules on lower rungs.

pub mod tenant;

pub mod catalog;

pub mod chat;

pub mod metrics;
pub mod regular_file;
pub mod strict_json;
pub mod tasks;
pub mod trace;

pub mod units;
