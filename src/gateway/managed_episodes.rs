//! Lets a key, or the operator, look at episodes and manage them.

use futures_util::future::join_all;

use stint_sessions::agent::{EpisodeOwner, EpisodesError, StoredEpisode};
use stint_types::chat::EpisodeRaise;
use stint_types::tenant::Tenant;
use stint_types::units::{AccountId, EpisodeId};

use super::EpisodeView;
use super::handle::Gateway;

impl Gateway {
    /// An episode of this key; nothing if there is none of that name, or it is another key's.
    ///
    /// # Errors
    /// When the store cannot say.
    pub async fn own_episode(
        &self,
        tenant: &Tenant,
        id: &EpisodeId,
    ) -> Result<Option<EpisodeView>, EpisodesError> {
        let owner = EpisodeOwner::of(tenant);
        let shown = self.episode(&tenant.account, id).await?;
        Ok(shown.filter(|shown| owner.owns(&shown.episode)))
    }

    /// An episode of this account, whichever key of that name began it; nothing if there is none.
    ///
    /// # Errors
    /// When the store cannot say.
    pub async fn episode(
        &self,
        account: &AccountId,
        id: &EpisodeId,
    ) -> Result<Option<EpisodeView>, EpisodesError> {
        let episodes = &self.state.parts.episodes;
        let found = episodes.with_timeout(episodes.inner.store.read(account, id)).await?;
        Ok(self.view_of(account, found).await)
    }

    /// Episodes in the order of their accounts and names, those after this one, so many at most; of one account alone where that
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
        let episodes = &self.state.parts.episodes;
        episodes.with_timeout(episodes.inner.store.list(account, after, most)).await
    }

    /// The episodes that were used last, the latest first, so many at most, with what is left of each; of one account alone where
    /// that is named.
    ///
    /// # Errors
    /// When the store cannot say.
    pub async fn recent_episodes(
        &self,
        account: Option<&AccountId>,
        most: u32,
    ) -> Result<Vec<(AccountId, EpisodeView)>, EpisodesError> {
        let (episodes, ledger) = (&self.state.parts.episodes, &self.state.parts.ledger);
        let latest = episodes.with_timeout(episodes.inner.store.recent(account, most)).await?;
        let views = latest.into_iter().map(|(account, episode)| async move {
            let view = EpisodeView::of(ledger, &account, episode).await;
            (account, view)
        });
        Ok(join_all(views).await)
    }

    /// Raises the limits of an episode by so much, or ends it. It holds from the next step on, whatever the steps say of their
    /// episode; steps that are under way finish. Nothing if there is no such episode.
    ///
    /// # Errors
    /// When the store cannot record it.
    pub async fn raise_episode(
        &self,
        account: &AccountId,
        id: &EpisodeId,
        more: &EpisodeRaise,
    ) -> Result<Option<EpisodeView>, EpisodesError> {
        let episodes = &self.state.parts.episodes;
        let raised = episodes.with_timeout(episodes.inner.store.raise(account, id, more, self.now())).await?;
        Ok(self.view_of(account, raised).await)
    }

    /// How an episode stands that was read.
    async fn view_of(&self, account: &AccountId, episode: Option<StoredEpisode>) -> Option<EpisodeView> {
        Some(EpisodeView::of(&self.state.parts.ledger, account, episode?).await)
    }
}
