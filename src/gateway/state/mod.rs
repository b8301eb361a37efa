//! What all requests of a gateway share.

pub(super) mod demotions;
pub(super) mod pacing;
pub(super) mod verifiers;
pub(super) mod wait;
pub(super) mod withdrawals;
