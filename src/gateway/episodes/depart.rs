//! One try to plan and reserve a step.

use std::sync::Arc;

use crate::agent::{self, Standing};
use crate::catalog::{Allowance, Purse};
use crate::chat::{EpisodeLimits, Request};
use crate::gateway::consider::Sent;
use crate::gateway::considered::Considered;
use crate::gateway::launch::Departure;
use crate::gateway::{Gateway, Refusal};
use crate::ledger::{Refused, Step};
use crate::plan;
use crate::tenant::Tenant;
use crate::units::{Holder, Money, RequestId, Tokens, Unit, mixed};

use super::outlook::{Outlook, money_left};
use super::stepping::Stepping;

/// What came of a try.
pub(super) enum Tried {
    /// It departs.
    Departed(Box<Departure>),
    /// It does not.
    Refused(Refusal),
    /// With so many calls of its tools it would leave too little for an answer: by the run's money, or by the request's.
    TooDear { of_run: bool },
    /// A parallel step was quicker.
    Again,
    /// Parallel steps have set aside what not even an answer can do without.
    Wait,
}

impl Gateway {
    pub(super) async fn depart(
        &self,
        tenant: &Tenant,
        id: RequestId,
        outlook: &Outlook<'_>,
        (standing, step): (&Standing, agent::Step),
        goes_first: bool,
    ) -> Tried {
        let Some(on) = self.considered(tenant, outlook, (standing, &step)) else {
            return Tried::TooDear { of_run: false };
        };
        let kept = if step.is_final() { Money::ZERO } else { on.answer_money(&outlook.limits) };
        let (about, now) = (outlook.about(), self.parts.ledger.now());
        let limits = masked(&outlook.limits, kept);
        let allowance = self.parts.ledger.allowance_within(&tenant.account, &about, &limits, now);
        let allowance = without(allowance, step.tools_cost);
        let mut plan = match on.plan(&allowance, mixed(id.seed())) {
            Ok(plan) => plan,
            Err(refusal) => return self.refused((standing, &step), &on, refusal),
        };
        if !goes_first && plan.best.worst.money > Money::ZERO {
            return Tried::Refused(Refusal::behind_others());
        }
        for why in on.no_vote.into_iter().chain(step.why.as_deref()) {
            plan.why = format!("{}; {why}", plan.why);
        }
        let asked =
            Step { limits: outlook.limits.clone(), tools: step.tools.clone(), tools_cost: step.tools_cost };
        let claim = self.claim(tenant, id, &on, &plan, (about, Some(asked)));
        match self.parts.ledger.obtain(claim).await {
            Ok(reservation) => {
                let watched = outlook.watched(self, standing);
                let money_max =
                    money_left(&limits, standing).map(|left| left.saturating_sub(step.tools_cost));
                let limits = outlook.limits.clone();
                let (agents, run) = (self.parts.agents.clone(), outlook.run.clone());
                let stepping = Some(Stepping { agents, run, limits, step, watched, money_max });
                Tried::Departed(Box::new(Departure { considered: on, plan, reservation, stepping }))
            }
            Err(Refused::Shortfall(shortfall)) if shortfall.limit.holder == Holder::Episode => Tried::Again,
            Err(refused) => Tried::Refused(refused.into()),
        }
    }

    /// The step as it is to be sent, and what is known about it; nothing where the caller's own limit does not pay for its
    /// tool calls.
    pub(super) fn considered(
        &self,
        tenant: &Tenant,
        outlook: &Outlook<'_>,
        (standing, step): (&Standing, &agent::Step),
    ) -> Option<Considered> {
        let mut request: Request = step.applied(&outlook.held);
        if let Some(most) = request.budget.cost {
            if most < step.tools_cost {
                return None;
            }
            request.budget.cost = Some(most.saturating_sub(step.tools_cost));
        }
        let sent = Sent {
            asked: outlook.request.clone(),
            sticky: outlook.sticky(self.now()),
            prompt_most: self.prompt_most(outlook, &request),
            request: Arc::new(request),
        };
        let mut on = self.look(tenant, sent, outlook.rules.clone());
        on.market.shadow_price *= outlook.pressure(self, standing);
        Some(on)
    }

    /// How long the prompt is at most for the model that read the one before.
    fn prompt_most(&self, outlook: &Outlook<'_>, sent: &Request) -> Option<(Arc<str>, Tokens)> {
        let last = outlook.run.last.as_ref()?;
        let reader = self.parts.fleets.get(&last.model)?.reader()?;
        let most = last.reading?.bound(outlook.request, sent, reader)?;
        Some((last.model.clone(), most))
    }

    /// What follows where nothing fits.
    fn refused(
        &self,
        (standing, step): (&Standing, &agent::Step),
        on: &Considered,
        refusal: plan::Refusal,
    ) -> Tried {
        let is_money = match &refusal {
            plan::Refusal::DoesNotFit { limit, .. } => limit.unit == Unit::Money,
            plan::Refusal::RequestCost { .. } => true,
            _ => false,
        };
        let is_run_s =
            matches!(&refusal, plan::Refusal::DoesNotFit { limit, .. } if limit.holder == Holder::Episode);
        let may_call = !step.is_final() && (is_run_s || step.tools_cost > Money::ZERO);
        if is_money && may_call {
            return Tried::TooDear { of_run: is_run_s };
        }
        let others = &standing.reserved;
        if is_run_s && (others.cost > Money::ZERO || others.thinking.0 > 0) {
            return Tried::Wait;
        }
        Tried::Refused(self.explained(refusal, on))
    }
}

/// The limits without what is kept for the answer.
pub(super) fn masked(limits: &EpisodeLimits, kept: Money) -> EpisodeLimits {
    EpisodeLimits { cost: limits.cost.map(|cost| cost.saturating_sub(kept)), ..limits.clone() }
}

/// The allowance without what its tool calls may cost.
pub(super) fn without(mut allowance: Allowance, tools_cost: Money) -> Allowance {
    let take = |purse: &mut Purse| {
        if let Some(left) = &mut purse.money {
            left.amount = left.amount.saturating_sub(tools_cost);
        }
    };
    take(&mut allowance.purse);
    allowance.models.values_mut().for_each(take);
    allowance
}
