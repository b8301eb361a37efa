//! One request that is being admitted, and what comes of it.

use tokio::time::Instant;

use crate::catalog::Plan;
use crate::gateway::episodes::RunningStep;
use crate::gateway::state::gateway_state::GatewayState;
use crate::gateway::state::parts::GatewayParts;
use crate::ledger::Reservation;
use crate::tenant::Tenant;
use crate::units::RequestId;

use super::plan_inputs::PlanInputs;

/// One request that is being admitted: whose it is, and how long it may take.
#[derive(Clone, Copy)]
pub(in crate::gateway) struct Admission<'a> {
    pub(in crate::gateway) state: &'a GatewayState,
    pub(in crate::gateway) tenant: &'a Tenant,
    pub(in crate::gateway) id: RequestId,
    pub(in crate::gateway) deadline: Instant,
}

impl<'a> Admission<'a> {
    pub(super) fn parts(&self) -> &'a GatewayParts {
        &self.state.parts
    }
}

/// A request that is planned and whose worst case is reserved: what `admit` hands to `run`.
pub(in crate::gateway) struct ReservedRequest {
    pub(in crate::gateway) inputs: PlanInputs,
    pub(in crate::gateway) plan: Plan,
    pub(in crate::gateway) reservation: Reservation,
    /// The step of an episode that it is, if it is one.
    pub(in crate::gateway) step: Option<RunningStep>,
}
