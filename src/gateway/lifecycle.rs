//! From a request to a flight: decide, reserve, depart.

use std::sync::Arc;

use tokio::time::Instant;

use crate::chat::Request;
use crate::idempotency::IdempotencyTicket;
use crate::tenant::Tenant;
use crate::units::RequestId;

use super::request::refusal_labels::{limit, limit_label};
use super::spawn::{IncomingRequest, ReservedRequest};
use super::{Denial, Gateway, RequestObserver, RequestRefusal, RequestTask, episodes};

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
        ticket: Option<IdempotencyTicket>,
        observer: Option<Arc<dyn RequestObserver>>,
    ) -> Result<RequestTask, Denial> {
        let arrived = Instant::now();
        let route = self.route_label(&request.model);
        let named = request.budget.episode.clone();
        let mut admitted = self.decide(tenant, request, (ticket, observer), arrived).await;
        if let Err(Denial { refusal, episode }) = &mut admitted {
            *episode = episode.take().or(named);
            if let Some(limit) = limit(refusal) {
                self.parts.ledger.record_refusal(&tenant.account, limit);
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
        (ticket, observer): (Option<IdempotencyTicket>, Option<Arc<dyn RequestObserver>>),
        arrived: Instant,
    ) -> Result<RequestTask, Denial> {
        if self.parts.tasks.is_stopping() {
            return Err(RequestRefusal::Stopping.into());
        }
        self.count_choices(&request)?;
        let place = self.acquire_admission()?;
        let (id, deadline) = (RequestId::new(), arrived + self.time_limit(&request));
        let departure = match episodes::is_step(&request) {
            true => Box::pin(self.prepare_step(tenant, id, Arc::new(request), deadline)).await?,
            false => Box::pin(self.prepare_single(tenant, id, request, deadline)).await?,
        };
        let arrival = IncomingRequest { id, ticket, observer, arrived, deadline, admission: place };
        Ok(self.spawn(tenant, arrival, departure))
    }

    /// The departure of a request that is no step of a run.
    async fn prepare_single(
        &self,
        tenant: &Tenant,
        id: RequestId,
        request: Request,
        deadline: Instant,
    ) -> Result<ReservedRequest, RequestRefusal> {
        let considered = self.gather_inputs(tenant, request)?;
        let (plan, reservation) = self.reserve(tenant, id, &considered, deadline).await?;
        Ok(ReservedRequest { inputs: considered, plan, reservation, step: None })
    }
}
