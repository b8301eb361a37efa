//! What a request would be planned as, for those who ask before they spend: nothing is reserved, sent, bought or kept.

use crate::catalog::Demand;
use crate::chat::Request;
use crate::plan::{self, Quote};
use crate::tenant::Tenant;

use super::request::scope;
use super::{Gateway, RequestRefusal, episodes};

/// A quote, and the estimate that it is made of.
#[derive(Debug)]
pub struct RequestQuote {
    /// How hard the request looks.
    pub demand: Demand,
    /// Every offer, and the one that would be taken.
    pub quote: Quote,
}

impl Gateway {
    /// Plans a request as [`Gateway::admit`] would on what is left now, and tells all that it would choose from.
    ///
    /// # Errors
    /// As `admit`'s, where that would refuse before it reserves.
    pub async fn quote(&self, tenant: &Tenant, request: Request) -> Result<RequestQuote, RequestRefusal> {
        self.count_choices(&request)?;
        let _place = self.acquire_admission()?;
        if episodes::is_step(&request) {
            return self.quote_step(tenant, request).await;
        }
        let on = self.gather_inputs(tenant, request)?;
        let (ledger, about) = (&self.parts.ledger, scope::of(&on.request.extra));
        // What other replicas hold for their next requests is not asked back for a quote.
        let allowance = ledger.allowance(&tenant.account, &about, ledger.now());
        let quote = on.ask(&allowance, 0, plan::quote);
        let quote = quote.map_err(|refusal| self.explain(refusal, &on))?;
        Ok(RequestQuote { demand: on.demand, quote })
    }
}
