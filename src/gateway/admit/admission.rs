//! The types of admission: `Admission` is a request that is being admitted, `ReservedRequest` is the result.

use tokio::time::Instant;

use crate::gateway::episodes::RunningStep;
use crate::gateway::state::{GatewayParts, GatewayState};
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
}

impl<'a> Admission<'a> {
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
