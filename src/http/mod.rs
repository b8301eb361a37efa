//! The wire: listeners, keys, dialects, and the one mapping of errors.
//!
//! Handlers read, ask `gateway`, and write; they decide nothing about budgets.

mod auth;
mod body;
mod chat;
mod connection;
mod error;
mod fields;
mod headers;
mod openai;
mod pages;
mod repeat;
mod router;
mod server;
mod settings;
mod strict;
mod usage;

pub use router::{Service, api, monitoring};
pub use server::{Bound, Server, bind};
pub use settings::Settings;
