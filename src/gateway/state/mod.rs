//! What all requests of a gateway share.

pub(super) mod demotions;
pub(super) mod gateway_state;
pub(super) mod pacing;
pub(super) mod parts;
pub(super) mod verifiers;
pub(super) mod wait_queues;
pub(super) mod withdrawals;
