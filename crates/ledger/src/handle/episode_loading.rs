//! Loads from the journal what an episode used, if it is not in memory.

use tokio::time::timeout;

use crate::accounts::{ReservationRequest, ReserveError};
use crate::commit::LedgerCore;
use crate::journal::JournalError;
use stint_types::units::{AccountId, EpisodeId};

/// Makes sure that it is known what the episode used before of which a request is a step.
pub(super) async fn ensure_episode_loaded(
    core: &LedgerCore,
    request: &ReservationRequest,
) -> Result<(), ReserveError> {
    let Some(episode) = &request.about.episode else { return Ok(()) };
    load_episode(core, &request.account, episode).await.map_err(|error| {
        tracing::warn!(%error, account = %request.account, %episode, "what a run took before cannot be read");
        ReserveError::Summing
    })
}

/// Reads what an episode used, if it is not known here. Where replicas share the accounts, it is always read, since
/// others may have written since.
pub(super) async fn load_episode(
    core: &LedgerCore,
    account: &AccountId,
    episode: &EpisodeId,
) -> Result<(), JournalError> {
    let is_shared = core.quota.is_some();
    let (is_known, has_evicted) = {
        let accounts = core.accounts();
        (accounts.has_episode(account, episode), accounts.has_evicted())
    };
    if is_known && !is_shared {
        return Ok(());
    }
    let read = timeout(core.settings.dispatch_max, async {
        if has_evicted && !is_shared {
            // What it used may still be in the queue.
            core.queue.flush().await?;
        }
        core.journal().episode_usage(account, episode).await
    });
    let used = read.await.unwrap_or_else(|_| Err(JournalError::new("the journal took too long")))?;
    core.accounts().restore_episode(account, episode, &used);
    Ok(())
}
