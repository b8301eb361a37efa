//! The wire: listeners, keys, dialects, and the one mapping of errors.
//!
//! Handlers read, ask `gateway`, and write; they decide nothing about budgets.

mod access_log;
pub mod admin;
mod anthropic;
mod auth;
mod bodies;
mod body;
mod budget;
mod chat;
mod connection;
mod cors;
mod digits;
mod door;
mod embeddings;
mod episodes;
mod error;
mod events;
mod feedback;
mod fields;
mod front;
mod headers;
mod images;
mod marks;
mod messages;
mod openai;
mod pages;
mod paired;
mod plan;
mod repeat;
mod requests;
mod responses;
mod router;
mod said;
mod server;
mod settings;
mod signed;
mod strict;
mod surface;
mod unknown;
mod unserved;
mod usage;

pub use access_log::TARGET as ACCESS_LOG;
pub use bodies::Room;
pub use cors::Origins;
pub use door::Door;
pub use router::{Service, api, api_table, api_within, monitoring};
pub use server::{Bound, Server, bind, reachable};
pub use settings::{AdminSettings, Settings};
