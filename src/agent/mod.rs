//! Agents: episodes, tool budgets, the tracker, and stored responses.
//!
//! Everything here but the stores is pure: given how an episode stands it says what a step may do, and what of its answer
//! may pass.

pub mod stored;
