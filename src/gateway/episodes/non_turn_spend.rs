//! Books calls that are no turn of an episode but spend its money, such as an agent's call for embeddings.

use crate::gateway::request::RequestRefusal;
use crate::gateway::state::BoundedWait;
use stint_ledger::{
    EpisodeBalance, Ledger, RequestScope, Reservation, ReservationRequest, ReserveError, Shortfall,
    StepReservation,
};
use stint_sessions::agent::EpisodeOwner;
use stint_types::chat::EpisodeLimits;
use stint_types::units::{AccountId, Amount, EpisodeId, Holder, Money, Timestamp};

use super::manager::EpisodeManager;
use super::snapshot::EpisodeSnapshot;
use super::wait::money_wait;

/// An episode that is spent from, with the limits that hold for it.
#[derive(Debug, Clone)]
pub(crate) struct NonTurnSpend {
    account: AccountId,
    id: EpisodeId,
    limits: EpisodeLimits,
}

impl NonTurnSpend {
    /// The episode of that name, begun if there is none, with its limits lowered to these.
    ///
    /// # Errors
    /// When its limits cannot be read, or would be too many, or it is another key's.
    pub(crate) async fn open(
        episodes: &EpisodeManager,
        owner: &EpisodeOwner,
        id: &EpisodeId,
        limits: &EpisodeLimits,
        now: Timestamp,
    ) -> Result<NonTurnSpend, RequestRefusal> {
        let episode = episodes.open_named(owner, id, limits, now).await?;
        Ok(NonTurnSpend { account: owner.account.clone(), id: episode.id, limits: episode.limits })
    }

    /// Sets it aside in the episode too. Money that the episode's steps have merely set aside is waited for.
    ///
    /// # Errors
    /// When the episode or the account does not allow it, or the steps do not give back in time what it needs.
    pub(crate) async fn obtain(
        &self,
        episodes: &EpisodeManager,
        ledger: &Ledger,
        wanted: ReservationRequest,
        mut wait: BoundedWait,
    ) -> Result<Reservation, RequestRefusal> {
        let NonTurnSpend { account, id, limits } = self;
        let about = RequestScope { episode: Some(id.clone()), beside_turns: true, ..wanted.about };
        let step = Some(StepReservation { limits: limits.clone(), ..StepReservation::default() });
        let wanted = ReservationRequest { about, step, ..wanted };
        loop {
            // From here on nothing that is given back goes unheard.
            let notified = ledger.episode_notified(id);
            ledger.refresh_episode(account, id, limits).await;
            match ledger.obtain(wanted.clone()).await {
                Err(ReserveError::Shortfall(short))
                    if may_come_back(&short, &ledger.episode(account, id), limits) =>
                {
                    episodes.wait_for_steps(account, &mut wait, notified, &money_wait()).await?;
                }
                obtained => return Ok(obtained?),
            }
        }
    }

    /// True if its money is limited.
    pub(crate) fn limits_money(&self) -> bool {
        self.limits.cost.is_some()
    }

    /// How the episode stands.
    pub(crate) fn snapshot(&self, ledger: &Ledger) -> EpisodeSnapshot {
        EpisodeSnapshot::of(self.id.clone(), &self.limits, &ledger.episode(&self.account, &self.id))
    }
}

/// True if the episode lacks money that is not spent yet.
fn may_come_back(short: &Shortfall, standing: &EpisodeBalance, limits: &EpisodeLimits) -> bool {
    let (Holder::Episode, Amount::Money(needed)) = (&short.limit.holder, short.needed) else { return false };
    let unspent = limits.cost.map_or(Money::ZERO, |cost| cost.saturating_sub(standing.spent.cost));
    needed <= unspent
}
