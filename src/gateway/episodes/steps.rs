//! A step from its request to its departure: decided, waited for, planned, reserved; where others were quicker, once more.

use std::sync::Arc;

use tokio::time::Instant;

use crate::agent::{self, Next, Room, Spent};
use crate::chat::Request;
use crate::gateway::launch::Departure;
use crate::gateway::wait::Waiting;
use crate::gateway::{Denial, Gateway, Refusal};
use crate::ledger::{Refused, Shortfall};
use crate::plan;
use crate::tenant::Tenant;
use crate::units::{Amount, Count, EpisodeId, Facet, Holder, Limit, Money, RequestId, Window};

use super::depart::Tried;
use super::outlook::Outlook;
use super::wait::busy;

/// How often a step is decided anew because parallel steps took what it was to have. Each time one of them has got it.
const TRIES_MAX: usize = 64;

/// What is remembered from try to try.
struct Tries<'a> {
    outlook: Arc<Outlook<'a>>,
    /// For what parallel steps hold.
    waiting: Waiting,
    /// For what other requests of the account hold.
    for_money: Waiting,
    /// How many calls may be set aside.
    calls_max: Count,
    /// How often a parallel step was quicker.
    lost: usize,
    /// Whether other replicas were asked for what they do not use.
    was_gathered: bool,
}

impl Gateway {
    /// The departure of a step of a run.
    ///
    /// # Errors
    /// When no offer serves it, its run or its account does not allow one, or parallel steps do not give back in time what it
    /// needs.
    pub(in crate::gateway) async fn step(
        &self,
        tenant: &Tenant,
        id: RequestId,
        request: Arc<Request>,
        deadline: Instant,
    ) -> Result<Departure, Denial> {
        let rules = self.rules(tenant, &request)?;
        let (run, handed_out) = self.join(tenant, &request).await?;
        let outlook = Outlook::new(self, &request, &run, &rules);
        let decided = self.decided(tenant, id, outlook, deadline).await;
        if let Some(handed_out) = handed_out {
            match decided {
                Ok(_) => handed_out.keep(),
                Err(_) => handed_out.release().await,
            }
        }
        let episode = || (!run.is_first).then(|| run.id.clone());
        decided.map_err(|refusal| Denial { refusal: Box::new(refusal), episode: episode() })
    }

    /// Decides until it departs or is refused.
    async fn decided(
        &self,
        tenant: &Tenant,
        id: RequestId,
        outlook: Outlook<'_>,
        deadline: Instant,
    ) -> Result<Departure, Refusal> {
        let calls_max = self.parts.agents.inner.settings.calls_per_answer;
        let (waiting, for_money) = (self.waiting_step(deadline), self.waiting(deadline));
        let outlook = Arc::new(outlook);
        let mut tries = Tries { outlook, waiting, for_money, calls_max, lost: 0, was_gathered: false };
        while tries.lost < TRIES_MAX {
            if let Some(departure) = self.try_once(tenant, id, &mut tries).await? {
                return Ok(departure);
            }
            self.see_raise(tenant, &mut tries).await;
        }
        Err(busy(&agent::Wait::default()))
    }

    /// What the run was raised by while its step waits holds for that step too.
    async fn see_raise(&self, tenant: &Tenant, tries: &mut Tries<'_>) {
        let (agents, outlook) = (&self.parts.agents, &tries.outlook);
        let known = agents.patiently(agents.inner.store.read(&tenant.account, &outlook.run.id)).await;
        let known = known.ok().flatten().filter(|known| known.limits.raises > outlook.limits.raises);
        if let Some(known) = known {
            tries.outlook = Arc::new(outlook.raised(&known.limits));
        }
    }

    /// One try; nothing where there may be another.
    async fn try_once(
        &self,
        tenant: &Tenant,
        id: RequestId,
        tries: &mut Tries<'_>,
    ) -> Result<Option<Departure>, Refusal> {
        let outlook = &*tries.outlook.clone();
        let run = outlook.run;
        // From here on nothing that is given back goes unheard.
        let heard = self.parts.ledger.resolved_of(&run.id);
        let any_heard = self.parts.ledger.resolved_under(&tenant.account);
        let standing = self.standing_of(tenant, outlook).await;
        let room = self.room_by_all(tenant, tries).await;
        let step = match outlook.next(self, (&standing, room), tries.calls_max) {
            Next::Go(step) => *step,
            Next::Wait(wait) => {
                self.wait_for_steps(&tenant.account, &mut tries.waiting, heard, &wait).await?;
                return Ok(None);
            }
            Next::Spent(spent) => return Err(spent_refusal(&run.id, spent)),
        };
        let fewer = step.fewer(tries.calls_max);
        // Nobody is made to answer because of what may come back.
        let may_come_back = fewer == Count::ZERO && standing.reserved.cost > Money::ZERO;
        let goes_first = tries.for_money.goes_first(&tenant.account);
        match self.depart(tenant, id, outlook, (&standing, step), goes_first).await {
            Tried::Departed(departure) => return Ok(Some(*departure)),
            Tried::Refused(refusal) if tries.was_gathered || !is_short(&refusal) => {
                let about = outlook.about();
                self.wait_for_money(tenant, &about, refusal, &mut tries.for_money, any_heard).await?;
                tries.calls_max = self.parts.agents.inner.settings.calls_per_answer;
            }
            // Another request may have taken it, or other replicas may hand back what they do not use.
            Tried::Refused(_) => self.gather(tenant, tries).await,
            Tried::Again => tries.lost += 1,
            Tried::TooDear { of_run } if !(of_run && may_come_back) => tries.calls_max = fewer,
            Tried::TooDear { .. } | Tried::Wait => {
                self.wait_for_steps(&tenant.account, &mut tries.waiting, heard, &money()).await?;
                tries.calls_max = self.parts.agents.inner.settings.calls_per_answer;
            }
        }
        Ok(None)
    }

    /// What the account's own limits leave of tool calls; where that is nothing, once other replicas have handed back what they
    /// do not use.
    async fn room_by_all(&self, tenant: &Tenant, tries: &mut Tries<'_>) -> Option<Room> {
        let room = self.room(tenant, &tries.outlook);
        let is_empty = room.is_some_and(|room| room.free == Count::ZERO);
        if !is_empty || tries.was_gathered || !self.parts.ledger.is_shared() {
            return room;
        }
        self.gather(tenant, tries).await;
        self.room(tenant, &tries.outlook)
    }

    /// Asks other replicas for what they do not use of the account's limits. All is decided anew then.
    async fn gather(&self, tenant: &Tenant, tries: &mut Tries<'_>) {
        self.parts.ledger.gather(&tenant.account, &tries.outlook.about()).await;
        (tries.was_gathered, tries.calls_max) = (true, self.parts.agents.inner.settings.calls_per_answer);
    }
}

pub(super) fn money() -> agent::Wait {
    agent::Wait { money: true, ..agent::Wait::default() }
}

/// True where a limit leaves too little now.
fn is_short(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Plan(plan::Refusal::DoesNotFit { .. }) | Refusal::Spent(Refused::Shortfall(_)))
}

/// The limit of a run that has nothing left, as limits are told.
pub(super) fn spent_refusal(id: &EpisodeId, spent: Spent) -> Refusal {
    let (needed, left) = match spent {
        Spent::Turns(_) => (Amount::Requests(Count::ONE), Amount::Requests(Count::ZERO)),
        Spent::Money(_) => (Amount::Money(Money(1)), Amount::Money(Money::ZERO)),
    };
    let limit = Limit {
        holder: Holder::Episode,
        facet: Facet::Episode(id.clone()),
        unit: needed.unit(),
        window: Window::Total,
    };
    Refusal::Spent(Refused::Shortfall(Shortfall { limit, needed, left, resets_at: None }))
}
