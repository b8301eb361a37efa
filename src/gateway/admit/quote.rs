//! Quotes a request: which plan it would get, for callers that ask before they spend. Nothing is reserved, sent, bought or
//! stored.

use crate::gateway::request::{RequestRefusal, scope};
use crate::gateway::state::GatewayState;
use stint_decide::plan::{self, Quote};
use stint_types::catalog::Demand;
use stint_types::chat::Request;
use stint_types::tenant::Tenant;

use super::gather_inputs::gather_inputs;
use super::reserve::explain;

/// A quote, and the estimate that it is made of.
#[derive(Debug)]
pub struct RequestQuote {
    /// How hard the request looks.
    pub demand: Demand,
    /// Every offer, and the one that would be taken.
    pub quote: Quote,
}

/// Plans a request that is no step of an episode.
pub(crate) fn quote_single(
    state: &GatewayState,
    tenant: &Tenant,
    request: Request,
) -> Result<RequestQuote, RequestRefusal> {
    let inputs = gather_inputs(state, tenant, request)?;
    let (ledger, about) = (&state.parts.ledger, scope::of(&inputs.request.extra));
    // What other replicas hold for their next requests is not asked back for a quote.
    let allowance = ledger.allowance(&tenant.account, &about, ledger.now());
    let quote = inputs.ask(&allowance, 0, plan::quote);
    let quote = quote.map_err(|refusal| explain(state, refusal, &inputs))?;
    Ok(RequestQuote { demand: inputs.demand, quote })
}
