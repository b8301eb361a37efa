//! What all requests of a gateway share.

mod demotions;
mod gateway_state;
mod live_requests;
mod pacing;
mod parts;
mod recipes;
mod trial_book;
mod verifiers;
mod wait_queues;
mod withdrawals;

pub use live_requests::{LiveAttemptView, LiveRequestView};
pub use pacing::PaceStatus;
pub use parts::GatewayParts;

pub(super) use gateway_state::GatewayState;
pub(super) use pacing::Pacing;
pub(super) use trial_book::TrialUse;
pub(super) use wait_queues::{BoundedWait, WaitQueues};
pub(super) use withdrawals::SuspectFeature;
