//! Refuses what is refused for free before anybody is asked for something that is not, like a hook that judges the request.

use stint_decide::plan::PlanRefusal;
use stint_types::chat::Request;
use stint_types::tenant::Tenant;
use stint_types::units::Holder;

use super::admit::{QuoteDetails, held_shortfall};
use super::handle::Gateway;
use super::request::scope;
use super::{Denial, RequestObserver, RequestRefusal, RequestStage};

impl Gateway {
    /// Whether a request would be refused as it is. What lacks under a limit and is only held by other requests is no refusal yet:
    /// [`Gateway::admit`] waits for it. Nothing is reserved.
    ///
    /// # Errors
    /// The refusal, which counts like one of `admit`.
    pub async fn precheck(
        &self,
        tenant: &Tenant,
        request: &Request,
        observer: Option<&dyn RequestObserver>,
    ) -> Result<(), Denial> {
        let Some(refusal) = self.free_refusal(tenant, request).await else { return Ok(()) };
        observer.iter().for_each(|observer| observer.reached(RequestStage::Arrived));
        let denial = Denial { episode: request.budget.episode.clone(), ..Denial::from(refusal) };
        self.record_refusal(tenant, &request.model, &denial, observer);
        Err(denial)
    }

    async fn free_refusal(&self, tenant: &Tenant, request: &Request) -> Option<RequestRefusal> {
        if let Some(refusal) = self.spent(tenant).await {
            return Some(refusal);
        }
        let (ledger, about) = (&self.state.parts.ledger, scope::of(&request.extra));
        let quote = async || {
            let quoted = Box::pin(self.quote(tenant, request.clone(), QuoteDetails::default())).await;
            quoted.err()
        };
        let mut refusal = quote().await?;
        // What other replicas do not use of a limit counts as spent until they are asked for it.
        if ledger.is_shared()
            && matches!(refusal, RequestRefusal::Plan(PlanRefusal::InsufficientQuota { .. }))
        {
            ledger.refresh_limits(&tenant.account, &about).await;
            refusal = quote().await?;
        }
        let may_pass = matches!(refusal, RequestRefusal::EpisodeBusy { .. })
            || is_of_run(&refusal)
            || held_shortfall(ledger, &tenant.account, &about, &refusal).is_some();
        (!may_pass).then_some(refusal)
    }
}

/// True where a run's own limit leaves too little: a step beside it may give some back, and `admit` waits for it.
fn is_of_run(refusal: &RequestRefusal) -> bool {
    matches!(
        refusal,
        RequestRefusal::Plan(PlanRefusal::InsufficientQuota { limit, .. }) if limit.holder == Holder::Episode
    )
}
