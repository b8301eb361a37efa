//! From a request to its reservation: who may serve it, at what price, and what is set aside.

pub(super) mod answer_reserve;
pub(super) mod gather_inputs;
pub(super) mod plan_inputs;
pub(super) mod prepare_step;
pub(super) mod quote_step;
pub(super) mod reserve;
pub(super) mod reserve_step;
pub(super) mod rollout;
pub(super) mod step_context;
