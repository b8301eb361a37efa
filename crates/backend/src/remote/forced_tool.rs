//! Requests that force a tool on a model that cannot think then.

/// Why no thought goes with such a request.
pub(super) const NO_THOUGHT: &str = "no thought goes with a forced tool there";

/// Why a model is not asked that cannot be kept from thinking.
pub(super) const ALWAYS_THINKS: &str = "this model always thinks, so no tool can be forced on it";
