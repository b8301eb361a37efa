//! Claims on conversations: a request that has one is the only one that may append.

use crate::sql::{SqlConnection, Statement, sql};
use stint_sessions::agent::conversations::ClaimResult;
use stint_types::units::{AccountId, ConversationId, RequestId, Timestamp};

use super::records::{COLUMNS, conversation, of, read_conversation};

const RENEW: &str =
    "UPDATE conversations SET claimed_until = $4 WHERE account = $1 AND id = $2 AND claimant = $3";

const RELEASE: &str = "\
    UPDATE conversations SET claimant = NULL, claimed_until = NULL \
    WHERE account = $1 AND id = $2 AND claimant = $3";

/// A request's claim from now on, until then.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewClaim {
    pub(super) claimant: RequestId,
    pub(super) now: Timestamp,
    pub(super) until: Timestamp,
}

/// Claims a conversation for a request.
pub(super) async fn claim(
    account: &AccountId,
    id: ConversationId,
    since: Timestamp,
    claim: NewClaim,
    connection: &mut dyn SqlConnection,
) -> Result<ClaimResult, sqlx::Error> {
    let sql = sql(
        "UPDATE conversations SET claimant = $4, claimed_until = $6, \
            touched_at = CASE WHEN touched_at < $5 THEN $5 ELSE touched_at END \
         WHERE account = $1 AND id = $2 AND touched_at >= $3 \
           AND (claimant IS NULL OR claimant = $4 OR claimed_until <= $5) \
         RETURNING {}",
        &[&COLUMNS],
    );
    let change = of(sql, account, id).bind(since).bind(claim.claimant).bind(claim.now).bind(claim.until);
    if let Some(row) = connection.fetch_changed(change).await? {
        return Ok(ClaimResult::Granted(conversation(&row)?));
    }
    let found = read_conversation(account, id, since, connection).await?;
    Ok(if found.is_some() { ClaimResult::Busy } else { ClaimResult::Unknown })
}

/// Prolongs a request's own claim.
pub(super) fn renew(account: &AccountId, id: ConversationId, by: RequestId, until: Timestamp) -> Statement {
    of(RENEW, account, id).bind(by).bind(until)
}

/// Ends a request's own claim.
pub(super) fn release(account: &AccountId, id: ConversationId, by: RequestId) -> Statement {
    of(RELEASE, account, id).bind(by)
}
