//! Quotes a request: which plan it would get, for callers that ask before they spend. Nothing is reserved, sent, bought or
//! stored.

use std::sync::Arc;

use crate::gateway::request::{RequestRefusal, scope};
use crate::gateway::state::GatewayState;
use stint_decide::plan::{self, PlanRefusal, Quote, WorthRange};
use stint_types::catalog::{Allowance, Demand};
use stint_types::chat::Request;
use stint_types::tenant::Tenant;
use stint_types::units::Money;

use super::gather_inputs::gather_inputs;
use super::plan_inputs::PlanInputs;
use super::quote_evidence::QuoteEvidence;
use super::reserve::explain;

/// What is wanted beside the offers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuoteDetails {
    /// What was seen of the request and is believed of each model.
    pub explains: bool,
    /// What would be chosen from which worth of a right answer to which.
    pub sweeps: bool,
}

/// A quote, and the estimate that it is made of.
#[derive(Debug)]
pub struct RequestQuote {
    /// How hard the request looks.
    pub demand: Demand,
    /// Every offer, and the one that would be taken.
    pub quote: Quote,
    /// What the estimate rests on, where that is wanted.
    pub evidence: Option<QuoteEvidence>,
    /// What would be chosen at other worths, where that is wanted.
    pub ranges: Option<Vec<WorthRange>>,
    /// What a right answer is worth now.
    pub worth: Money,
}

/// Plans a request that is no step of an episode.
pub(crate) fn quote_single(
    state: &GatewayState,
    tenant: &Tenant,
    request: Arc<Request>,
    details: QuoteDetails,
) -> Result<RequestQuote, RequestRefusal> {
    let inputs = gather_inputs(state, tenant, request)?;
    let (ledger, about) = (&state.parts.ledger, scope::of(&inputs.request.extra));
    // What other replicas hold for their next requests is not asked back for a quote.
    let allowance = ledger.allowance(&tenant.account, &about, ledger.now());
    quote_inputs(state, &inputs, &allowance, details).map_err(|refusal| explain(state, refusal, &inputs))
}

/// Prices what is known of a request.
pub(super) fn quote_inputs(
    state: &GatewayState,
    inputs: &PlanInputs,
    allowance: &Allowance,
    details: QuoteDetails,
) -> Result<RequestQuote, PlanRefusal> {
    let mut quote = inputs.ask(allowance, 0, plan::quote)?;
    if let Some(chosen) = quote.offers.get(quote.chosen) {
        inputs.annotate(&mut quote.why, &chosen.model);
    }
    let ranges = details.sweeps.then(|| inputs.ask(allowance, 0, plan::sweep)).transpose()?;
    let worth = inputs.rules.route.worth.as_dollars() * inputs.market.worth_factor;
    Ok(RequestQuote {
        evidence: details.explains.then(|| QuoteEvidence::of(state, inputs)),
        demand: inputs.demand.clone(),
        worth: Money::from_dollars_up(worth),
        quote,
        ranges,
    })
}
