//! `StoredContent`: the stores of what callers have kept, in the hands of an admin.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::http::error::ApiError;
use stint_sessions::agent::conversations::ConversationStore;
use stint_sessions::agent::stored::ResponseStore;
use stint_types::tenant::KeyId;
use stint_types::units::AccountId;

/// Where responses and conversations are.
#[derive(Clone)]
pub struct StoredContent {
    /// Those of `/v1/responses`.
    pub responses: Arc<dyn ResponseStore>,
    /// Those of `/v1/conversations`.
    pub conversations: Arc<dyn ConversationStore>,
}

impl StoredContent {
    /// Deletes what that account has stored: by that key, or by whatever key. Says how many responses and conversations those were.
    /// Each step is a short one, so that nobody's settlement waits for long.
    ///
    /// # Errors
    /// 503 where a store does not work. What was deleted until then is; the rest can be deleted by asking again.
    pub(super) async fn delete_of(
        &self,
        account: &AccountId,
        key: Option<KeyId>,
    ) -> Result<(u64, u64), ApiError> {
        let (mut responses, mut conversations) = (0, 0);
        loop {
            let deleted =
                self.responses.delete_of(account, key).await.map_err(|error| unavailable(&error))?;
            responses += deleted;
            if deleted == 0 {
                break;
            }
        }
        loop {
            let deleted =
                self.conversations.delete_of(account, key).await.map_err(|error| unavailable(&error))?;
            conversations += deleted;
            if deleted == 0 {
                return Ok((responses, conversations));
            }
        }
    }
}

fn unavailable(error: &(dyn std::error::Error + 'static)) -> ApiError {
    tracing::error!(error, "what is stored cannot be deleted");
    let message = "what is stored cannot be deleted right now; try again shortly";
    ApiError::overloaded(message.to_owned(), Duration::from_secs(2))
}

impl fmt::Debug for StoredContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredContent").finish_non_exhaustive()
    }
}
