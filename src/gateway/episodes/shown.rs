//! A run as its own key, or its operator, may look at it.

use crate::agent::{Episode, EpisodesError};
use crate::gateway::Gateway;
use crate::units::{AccountId, EpisodeId};

use super::Told;

/// A run as it is stored, and how it stands.
#[derive(Debug, Clone)]
pub struct Shown {
    /// What is stored of it.
    pub episode: Episode,
    /// What it has used and what is left.
    pub told: Told,
}

impl Gateway {
    /// A run of this account; nothing where there is none of that name, or it is another account's.
    ///
    /// # Errors
    /// When the store cannot say.
    pub async fn episode(&self, account: &AccountId, id: &EpisodeId) -> Result<Option<Shown>, EpisodesError> {
        let agents = &self.parts.agents;
        match agents.patiently(agents.inner.store.read(account, id)).await? {
            Some(episode) => Ok(Some(self.shown(account, episode).await)),
            None => Ok(None),
        }
    }

    /// How a run stands that was read.
    pub(super) async fn shown(&self, account: &AccountId, episode: Episode) -> Shown {
        self.parts.ledger.gather_episode(account, &episode.id, &episode.limits).await;
        let route_turns = episode.last.as_ref().and_then(|last| last.route_turns);
        let told = Told { route_turns, ..self.stands(account, &episode.id, &episode.limits) };
        Shown { episode, told }
    }
}
