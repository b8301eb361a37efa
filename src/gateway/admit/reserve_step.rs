//! One try to plan and reserve a step.

use std::sync::{Arc, OnceLock};

use crate::gateway::episodes::running_step::RunningStep;
use crate::gateway::state::GatewayState;
use crate::gateway::{RequestRefusal, RequestStage};
use stint_decide::plan;
use stint_ledger::{ReserveError, StepReservation};
use stint_types::catalog::{Allowance, TightestLimits};
use stint_types::chat::{EpisodeLimits, Request};
use stint_types::tenant::Tenant;
use stint_types::units::{Holder, Money, Tokens, Unit, mix64};

use super::admission::{Admission, ReservedRequest};
use super::gather_inputs::{PreparedRequest, gather_inputs_with};
use super::plan_inputs::PlanInputs;
use super::reserve::{explain, reservation_request};
use super::step_context::{DecidedStep, StepContext, money_left};

/// What came of a try.
pub(super) enum StepReserveResult {
    /// It is reserved.
    Reserved(Box<ReservedRequest>),
    /// It is refused.
    Refused(RequestRefusal),
    /// With so many calls of its tools it would leave too little for an answer: by the episode's money, or by the request's.
    TooExpensive { of_episode: bool },
    /// A parallel step was quicker.
    Retry,
    /// Parallel steps have set aside what not even an answer can do without.
    Wait,
}

/// Plans a step that was decided on, and reserves it.
pub(super) async fn try_reserve_step(
    admission: &Admission<'_>,
    context: &StepContext<'_>,
    step: DecidedStep,
    goes_first: bool,
) -> StepReserveResult {
    let Some(inputs) = step_inputs(admission.state, admission.tenant, context, &step) else {
        return StepReserveResult::TooExpensive { of_episode: false };
    };
    admission.reached(RequestStage::Estimated);
    let reserve_for_answer =
        if step.plan.is_final() { Money::ZERO } else { inputs.answer_reserve(&context.limits) };
    let (about, now) = (context.limit_scope(), admission.parts().ledger.now());
    let limits = without_answer_reserve(&context.limits, reserve_for_answer);
    let allowance =
        admission.parts().ledger.allowance_within(&admission.tenant.account, &about, &limits, now);
    let allowance = without_tools_cost(allowance, step.plan.tools_cost);
    let mut plan = match inputs.plan(&allowance, mix64(admission.id.seed())) {
        Ok(plan) => plan,
        Err(refusal) => return on_plan_refusal(admission.state, &step, &inputs, refusal),
    };
    admission.reached(RequestStage::Planned);
    if !goes_first && plan.best.worst.money > Money::ZERO {
        return StepReserveResult::Refused(RequestRefusal::behind_in_queue());
    }
    inputs.annotate(&mut plan.why, &plan.best.model);
    context.annotate(&mut plan.why);
    if let Some(why) = &step.plan.why {
        plan.why = format!("{}; {why}", plan.why);
    }
    let step_reservation = StepReservation {
        limits: context.limits.clone(),
        tools: step.plan.tools.clone(),
        tools_cost: step.plan.tools_cost,
    };
    let wanted = reservation_request(admission, &inputs, &plan, about, Some(step_reservation));
    match admission.parts().ledger.obtain(wanted).await {
        Ok(reservation) => {
            admission.reached(RequestStage::Reserved);
            let left = money_left(&limits, &step.balance);
            let step = Some(RunningStep {
                manager: admission.parts().episodes.clone(),
                episode: context.episode.clone(),
                limits: context.limits.clone(),
                money_max: left.map(|left| left.saturating_sub(step.plan.tools_cost)),
                plan: step.plan,
                observed_step: step.observed,
                beginning: OnceLock::new(),
            });
            StepReserveResult::Reserved(Box::new(ReservedRequest { inputs, plan, reservation, step }))
        }
        Err(ReserveError::Shortfall(shortfall)) if shortfall.limit.holder == Holder::Episode => {
            StepReserveResult::Retry
        }
        Err(refused) => StepReserveResult::Refused(refused.into()),
    }
}

/// The step as it is to be sent, and what is known about it; nothing if the caller's own limit does not pay for its
/// tool calls.
pub(super) fn step_inputs(
    state: &GatewayState,
    tenant: &Tenant,
    context: &StepContext<'_>,
    step: &DecidedStep,
) -> Option<PlanInputs> {
    let mut request: Request = step.plan.applied(&context.enforced_request);
    request.run_cost = context.told_cost();
    if let Some(most) = request.budget.cost {
        if most < step.plan.tools_cost {
            return None;
        }
        request.budget.cost = Some(most.saturating_sub(step.plan.tools_cost));
    }
    let sent = PreparedRequest {
        original: context.request.clone(),
        sticky: context.sticky(state.parts.ledger.now()),
        prompt_bound: prompt_bound(state, context, &request),
        request: Arc::new(request),
        is_step: true,
    };
    let mut inputs = gather_inputs_with(state, tenant, sent, context.rules.clone());
    inputs.market.shadow_price *= context.pressure(&step.balance);
    Some(inputs)
}

/// How long the prompt is at most for the model that read the one before.
fn prompt_bound(
    state: &GatewayState,
    context: &StepContext<'_>,
    sent: &Request,
) -> Option<(Arc<str>, Tokens)> {
    let last = context.episode.last.as_ref()?;
    let fleet = state.parts.fleets.get(&last.model)?;
    let most = last.reading?.upper_bound(sent, fleet.tokenizer_id()?, &fleet.images())?;
    Some((last.model.clone(), most))
}

/// What follows where nothing fits.
fn on_plan_refusal(
    state: &GatewayState,
    step: &DecidedStep,
    inputs: &PlanInputs,
    refusal: plan::PlanRefusal,
) -> StepReserveResult {
    let (is_money, of_episode) = match &refusal {
        plan::PlanRefusal::InsufficientQuota { limit, .. } => {
            (limit.unit == Unit::Money, limit.holder == Holder::Episode)
        }
        plan::PlanRefusal::CostBudgetTooSmall { .. } => (true, false),
        _ => (false, false),
    };
    let may_call = !step.plan.is_final() && (of_episode || step.plan.tools_cost > Money::ZERO);
    if is_money && may_call {
        return StepReserveResult::TooExpensive { of_episode };
    }
    let others = &step.balance.reserved;
    if of_episode && (others.cost > Money::ZERO || others.thinking.0 > 0) {
        return StepReserveResult::Wait;
    }
    StepReserveResult::Refused(explain(state, refusal, inputs))
}

/// The limits without what is kept for the answer.
pub(super) fn without_answer_reserve(limits: &EpisodeLimits, reserve: Money) -> EpisodeLimits {
    EpisodeLimits { cost: limits.cost.map(|cost| cost.saturating_sub(reserve)), ..limits.clone() }
}

/// The allowance without what its tool calls may cost.
pub(super) fn without_tools_cost(mut allowance: Allowance, tools_cost: Money) -> Allowance {
    let take = |limits: &mut TightestLimits| {
        if let Some(left) = &mut limits.money {
            left.amount = left.amount.saturating_sub(tools_cost);
        }
    };
    take(&mut allowance.overall);
    allowance.models.values_mut().for_each(take);
    allowance
}
