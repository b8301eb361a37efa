//! What is known of one request in every stage of its life, and what its caller is told.

pub(super) mod bill;
pub(super) mod context;
pub(super) mod decision_context;
pub(super) mod dispatch;
pub(super) mod needs;
pub(super) mod observed_plan;
pub(super) mod observer;
pub(super) mod receipt;
pub(super) mod refusal;
pub(super) mod refusal_labels;
pub(super) mod reservation;
pub(super) mod scope;
pub(super) mod task;
