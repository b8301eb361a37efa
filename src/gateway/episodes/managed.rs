//! Runs as their operator sees and manages them: whoever's they are.

use crate::agent::{EpisodesError, StoredEpisode};
use crate::chat::EpisodeRaise;
use crate::gateway::Gateway;
use crate::units::{AccountId, EpisodeId};

use super::EpisodeView;

impl Gateway {
    /// Runs in the order of their accounts and names, those after this one, so many at most; of one account alone where that
    /// is named.
    ///
    /// # Errors
    /// When the store cannot say.
    pub async fn episodes(
        &self,
        account: Option<&AccountId>,
        after: Option<&(AccountId, EpisodeId)>,
        most: u32,
    ) -> Result<Vec<(AccountId, StoredEpisode)>, EpisodesError> {
        let agents = &self.parts.episodes;
        agents.with_timeout(agents.inner.store.list(account, after, most)).await
    }

    /// Raises the limits of a run by so much, or ends it. It holds from the next step on, whatever the steps say of their run;
    /// steps that are under way finish. Nothing where there is no such run.
    ///
    /// # Errors
    /// When the store cannot record it.
    pub async fn raise_episode(
        &self,
        account: &AccountId,
        id: &EpisodeId,
        more: &EpisodeRaise,
    ) -> Result<Option<EpisodeView>, EpisodesError> {
        let agents = &self.parts.episodes;
        let raised = agents.with_timeout(agents.inner.store.raise(account, id, more, self.now())).await?;
        match raised {
            Some(episode) => Ok(Some(self.view_of(account, episode).await)),
            None => Ok(None),
        }
    }
}
