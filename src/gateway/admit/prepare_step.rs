//! A step from its request to its departure: decided, waited for, planned, reserved; where others were quicker, once more.

use std::sync::Arc;

use tokio::time::Instant;

use crate::agent::{self, ExhaustedBudget, Headroom, StepDecision};
use crate::chat::Request;
use crate::gateway::spawn::ReservedRequest;
use crate::gateway::state::wait::BoundedWait;
use crate::gateway::{Denial, Gateway, RequestRefusal};
use crate::ledger::{ReserveError, Shortfall};
use crate::plan;
use crate::tenant::Tenant;
use crate::units::{Amount, Count, EpisodeId, Facet, Holder, Limit, Money, RequestId, Window};

use super::reserve_step::StepReserveResult;
use super::step_context::StepContext;
use crate::gateway::episodes::wait::busy;

/// How often a step is decided anew because parallel steps took what it was to have. Each time one of them has got it.
const TRIES_MAX: usize = 64;

/// What is remembered from try to try.
struct StepRetryState<'a> {
    context: Arc<StepContext<'a>>,
    /// For what parallel steps hold.
    step_wait: BoundedWait,
    /// For what other requests of the account hold.
    money_wait: BoundedWait,
    /// How many calls may be set aside.
    calls_max: Count,
    /// How often a parallel step was quicker.
    races_lost: usize,
    /// Whether other replicas were asked for what they do not use.
    has_gathered: bool,
}

impl Gateway {
    /// The departure of a step of a run.
    ///
    /// # Errors
    /// When no offer serves it, its run or its account does not allow one, or parallel steps do not give back in time what it
    /// needs.
    pub(in crate::gateway) async fn prepare_step(
        &self,
        tenant: &Tenant,
        id: RequestId,
        request: Arc<Request>,
        deadline: Instant,
    ) -> Result<ReservedRequest, Denial> {
        let rules = self.rules(tenant, &request)?;
        let (run, handed_out) = self.join(tenant, &request).await?;
        let outlook = StepContext::new(self, &request, &run, &rules);
        let decided = self.decide_until_reserved(tenant, id, outlook, deadline).await;
        if let Some(handed_out) = handed_out {
            match decided {
                Ok(_) => handed_out.commit(),
                Err(_) => handed_out.release().await,
            }
        }
        let episode = || (!run.is_first).then(|| run.id.clone());
        decided.map_err(|refusal| Denial { refusal: Box::new(refusal), episode: episode() })
    }

    /// Decides until it departs or is refused.
    async fn decide_until_reserved(
        &self,
        tenant: &Tenant,
        id: RequestId,
        outlook: StepContext<'_>,
        deadline: Instant,
    ) -> Result<ReservedRequest, RequestRefusal> {
        let calls_max = self.parts.episodes.inner.settings.calls_per_answer;
        let (waiting, for_money) = (self.new_step_wait(deadline), self.new_money_wait(deadline));
        let outlook = Arc::new(outlook);
        let mut tries = StepRetryState {
            context: outlook,
            step_wait: waiting,
            money_wait: for_money,
            calls_max,
            races_lost: 0,
            has_gathered: false,
        };
        while tries.races_lost < TRIES_MAX {
            if let Some(departure) = self.try_prepare_step(tenant, id, &mut tries).await? {
                return Ok(departure);
            }
            self.see_raise(tenant, &mut tries).await;
        }
        Err(busy(&agent::StepWait::default()))
    }

    /// What the run was raised by while its step waits holds for that step too.
    async fn see_raise(&self, tenant: &Tenant, tries: &mut StepRetryState<'_>) {
        let (agents, outlook) = (&self.parts.episodes, &tries.context);
        let known = agents.with_timeout(agents.inner.store.read(&tenant.account, &outlook.episode.id)).await;
        let known = known.ok().flatten().filter(|known| known.limits.raises > outlook.limits.raises);
        if let Some(known) = known {
            tries.context = Arc::new(outlook.raised(&known.limits));
        }
    }

    /// One try; nothing where there may be another.
    async fn try_prepare_step(
        &self,
        tenant: &Tenant,
        id: RequestId,
        tries: &mut StepRetryState<'_>,
    ) -> Result<Option<ReservedRequest>, RequestRefusal> {
        let outlook = &*tries.context.clone();
        let run = outlook.episode;
        // From here on nothing that is given back goes unheard.
        let heard = self.parts.ledger.episode_notified(&run.id);
        let any_heard = self.parts.ledger.account_notified(&tenant.account);
        let standing = self.budget_state_of(tenant, outlook).await;
        let room = self.gathered_headroom(tenant, tries).await;
        let step = match outlook.next(self, (&standing, room), tries.calls_max) {
            StepDecision::Proceed(step) => *step,
            StepDecision::Wait(wait) => {
                self.wait_for_steps(&tenant.account, &mut tries.step_wait, heard, &wait).await?;
                return Ok(None);
            }
            StepDecision::Exhausted(spent) => return Err(spent_refusal(&run.id, spent)),
        };
        let fewer = step.fewer_calls(tries.calls_max);
        // Nobody is made to answer because of what may come back.
        let may_come_back = fewer == Count::ZERO && standing.reserved.cost > Money::ZERO;
        let goes_first = tries.money_wait.is_next(&tenant.account);
        match self.try_reserve_step(tenant, id, outlook, (&standing, step), goes_first).await {
            StepReserveResult::Reserved(departure) => return Ok(Some(*departure)),
            StepReserveResult::Refused(refusal) if tries.has_gathered || !is_short(&refusal) => {
                let about = outlook.limit_scope();
                self.wait_for_money(tenant, &about, refusal, &mut tries.money_wait, any_heard).await?;
                tries.calls_max = self.parts.episodes.inner.settings.calls_per_answer;
            }
            // Another request may have taken it, or other replicas may hand back what they do not use.
            StepReserveResult::Refused(_) => self.gather(tenant, tries).await,
            StepReserveResult::Retry => tries.races_lost += 1,
            StepReserveResult::TooExpensive { of_episode: of_run } if !(of_run && may_come_back) => {
                tries.calls_max = fewer;
            }
            StepReserveResult::TooExpensive { .. } | StepReserveResult::Wait => {
                self.wait_for_steps(&tenant.account, &mut tries.step_wait, heard, &money_wait()).await?;
                tries.calls_max = self.parts.episodes.inner.settings.calls_per_answer;
            }
        }
        Ok(None)
    }

    /// What the account's own limits leave of tool calls; where that is nothing, once other replicas have handed back what they
    /// do not use.
    async fn gathered_headroom(&self, tenant: &Tenant, tries: &mut StepRetryState<'_>) -> Option<Headroom> {
        let room = self.tool_call_headroom(tenant, &tries.context);
        let is_empty = room.is_some_and(|room| room.free == Count::ZERO);
        if !is_empty || tries.has_gathered || !self.parts.ledger.is_shared() {
            return room;
        }
        self.gather(tenant, tries).await;
        self.tool_call_headroom(tenant, &tries.context)
    }

    /// Asks other replicas for what they do not use of the account's limits. All is decided anew then.
    async fn gather(&self, tenant: &Tenant, tries: &mut StepRetryState<'_>) {
        self.parts.ledger.refresh_limits(&tenant.account, &tries.context.limit_scope()).await;
        (tries.has_gathered, tries.calls_max) = (true, self.parts.episodes.inner.settings.calls_per_answer);
    }
}

pub(in crate::gateway) fn money_wait() -> agent::StepWait {
    agent::StepWait { money: true, ..agent::StepWait::default() }
}

/// True where a limit leaves too little now.
fn is_short(refusal: &RequestRefusal) -> bool {
    matches!(
        refusal,
        RequestRefusal::Plan(plan::PlanRefusal::InsufficientQuota { .. })
            | RequestRefusal::LimitExceeded(ReserveError::Shortfall(_))
    )
}

/// The limit of a run that has nothing left, as limits are told.
pub(in crate::gateway) fn spent_refusal(id: &EpisodeId, spent: ExhaustedBudget) -> RequestRefusal {
    let (needed, left) = match spent {
        ExhaustedBudget::Turns(_) => (Amount::Requests(Count::ONE), Amount::Requests(Count::ZERO)),
        ExhaustedBudget::Money(_) => (Amount::Money(Money(1)), Amount::Money(Money::ZERO)),
    };
    let limit = Limit {
        holder: Holder::Episode,
        facet: Facet::Episode(id.clone()),
        unit: needed.unit(),
        window: Window::Total,
    };
    RequestRefusal::LimitExceeded(ReserveError::Shortfall(Shortfall { limit, needed, left, resets_at: None }))
}
