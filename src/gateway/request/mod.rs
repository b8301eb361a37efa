//! What is known of one request in every stage of its life, and what its caller is told.

pub(super) mod needs;
pub(super) mod observer;
pub(super) mod receipt;
pub(super) mod refusal;
pub(super) mod refusal_labels;
pub(super) mod reservation;
pub(super) mod scope;
pub(super) mod task;
