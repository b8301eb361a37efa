//! From a departure to a flight: what its caller holds, and the task that flies it.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;

use crate::backend::fleet::{Beginning, Party};
use crate::catalog::Plan;
use crate::idempotency::Ticket;
use crate::ledger::Reservation;
use crate::tenant::Tenant;
use crate::units::{Money, RequestId};

use super::considered::Considered;
use super::episodes::Stepping;
use super::flying::Flying;
use super::{Flight, Gateway, Report, RequestObserver};

/// A request whose worst case is set aside.
pub(super) struct Departure {
    pub(super) considered: Considered,
    pub(super) plan: Plan,
    pub(super) reservation: Reservation,
    /// The step of a run that it is, if it is one.
    pub(super) stepping: Option<Stepping>,
}

/// What a request came with, whatever is decided about it.
pub(super) struct Arrival {
    pub(super) id: RequestId,
    /// Of its idempotency key.
    pub(super) ticket: Option<Ticket>,
    /// Who wants to know how it ends.
    pub(super) observer: Option<Arc<dyn RequestObserver>>,
    pub(super) arrived: Instant,
    pub(super) deadline: Instant,
    /// Its place among those in flight.
    pub(super) place: OwnedSemaphorePermit,
}

impl Gateway {
    /// Lets it fly.
    pub(super) fn launch(&self, tenant: &Tenant, arrival: Arrival, departure: Departure) -> Flight {
        let (events, reports) = mpsc::channel(self.parts.settings.events_max);
        let flight = self.flight(arrival.id, &departure, reports);
        let (flying, reservation, place) = self.flying(tenant, arrival, departure);
        self.pacing.departed(&tenant.account, &flying.paced, flying.expected, self.now());
        self.parts.tasks.spawn(async move {
            flying.fly(reservation, events).await;
            drop(place);
        });
        flight
    }

    /// What its caller holds of it.
    fn flight(&self, id: RequestId, departure: &Departure, reports: mpsc::Receiver<Report>) -> Flight {
        let Departure { considered, plan, stepping, .. } = departure;
        let (model, tools_cost) = (&plan.best.model, stepping.as_ref().map(|step| step.step.tools_cost));
        let is_exact = self.parts.fleets.get(model).is_some_and(|fleet| fleet.counts_exactly());
        let prompt = considered.demand.models.get(model).map(|demand| demand.prompt);
        Flight {
            id,
            model: model.clone(),
            episode: stepping.as_ref().map(|stepping| stepping.run.id.clone()),
            choices: considered.request.choices,
            prompt: prompt.filter(|_| is_exact),
            reserved: plan.best.worst.money + tools_cost.unwrap_or(Money::ZERO),
            reports,
        }
    }

    /// All that the task needs which flies it.
    fn flying(
        &self,
        tenant: &Tenant,
        Arrival { id, ticket, observer, arrived, deadline, place }: Arrival,
        Departure { considered, plan, reservation, stepping }: Departure,
    ) -> (Flying, Reservation, OwnedSemaphorePermit) {
        let flying = Flying {
            parts: self.parts.clone(),
            demotions: self.demotions.clone(),
            withdrawals: self.withdrawals.clone(),
            verifiers: self.verifiers.clone(),
            route: self.route_label(&considered.rules.named),
            decided_by: considered.rules.policy.clone(),
            observed: self.observe(tenant, id, &considered),
            pacing: self.pacing.clone(),
            grounds: considered.grounds(&tenant.account),
            policy: considered.rules.route,
            paced: considered.paced,
            expected: plan.best.cost,
            models: considered.models,
            account: tenant.account.clone(),
            id,
            ticket,
            observer,
            beginning: Beginning::of(&considered.request),
            party: Party::of(&tenant.account),
            priority: tenant.priority,
            request: considered.request,
            demand: considered.demand,
            market: considered.market,
            plan,
            stepping,
            arrived,
            deadline,
        };
        (flying, reservation, place)
    }
}
