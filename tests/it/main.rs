//! One integration binary, a module per feature.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests may fail, print, and spawn callers of their own"
)]

mod access;
mod access_log;
mod agents;
mod answer_notes;
mod books;
mod browsers;
mod budgets;
mod catalogue;
mod charting;
mod chat_model;
mod chatting;
mod checking;
mod connections;
mod crash;
mod curves;
mod dialects;
mod documents;
mod draining;
mod elsewhere;
mod endpoints;
mod engines;
mod expecting;
mod extreme_settings;
mod faults;
mod feedback;
mod forms;
mod forwarding;
mod framing;
mod growing;
mod guardrails;
mod guessing;
mod hanging_up;
mod harness;
mod heeding;
mod hostile;
mod http2;
mod idempotency;
mod incapable;
mod keys;
mod layers;
mod learning;
mod libraries;
mod llamacpp;
mod loading;
mod local;
mod lying;
mod managing;
mod members;
mod messages;
mod model_files;
mod money;
mod newcomer;
mod open_files;
mod operating;
mod outage;
mod overload;
mod page;
mod prefill;
mod price_lists;
mod probe;
mod provider_members;
mod providers;
mod quotes;
mod reasons;
mod recipes;
mod recorded;
mod reference;
mod refusals;
mod reload;
mod replicas;
mod reserving;
mod resilience;
mod responses;
mod roles;
mod rollout;
mod sdk;
mod securing;
mod simulated;
mod small_limits;
mod strangers;
mod streams;
#[path = "../street/mod.rs"]
mod street;
mod structured;
mod surface;
mod surfaces;
mod terminal;
mod thinkers;
mod tokens;
mod traces;
mod trying;
mod upstreams;
mod voting;
mod watching;
