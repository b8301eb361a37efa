//! Providers as they behave: what they refuse, how they think, and what they bill.

pub(crate) mod chat;
mod raw;
mod rules;
