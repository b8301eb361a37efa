//! Waiting for money that other requests of an account have set aside and not spent.

use tokio::time::Instant;

use crate::gateway::request::{RETRY_AFTER, RequestRefusal};
use crate::gateway::state::BoundedWait;
use stint_decide::plan;
use stint_ledger::{Ledger, RequestScope, ReserveError, Shortfall};
use stint_types::units::{AccountId, Holder, Limit, Unit};

use super::admission::Admission;

/// How long a request may wait for money.
pub(super) fn new_money_wait(admission: &Admission<'_>) -> BoundedWait {
    let settings = &admission.parts().settings;
    // A request that waits keeps its place among those in flight, so one account's may have no more than half of these.
    let (until, most) = (Instant::now() + settings.wait_max, settings.flights_max / 2);
    BoundedWait::until(&admission.state.wait_queues, admission.deadline.min(until), most)
}

/// Waits for what a request was refused for, where other open requests merely hold it.
///
/// # Errors
/// The refusal itself, where waiting does not help; that others hold it, where it was waited for in vain.
pub(super) async fn wait_for_money(
    admission: &Admission<'_>,
    about: &RequestScope,
    refusal: RequestRefusal,
    waiting: &mut BoundedWait,
    notified: impl Future<Output = ()>,
) -> Result<(), RequestRefusal> {
    let (holder, shortfall) = match refusal {
        RequestRefusal::FundsReserved { .. } => {
            let holder = admission.state.wait_queues.queued_account(&admission.tenant.account);
            (holder.unwrap_or_else(|| admission.tenant.account.clone()), None)
        }
        refusal => {
            match held_shortfall(&admission.parts().ledger, &admission.tenant.account, about, &refusal) {
                Some((holder, shortfall)) => (holder, Some(Box::new(shortfall))),
                None => return Err(refusal),
            }
        }
    };
    if !admission.waits.during(waiting.wait_turn(&holder, notified)).await {
        return Err(RequestRefusal::FundsReserved { shortfall, retry_after: RETRY_AFTER });
    }
    admission.parts().ledger.refresh_limits(&admission.tenant.account, about).await;
    Ok(())
}

/// Whose limit it is, where what lacks under it is set aside by other requests and not spent.
pub(crate) fn held_shortfall(
    ledger: &Ledger,
    account: &AccountId,
    about: &RequestScope,
    refusal: &RequestRefusal,
) -> Option<(AccountId, Shortfall)> {
    let shortfall = shortfall(refusal)?;
    let Limit { holder, unit, .. } = &shortfall.limit;
    let holder = match holder {
        Holder::Key => account.clone(),
        Holder::Account(above) => above.clone(),
        Holder::Request | Holder::Episode => return None,
    };
    // Rates and requests at once are for callers to keep to.
    let waits = matches!(unit, Unit::Money | Unit::Thinking) && !shortfall.limit.is_rate();
    let may = waits && ledger.can_be_released(account, about, &shortfall, Default::default());
    may.then_some((holder, shortfall))
}

/// The limit that leaves too little, where that is why a request was refused.
fn shortfall(refusal: &RequestRefusal) -> Option<Shortfall> {
    match refusal {
        RequestRefusal::LimitExceeded(ReserveError::Shortfall(shortfall)) => Some(shortfall.clone()),
        RequestRefusal::Plan(plan::PlanRefusal::InsufficientQuota {
            limit, needed, left, resets_at, ..
        }) => {
            let limit = Limit::clone(limit);
            Some(Shortfall { limit, needed: *needed, left: *left, resets_at: *resets_at })
        }
        _ => None,
    }
}
