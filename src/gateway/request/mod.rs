//! The data of one request: what the gateway knows about it in every stage of its life, and what its caller gets from it.

mod answering_model;
mod bill;
mod context;
mod decision_context;
mod dispatch;
pub(super) mod needs;
mod observed_plan;
mod observer;
mod receipt;
mod refusal;
pub(super) mod refusal_labels;
mod reservation;
pub(super) mod scope;
mod task;
mod wait_clock;

pub use answering_model::AnsweringModel;
pub use observer::{RequestObserver, RequestStage};
pub use receipt::{Chooser, RequestReceipt, SettledChoice, VoteTally};
pub use refusal::{Denial, RequestRefusal, SHUTTING_DOWN};
pub(super) use task::CutOff;
pub use task::{RequestTask, RequestUpdate};

pub(super) use bill::{Bill, settlement_detail};
pub(super) use context::RequestContext;
pub(super) use decision_context::{DecisionContext, canary_policy};
pub(super) use dispatch::{EXPIRY_MARGIN, record_dispatch};
pub(super) use observed_plan::{ActualUsage, ObservedPlan};
pub(super) use refusal::RETRY_AFTER;
pub(super) use reservation::{ExtensionError, RequestReservation};
pub(super) use wait_clock::WaitClock;
