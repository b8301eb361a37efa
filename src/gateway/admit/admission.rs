//! The types of admission: `Admission` is a request that is being admitted, `ReservedRequest` is the result.

use tokio::time::Instant;

use crate::gateway::episodes::RunningStep;
use crate::gateway::request::WaitClock;
use crate::gateway::state::{GatewayParts, GatewayState};
use crate::gateway::{RequestObserver, RequestStage};
use stint_ledger::Reservation;
use stint_types::catalog::Plan;
use stint_types::tenant::Tenant;
use stint_types::units::RequestId;

use super::plan_inputs::PlanInputs;

/// One request that is being admitted: whose it is, and how long it may take.
#[derive(Clone, Copy)]
pub(crate) struct Admission<'a> {
    pub(crate) state: &'a GatewayState,
    pub(crate) tenant: &'a Tenant,
    pub(crate) id: RequestId,
    pub(crate) deadline: Instant,
    /// How long it waited for what others hold.
    pub(crate) waits: &'a WaitClock,
    pub(crate) observer: Option<&'a dyn RequestObserver>,
}

impl<'a> Admission<'a> {
    /// Tells the observer that a stage is over.
    pub(super) fn reached(&self, stage: RequestStage<'_>) {
        self.observer.iter().for_each(|observer| observer.reached(stage));
    }

    pub(super) fn parts(&self) -> &'a GatewayParts {
        &self.state.parts
    }
}

/// A request that is planned and whose worst case is reserved: what `admit` hands to `run`.
pub(crate) struct ReservedRequest {
    pub(crate) inputs: PlanInputs,
    pub(crate) plan: Plan,
    pub(crate) reservation: Reservation,
    /// The step of an episode that it is, if it is one.
    pub(crate) step: Option<RunningStep>,
}
