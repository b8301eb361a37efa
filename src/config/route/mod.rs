//! `[[route]]`: the operator's own names for a choice among models, with the votes, second opinions and rollout of each, and the
//! recipes that stand for several of these.

mod ineffective;
mod known_model;
mod opinion;
mod recipe;
mod rollout;
mod routes;

pub(super) use routes::routes;
