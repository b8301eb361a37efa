//! The HTTP server: listeners, keys, the dialects of three APIs, and the one mapping of errors.
//!
//! Handlers read, ask `gateway`, and write; they decide nothing about budgets.

mod access_log;
pub mod admin;
mod answer;
mod anthropic;
mod api_state;
mod auth;
mod body;
mod body_limiter;
mod budget;
mod budget_report;
mod cache_control;
mod collected_choice;
mod connection;
mod cors;
mod dialect;
mod embeddings;
mod episodes;
mod error;
mod events;
mod feedback;
mod fields;
mod framing;
mod front;
mod headers;
mod idempotency_key;
mod images;
mod json_response;
mod openai;
mod pages;
mod plan;
mod received_request;
mod request_reader;
mod requests;
mod responses;
mod rounding;
mod router;
mod routes;
mod server;
mod settings;
mod signed;
mod strict;
mod swappable_router;
mod tool_pairing;
mod unknown_members;
mod unserved_paths;
mod usage;

pub use access_log::TARGET as ACCESS_LOG;
pub use api_state::ApiState;
pub use body_limiter::BodyLimiter;
pub use cors::Origins;
pub use routes::{api, api_table, api_with_limiter, monitoring};
pub use server::{BoundListener, Server, bind, local_address};
pub use settings::{AdminSettings, Settings};
pub use swappable_router::SwappableRouter;
