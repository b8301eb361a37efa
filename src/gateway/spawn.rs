//! From a departure to a flight: what its caller holds, and the task that flies it.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;

use crate::backend::fleet::{AffinityKey, FlowId};
use crate::catalog::Plan;
use crate::idempotency::IdempotencyTicket;
use crate::ledger::Reservation;
use crate::tenant::Tenant;
use crate::units::{Money, RequestId};

use super::admit::plan_inputs::PlanInputs;
use super::episodes::RunningStep;
use super::run::running_request::RunningRequest;
use super::{Gateway, RequestObserver, RequestTask, RequestUpdate};

/// A request whose worst case is set aside.
pub(super) struct ReservedRequest {
    pub(super) inputs: PlanInputs,
    pub(super) plan: Plan,
    pub(super) reservation: Reservation,
    /// The step of a run that it is, if it is one.
    pub(super) step: Option<RunningStep>,
}

/// What a request came with, whatever is decided about it.
pub(super) struct IncomingRequest {
    pub(super) id: RequestId,
    /// Of its idempotency key.
    pub(super) ticket: Option<IdempotencyTicket>,
    /// Who wants to know how it ends.
    pub(super) observer: Option<Arc<dyn RequestObserver>>,
    pub(super) arrived: Instant,
    pub(super) deadline: Instant,
    /// Its place among those in flight.
    pub(super) admission: OwnedSemaphorePermit,
}

impl Gateway {
    /// Lets it fly.
    pub(super) fn spawn(
        &self,
        tenant: &Tenant,
        arrival: IncomingRequest,
        departure: ReservedRequest,
    ) -> RequestTask {
        let (events, reports) = mpsc::channel(self.parts.settings.events_max);
        let flight = self.task_handle(arrival.id, &departure, reports);
        let (flying, reservation, place) = self.running_request(tenant, arrival, departure);
        self.pacing.record_dispatch(&tenant.account, &flying.paced, flying.expected, self.now());
        self.parts.tasks.spawn(async move {
            flying.serve(reservation, events).await;
            drop(place);
        });
        flight
    }

    /// What its caller holds of it.
    fn task_handle(
        &self,
        id: RequestId,
        departure: &ReservedRequest,
        reports: mpsc::Receiver<RequestUpdate>,
    ) -> RequestTask {
        let ReservedRequest { inputs: considered, plan, step: stepping, .. } = departure;
        let (model, tools_cost) = (&plan.best.model, stepping.as_ref().map(|step| step.plan.tools_cost));
        let is_exact = self.parts.fleets.get(model).is_some_and(|fleet| fleet.counts_exactly());
        let prompt = considered.demand.models.get(model).map(|demand| demand.prompt);
        RequestTask {
            id,
            model: model.clone(),
            episode: stepping.as_ref().map(|stepping| stepping.episode.id.clone()),
            choices: considered.request.choices,
            prompt: prompt.filter(|_| is_exact),
            reserved: plan.best.worst.money + tools_cost.unwrap_or(Money::ZERO),
            updates: reports,
        }
    }

    /// All that the task needs which flies it.
    fn running_request(
        &self,
        tenant: &Tenant,
        IncomingRequest { id, ticket, observer, arrived, deadline, admission: place }: IncomingRequest,
        ReservedRequest { inputs: considered, plan, reservation, step: stepping }: ReservedRequest,
    ) -> (RunningRequest, Reservation, OwnedSemaphorePermit) {
        let flying = RunningRequest {
            parts: self.parts.clone(),
            demotions: self.demotions.clone(),
            withdrawals: self.withdrawals.clone(),
            verifiers: self.verifiers.clone(),
            route: self.route_label(&considered.rules.named),
            decided_by: considered.rules.policy.clone(),
            observed: self.observe_plan(tenant, id, &considered),
            pacing: self.pacing.clone(),
            decision_context: considered.decision_context(&tenant.account),
            policy: considered.rules.route,
            paced: considered.paced,
            expected: plan.best.cost,
            models: considered.models,
            account: tenant.account.clone(),
            id,
            ticket,
            observer,
            beginning: AffinityKey::of(&considered.request),
            party: FlowId::of(&tenant.account),
            priority: tenant.priority,
            request: considered.request,
            demand: considered.demand,
            market: considered.market,
            plan,
            step: stepping,
            arrived,
            deadline,
        };
        (flying, reservation, place)
    }
}
