//! `[[route]]`: the operator's own names for a choice among models, with the votes, second opinions and rollout of each.

mod ineffective;
mod known_model;
mod opinion;
mod rollout;
mod routes;

pub(super) use routes::routes;
