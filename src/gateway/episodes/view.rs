//! An episode as it is shown to its own key, or to the operator.

use stint_ledger::Ledger;
use stint_sessions::agent::StoredEpisode;
use stint_types::units::AccountId;

use super::snapshot::EpisodeSnapshot;

/// An episode as it is stored, and how it stands.
#[derive(Debug, Clone)]
pub struct EpisodeView {
    /// What is stored of it.
    pub episode: StoredEpisode,
    /// What it has used and what is left.
    pub snapshot: EpisodeSnapshot,
}

impl EpisodeView {
    /// How an episode stands that was read.
    pub(crate) async fn of(ledger: &Ledger, account: &AccountId, episode: StoredEpisode) -> EpisodeView {
        ledger.refresh_episode(account, &episode.id, &episode.limits).await;
        let route_turns = episode.last.as_ref().and_then(|last| last.route_turns);
        let balance = ledger.episode(account, &episode.id);
        let snapshot = EpisodeSnapshot::of(episode.id.clone(), &episode.limits, &balance);
        EpisodeView { episode, snapshot: EpisodeSnapshot { route_turns, ..snapshot } }
    }
}
