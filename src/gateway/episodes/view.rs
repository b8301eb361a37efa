//! A run as its own key, or its operator, may look at it.

use crate::agent::{EpisodesError, StoredEpisode};
use crate::gateway::Gateway;
use crate::units::{AccountId, EpisodeId};

use super::EpisodeSnapshot;

/// A run as it is stored, and how it stands.
#[derive(Debug, Clone)]
pub struct EpisodeView {
    /// What is stored of it.
    pub episode: StoredEpisode,
    /// What it has used and what is left.
    pub snapshot: EpisodeSnapshot,
}

impl Gateway {
    /// A run of this account; nothing where there is none of that name, or it is another account's.
    ///
    /// # Errors
    /// When the store cannot say.
    pub async fn episode(
        &self,
        account: &AccountId,
        id: &EpisodeId,
    ) -> Result<Option<EpisodeView>, EpisodesError> {
        let agents = &self.parts.episodes;
        match agents.with_timeout(agents.inner.store.read(account, id)).await? {
            Some(episode) => Ok(Some(self.view_of(account, episode).await)),
            None => Ok(None),
        }
    }

    /// How a run stands that was read.
    pub(super) async fn view_of(&self, account: &AccountId, episode: StoredEpisode) -> EpisodeView {
        self.parts.ledger.refresh_episode(account, &episode.id, &episode.limits).await;
        let route_turns = episode.last.as_ref().and_then(|last| last.route_turns);
        let told = EpisodeSnapshot { route_turns, ..self.snapshot_of(account, &episode.id, &episode.limits) };
        EpisodeView { episode, snapshot: told }
    }
}
