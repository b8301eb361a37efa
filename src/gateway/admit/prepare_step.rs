//! Admits a step of an episode: decides what it may do, waits for money or calls that parallel steps hold, plans and
//! reserves. If parallel steps were quicker, it starts again.

use std::sync::Arc;

use crate::gateway::episodes::wait::{busy, money_wait};
use crate::gateway::state::BoundedWait;
use crate::gateway::{Denial, RequestRefusal, RequestStage};
use stint_decide::plan;
use stint_ledger::{ReserveError, Shortfall};
use stint_sessions::agent::{EpisodeOwner, ExhaustedBudget, Headroom, StepDecision, StepWait};
use stint_types::chat::Request;
use stint_types::units::{Amount, Count, EpisodeId, Facet, Holder, Limit, Money, Window};

use super::admission::{Admission, ReservedRequest};
use super::gather_inputs::rules;
use super::money_wait::{new_money_wait, wait_for_money};
use super::reserve_step::{StepReserveResult, try_reserve_step};
use super::step_context::{DecidedStep, StepContext};

/// How often a step is decided again because parallel steps took what it was to have. Each time one of them has got it.
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

/// Reserves a step of an episode.
///
/// # Errors
/// When no offer serves it, its episode or its account does not allow one, or parallel steps do not give back in time what it
/// needs.
pub(crate) async fn prepare_step(
    admission: &Admission<'_>,
    request: Arc<Request>,
) -> Result<ReservedRequest, Denial> {
    let rules = rules(admission.state, admission.tenant, &request)?;
    let (parts, account) = (admission.parts(), &admission.tenant.account);
    let owner = EpisodeOwner::of(admission.tenant);
    let (joined, checkout) = parts.episodes.join(&owner, &request, parts.ledger.now()).await?;
    admission.reached(RequestStage::Joined);
    let context = StepContext::new(parts, account, &request, &joined, &rules);
    let decided = decide_until_reserved(admission, context).await;
    if let Some(checkout) = checkout {
        match decided {
            Ok(_) => checkout.commit(),
            Err(_) => checkout.release().await,
        }
    }
    let episode = || (!joined.is_first).then(|| joined.id.clone());
    decided.map_err(|refusal| Denial { refusal: Box::new(refusal), episode: episode() })
}

/// Decides until it is reserved or refused.
async fn decide_until_reserved(
    admission: &Admission<'_>,
    context: StepContext<'_>,
) -> Result<ReservedRequest, RequestRefusal> {
    let parts = admission.parts();
    let mut tries = StepRetryState {
        context: Arc::new(context),
        step_wait: parts.episodes.step_wait(admission.deadline, parts.settings.flights_max),
        money_wait: new_money_wait(admission),
        calls_max: parts.episodes.inner.settings.calls_per_answer,
        races_lost: 0,
        has_gathered: false,
    };
    while tries.races_lost < TRIES_MAX {
        if let Some(reserved) = try_prepare_step(admission, &mut tries).await? {
            return Ok(reserved);
        }
        see_raise(admission, &mut tries).await;
    }
    Err(busy(&StepWait::default()))
}

/// What the episode was raised by while its step waits holds for that step too.
async fn see_raise(admission: &Admission<'_>, tries: &mut StepRetryState<'_>) {
    let (episodes, context) = (&admission.parts().episodes, &tries.context);
    let known = episodes
        .with_timeout(episodes.inner.store.read(&admission.tenant.account, &context.episode.id))
        .await;
    let known = known.ok().flatten().filter(|known| known.limits.raises > context.limits.raises);
    if let Some(known) = known {
        tries.context = Arc::new(context.raised(&known.limits));
    }
}

/// One try; nothing if there may be another.
async fn try_prepare_step(
    admission: &Admission<'_>,
    tries: &mut StepRetryState<'_>,
) -> Result<Option<ReservedRequest>, RequestRefusal> {
    let context = &*tries.context.clone();
    let (episode, account, episodes) =
        (&context.episode.id, &admission.tenant.account, &admission.parts().episodes);
    // From here on nothing that is given back goes unheard.
    let notified = admission.parts().ledger.episode_notified(episode);
    let account_notified = admission.parts().ledger.account_notified(&admission.tenant.account);
    let balance = context.refreshed_balance().await;
    let headroom = gathered_headroom(admission, tries).await;
    let plan = match context.decide(&balance, headroom, tries.calls_max) {
        StepDecision::Proceed(step) => *step,
        StepDecision::Wait(wait) => {
            let wait = episodes.wait_for_steps(account, &mut tries.step_wait, notified, &wait);
            admission.waits.during(wait).await?;
            return Ok(None);
        }
        StepDecision::Exhausted(spent) => return Err(spent_refusal(episode, spent)),
    };
    let fewer = plan.fewer_calls(tries.calls_max);
    // Nobody is made to answer because of what may come back.
    let may_come_back = fewer == Count::ZERO && balance.reserved.cost > Money::ZERO;
    let goes_first = tries.money_wait.is_next(&admission.tenant.account);
    let step = DecidedStep { observed: context.observed_step(&balance), balance, plan };
    match try_reserve_step(admission, context, step, goes_first).await {
        StepReserveResult::Reserved(reserved) => return Ok(Some(*reserved)),
        StepReserveResult::Refused(refusal) if tries.has_gathered || !is_short(&refusal) => {
            let about = context.limit_scope();
            wait_for_money(admission, &about, refusal, &mut tries.money_wait, account_notified).await?;
            tries.calls_max = admission.parts().episodes.inner.settings.calls_per_answer;
        }
        // Another request may have taken it, or other replicas may return what they do not use.
        StepReserveResult::Refused(_) => gather(admission, tries).await,
        StepReserveResult::Retry => tries.races_lost += 1,
        StepReserveResult::TooExpensive { of_episode } if !(of_episode && may_come_back) => {
            tries.calls_max = fewer;
        }
        StepReserveResult::TooExpensive { .. } | StepReserveResult::Wait => {
            let wait = money_wait();
            let wait = episodes.wait_for_steps(account, &mut tries.step_wait, notified, &wait);
            admission.waits.during(wait).await?;
            tries.calls_max = admission.parts().episodes.inner.settings.calls_per_answer;
        }
    }
    Ok(None)
}

/// What the account's own limits leave of tool calls; where that is nothing, once other replicas have returned what they
/// do not use.
async fn gathered_headroom(admission: &Admission<'_>, tries: &mut StepRetryState<'_>) -> Option<Headroom> {
    let room = tries.context.tool_call_headroom();
    let is_empty = room.is_some_and(|room| room.free == Count::ZERO);
    if !is_empty || tries.has_gathered || !admission.parts().ledger.is_shared() {
        return room;
    }
    gather(admission, tries).await;
    tries.context.tool_call_headroom()
}

/// Asks other replicas for what they do not use of the account's limits. All is decided again then.
async fn gather(admission: &Admission<'_>, tries: &mut StepRetryState<'_>) {
    admission.parts().ledger.refresh_limits(&admission.tenant.account, &tries.context.limit_scope()).await;
    (tries.has_gathered, tries.calls_max) =
        (true, admission.parts().episodes.inner.settings.calls_per_answer);
}

/// True if a limit leaves too little now.
fn is_short(refusal: &RequestRefusal) -> bool {
    matches!(
        refusal,
        RequestRefusal::Plan(plan::PlanRefusal::InsufficientQuota { .. })
            | RequestRefusal::LimitExceeded(ReserveError::Shortfall(_))
    )
}

/// The limit of an episode that has nothing left, as refusals name it.
pub(super) fn spent_refusal(id: &EpisodeId, spent: ExhaustedBudget) -> RequestRefusal {
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
