//! Quotes a step of an episode: which plan it would get on what its episode has left. No step is begun, no budget lowered,
//! nothing reserved.

use std::sync::Arc;

use crate::gateway::RequestRefusal;
use crate::gateway::episodes::wait::busy;
use crate::gateway::state::GatewayState;
use stint_decide::plan;
use stint_sessions::agent::{EpisodeOwner, StepDecision, StepPlan, StepWait};
use stint_types::chat::Request;
use stint_types::tenant::Tenant;
use stint_types::units::Money;

use super::gather_inputs::rules;
use super::prepare_step::spent_refusal;
use super::quote::{QuoteDetails, RequestQuote, quote_inputs};
use super::reserve::explain;
use super::reserve_step::{step_inputs, without_answer_reserve, without_tools_cost};
use super::step_context::{DecidedStep, StepContext};

pub(crate) async fn quote_step(
    state: &GatewayState,
    tenant: &Tenant,
    request: Request,
    details: QuoteDetails,
) -> Result<RequestQuote, RequestRefusal> {
    let rules = rules(state, tenant, &request)?;
    let request = Arc::new(request);
    let (parts, account) = (&state.parts, &tenant.account);
    let owner = EpisodeOwner::of(tenant);
    let (joined, known) = parts.episodes.look_up(&owner, &request, parts.ledger.now()).await?;
    let context = StepContext::new(parts, account, &request, &joined, &rules);
    if !joined.is_first {
        parts.ledger.refresh_episode(account, &joined.id, &known).await;
    }
    let (balance, headroom) = (context.balance(), context.tool_call_headroom());
    let next = |calls_max| match context.decide(&balance, headroom, calls_max) {
        StepDecision::Proceed(step) => Ok(*step),
        StepDecision::Wait(wait) => Err(busy(&wait)),
        StepDecision::Exhausted(spent) => Err(spent_refusal(&joined.id, spent)),
    };
    let quote = |plan: StepPlan| {
        let step = DecidedStep { balance: balance.clone(), plan, observed: None };
        quote_decided_step(state, tenant, &context, step, details)
    };
    let mut calls_max = state.parts.episodes.inner.settings.calls_per_answer;
    let quoted = loop {
        let step = next(calls_max)?;
        let (is_final, fewer) = (step.is_final(), step.fewer_calls(calls_max));
        match quote(step) {
            Err(refusal) if !is_final && leaves_too_little(refusal.as_deref()) => calls_max = fewer,
            quoted => break quoted,
        }
    };
    quoted.map_err(|refusal| refusal.map_or_else(|| busy(&StepWait::default()), |refusal| *refusal))
}

/// A quote for a step; nothing if the caller's own limit does not pay for its tool calls.
fn quote_decided_step(
    state: &GatewayState,
    tenant: &Tenant,
    context: &StepContext<'_>,
    step: DecidedStep,
    details: QuoteDetails,
) -> Result<RequestQuote, Option<Box<RequestRefusal>>> {
    let inputs = step_inputs(state, tenant, context, &step).ok_or(None)?;
    let reserve_for_answer =
        if step.plan.is_final() { Money::ZERO } else { inputs.answer_reserve(&context.limits) };
    let (ledger, about) = (&state.parts.ledger, context.limit_scope());
    let limits = without_answer_reserve(&context.limits, reserve_for_answer);
    let allowance = ledger.allowance_within(&tenant.account, &about, &limits, ledger.now());
    let allowance = without_tools_cost(allowance, step.plan.tools_cost);
    let quoted = quote_inputs(state, &inputs, &allowance, details);
    let mut quoted = quoted.map_err(|refusal| Some(Box::new(explain(state, refusal, &inputs))))?;
    let quote = &mut quoted.quote;
    // What its calls may cost is set aside with it.
    quote.offers.iter_mut().for_each(|offer| offer.worst.money += step.plan.tools_cost);
    context.annotate(&mut quote.why);
    if let Some(why) = step.plan.why {
        quote.why = format!("{}; {why}", quote.why);
    }
    Ok(quoted)
}

/// True if less than the step with its tools may fit.
fn leaves_too_little(refusal: Option<&RequestRefusal>) -> bool {
    use plan::PlanRefusal::{CostBudgetTooSmall, InsufficientQuota};
    matches!(refusal, None | Some(RequestRefusal::Plan(InsufficientQuota { .. } | CostBudgetTooSmall { .. })))
}
