//! From a request to a flight: decide, reserve, depart.

use std::sync::Arc;

use tokio::time::Instant;

use crate::chat::Request;
use crate::idempotency::Ticket;
use crate::tenant::Tenant;
use crate::units::RequestId;

use super::launch::{Arrival, Departure};
use super::refused::{limit, limit_label};
use super::{Denial, Flight, Gateway, Refusal, RequestObserver, episodes};

impl Gateway {
    /// Decides about a request, sets its worst case aside, and lets it fly. The `ticket` of its idempotency
    /// key is begun before anything is sent, and let go where it is refused. The `observer` is told how it ends.
    ///
    /// # Errors
    /// When no offer serves it or its account does not allow one; nothing is reserved then.
    pub async fn admit(
        &self,
        tenant: &Tenant,
        request: Request,
        ticket: Option<Ticket>,
        observer: Option<Arc<dyn RequestObserver>>,
    ) -> Result<Flight, Denial> {
        let arrived = Instant::now();
        let route = self.route_label(&request.model);
        let named = request.budget.episode.clone();
        let mut admitted = self.decide(tenant, request, (ticket, observer), arrived).await;
        if let Err(Denial { refusal, episode }) = &mut admitted {
            *episode = episode.take().or(named);
            if let Some(limit) = limit(refusal) {
                self.parts.ledger.refused(&tenant.account, limit);
            }
            let metrics = &self.parts.metrics;
            metrics.requests.total.with_label_values(&[&*route, "none", "refused"]).inc();
            metrics.requests.refusals.with_label_values(&[&limit_label(refusal)]).inc();
        }
        admitted
    }

    async fn decide(
        &self,
        tenant: &Tenant,
        request: Request,
        (ticket, observer): (Option<Ticket>, Option<Arc<dyn RequestObserver>>),
        arrived: Instant,
    ) -> Result<Flight, Denial> {
        if self.parts.tasks.is_stopping() {
            return Err(Refusal::Stopping.into());
        }
        self.count_choices(&request)?;
        let place = self.place()?;
        let (id, deadline) = (RequestId::new(), arrived + self.time(&request));
        let departure = match episodes::is_step(&request) {
            true => Box::pin(self.step(tenant, id, Arc::new(request), deadline)).await?,
            false => Box::pin(self.alone(tenant, id, request, deadline)).await?,
        };
        let arrival = Arrival { id, ticket, observer, arrived, deadline, place };
        Ok(self.launch(tenant, arrival, departure))
    }

    /// The departure of a request that is no step of a run.
    async fn alone(
        &self,
        tenant: &Tenant,
        id: RequestId,
        request: Request,
        deadline: Instant,
    ) -> Result<Departure, Refusal> {
        let considered = self.consider(tenant, request)?;
        let (plan, reservation) = self.reserve(tenant, id, &considered, deadline).await?;
        Ok(Departure { considered, plan, reservation, stepping: None })
    }
}
