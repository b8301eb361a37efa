//! One try to plan and reserve a step.

use std::sync::Arc;

use super::gather_inputs::PreparedRequest;
use super::plan_inputs::PlanInputs;
use crate::agent::{self, BudgetState};
use crate::catalog::{Allowance, TightestLimits};
use crate::chat::{EpisodeLimits, Request};
use crate::gateway::spawn::ReservedRequest;
use crate::gateway::{Gateway, RequestRefusal};
use crate::ledger::{ReserveError, StepReservation};
use crate::plan;
use crate::tenant::Tenant;
use crate::units::{Holder, Money, RequestId, Tokens, Unit, mix64};

use super::step_context::{StepContext, money_left};
use crate::gateway::episodes::running_step::RunningStep;

/// What came of a try.
pub(in crate::gateway) enum StepReserveResult {
    /// It departs.
    Reserved(Box<ReservedRequest>),
    /// It does not.
    Refused(RequestRefusal),
    /// With so many calls of its tools it would leave too little for an answer: by the run's money, or by the request's.
    TooExpensive { of_episode: bool },
    /// A parallel step was quicker.
    Retry,
    /// Parallel steps have set aside what not even an answer can do without.
    Wait,
}

impl Gateway {
    pub(in crate::gateway) async fn try_reserve_step(
        &self,
        tenant: &Tenant,
        id: RequestId,
        outlook: &StepContext<'_>,
        (standing, step): (&BudgetState, agent::StepPlan),
        goes_first: bool,
    ) -> StepReserveResult {
        let Some(on) = self.step_inputs(tenant, outlook, (standing, &step)) else {
            return StepReserveResult::TooExpensive { of_episode: false };
        };
        let kept = if step.is_final() { Money::ZERO } else { on.answer_reserve(&outlook.limits) };
        let (about, now) = (outlook.limit_scope(), self.parts.ledger.now());
        let limits = without_answer_reserve(&outlook.limits, kept);
        let allowance = self.parts.ledger.allowance_within(&tenant.account, &about, &limits, now);
        let allowance = without_tools_cost(allowance, step.tools_cost);
        let mut plan = match on.plan(&allowance, mix64(id.seed())) {
            Ok(plan) => plan,
            Err(refusal) => return self.on_plan_refusal((standing, &step), &on, refusal),
        };
        if !goes_first && plan.best.worst.money > Money::ZERO {
            return StepReserveResult::Refused(RequestRefusal::behind_in_queue());
        }
        for why in on.no_vote.into_iter().chain(step.why.as_deref()) {
            plan.why = format!("{}; {why}", plan.why);
        }
        let asked = StepReservation {
            limits: outlook.limits.clone(),
            tools: step.tools.clone(),
            tools_cost: step.tools_cost,
        };
        let claim = self.claim(tenant, id, &on, &plan, (about, Some(asked)));
        match self.parts.ledger.obtain(claim).await {
            Ok(reservation) => {
                let watched = outlook.observed_step(self, standing);
                let money_max =
                    money_left(&limits, standing).map(|left| left.saturating_sub(step.tools_cost));
                let limits = outlook.limits.clone();
                let (agents, run) = (self.parts.episodes.clone(), outlook.episode.clone());
                let stepping = Some(RunningStep {
                    manager: agents,
                    episode: run,
                    limits,
                    plan: step,
                    observed_step: watched,
                    money_max,
                });
                StepReserveResult::Reserved(Box::new(ReservedRequest {
                    inputs: on,
                    plan,
                    reservation,
                    step: stepping,
                }))
            }
            Err(ReserveError::Shortfall(shortfall)) if shortfall.limit.holder == Holder::Episode => {
                StepReserveResult::Retry
            }
            Err(refused) => StepReserveResult::Refused(refused.into()),
        }
    }

    /// The step as it is to be sent, and what is known about it; nothing where the caller's own limit does not pay for its
    /// tool calls.
    pub(in crate::gateway) fn step_inputs(
        &self,
        tenant: &Tenant,
        outlook: &StepContext<'_>,
        (standing, step): (&BudgetState, &agent::StepPlan),
    ) -> Option<PlanInputs> {
        let mut request: Request = step.applied(&outlook.enforced_request);
        if let Some(most) = request.budget.cost {
            if most < step.tools_cost {
                return None;
            }
            request.budget.cost = Some(most.saturating_sub(step.tools_cost));
        }
        let sent = PreparedRequest {
            original: outlook.request.clone(),
            sticky: outlook.sticky(self.now()),
            prompt_bound: self.prompt_bound(outlook, &request),
            request: Arc::new(request),
        };
        let mut on = self.gather_inputs_with(tenant, sent, outlook.rules.clone());
        on.market.shadow_price *= outlook.pressure(self, standing);
        Some(on)
    }

    /// How long the prompt is at most for the model that read the one before.
    fn prompt_bound(&self, outlook: &StepContext<'_>, sent: &Request) -> Option<(Arc<str>, Tokens)> {
        let last = outlook.episode.last.as_ref()?;
        let reader = self.parts.fleets.get(&last.model)?.tokenizer_id()?;
        let most = last.reading?.upper_bound(outlook.request, sent, reader)?;
        Some((last.model.clone(), most))
    }

    /// What follows where nothing fits.
    fn on_plan_refusal(
        &self,
        (standing, step): (&BudgetState, &agent::StepPlan),
        on: &PlanInputs,
        refusal: plan::PlanRefusal,
    ) -> StepReserveResult {
        let is_money = match &refusal {
            plan::PlanRefusal::InsufficientQuota { limit, .. } => limit.unit == Unit::Money,
            plan::PlanRefusal::CostBudgetTooSmall { .. } => true,
            _ => false,
        };
        let is_run_s = matches!(&refusal, plan::PlanRefusal::InsufficientQuota { limit, .. } if limit.holder == Holder::Episode);
        let may_call = !step.is_final() && (is_run_s || step.tools_cost > Money::ZERO);
        if is_money && may_call {
            return StepReserveResult::TooExpensive { of_episode: is_run_s };
        }
        let others = &standing.reserved;
        if is_run_s && (others.cost > Money::ZERO || others.thinking.0 > 0) {
            return StepReserveResult::Wait;
        }
        StepReserveResult::Refused(self.explain(refusal, on))
    }
}

/// The limits without what is kept for the answer.
pub(in crate::gateway) fn without_answer_reserve(limits: &EpisodeLimits, kept: Money) -> EpisodeLimits {
    EpisodeLimits { cost: limits.cost.map(|cost| cost.saturating_sub(kept)), ..limits.clone() }
}

/// The allowance without what its tool calls may cost.
pub(in crate::gateway) fn without_tools_cost(mut allowance: Allowance, tools_cost: Money) -> Allowance {
    let take = |purse: &mut TightestLimits| {
        if let Some(left) = &mut purse.money {
            left.amount = left.amount.saturating_sub(tools_cost);
        }
    };
    take(&mut allowance.overall);
    allowance.models.values_mut().for_each(take);
    allowance
}
