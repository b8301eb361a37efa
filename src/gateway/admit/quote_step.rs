//! What a step of a run would be planned as, on what its run leaves. Nothing is begun, lowered or set aside.

use std::sync::Arc;

use crate::agent::{BudgetState, StepDecision, StepPlan, StepWait};
use crate::chat::Request;
use crate::gateway::{Gateway, RequestQuote, RequestRefusal};
use crate::plan;
use crate::tenant::Tenant;
use crate::units::Money;

use super::prepare_step::spent_refusal;
use super::reserve_step::{without_answer_reserve, without_tools_cost};
use super::step_context::{StepContext, budget_state};
use crate::gateway::episodes::wait::busy;

impl Gateway {
    pub(in crate::gateway) async fn quote_step(
        &self,
        tenant: &Tenant,
        request: Request,
    ) -> Result<RequestQuote, RequestRefusal> {
        let rules = self.rules(tenant, &request)?;
        let request = Arc::new(request);
        let (run, known) = self.look_up(tenant, &request).await?;
        let outlook = StepContext::new(self, &request, &run, &rules);
        if !run.is_first {
            self.parts.ledger.refresh_episode(&tenant.account, &run.id, &known).await;
        }
        let standing = budget_state(self.parts.ledger.episode(&tenant.account, &run.id));
        let room = self.tool_call_headroom(tenant, &outlook);
        let next = |calls_max| match outlook.next(self, (&standing, room), calls_max) {
            StepDecision::Proceed(step) => Ok(*step),
            StepDecision::Wait(wait) => Err(busy(&wait)),
            StepDecision::Exhausted(spent) => Err(spent_refusal(&run.id, spent)),
        };
        let quote = |step: StepPlan| self.quote_planned_step(tenant, &outlook, (&standing, step));
        let mut calls_max = self.parts.episodes.inner.settings.calls_per_answer;
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

    /// A quote for a step; nothing where the caller's own limit does not pay for its tool calls.
    fn quote_planned_step(
        &self,
        tenant: &Tenant,
        outlook: &StepContext<'_>,
        (standing, step): (&BudgetState, StepPlan),
    ) -> Result<RequestQuote, Option<Box<RequestRefusal>>> {
        let on = self.step_inputs(tenant, outlook, (standing, &step)).ok_or(None)?;
        let kept = if step.is_final() { Money::ZERO } else { on.answer_reserve(&outlook.limits) };
        let (ledger, about) = (&self.parts.ledger, outlook.limit_scope());
        let limits = without_answer_reserve(&outlook.limits, kept);
        let allowance = ledger.allowance_within(&tenant.account, &about, &limits, ledger.now());
        let quote = on.ask(&without_tools_cost(allowance, step.tools_cost), 0, plan::quote);
        let mut quote = quote.map_err(|refusal| Some(Box::new(self.explain(refusal, &on))))?;
        // What its calls may cost is set aside with it.
        quote.offers.iter_mut().for_each(|offer| offer.worst.money += step.tools_cost);
        if let Some(why) = step.why {
            quote.why = format!("{}; {why}", quote.why);
        }
        Ok(RequestQuote { demand: on.demand, quote })
    }
}

/// True where less than the step with its tools may fit.
fn leaves_too_little(refusal: Option<&RequestRefusal>) -> bool {
    matches!(refusal, None | Some(RequestRefusal::Plan(plan::PlanRefusal::InsufficientQuota { .. })))
}
