//! The wire: listeners, keys, dialects, and the one mapping of errors.
//!
//! Handlers read, ask `gateway`, and write; they decide nothing about budgets.

pub mod admin;
mod auth;
mod bodies;
mod body;
mod chat;
mod connection;
mod embeddings;
mod error;
mod fields;
mod headers;
mod openai;
mod pages;
mod plan;
mod repeat;
mod router;
mod server;
mod settings;
mod strict;
mod usage;

pub use router::{Service, api, api_table, monitoring};
pub use server::{Bound, Server, bind, reachable};
pub use settings::{AdminSettings, Settings};
