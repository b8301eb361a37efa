//! Claims on conversations.

/// Whether a conversation may be lengthened at $5: by the request $4 that has its claim, or without one while nobody has.
macro_rules! may_grow {
    () => {
        "(claimant = $4 OR $4 IS NULL AND (claimant IS NULL OR claimed_until <= $5))"
    };
}

/// The functions that make and end them, for one database.
macro_rules! claim_statements {
    ($connection:ty) => {
        use crate::agent::conversations::ClaimResult;

        const CLAIM: &str = "\
            UPDATE conversations SET claimant = $4, claimed_until = $6, \
                touched_at = CASE WHEN touched_at < $5 THEN $5 ELSE touched_at END \
            WHERE account = $1 AND id = $2 AND touched_at >= $3 \
              AND (claimant IS NULL OR claimant = $4 OR claimed_until <= $5) \
            RETURNING account, id, created_at, metadata, episode";

        const PROLONG: &str =
            "UPDATE conversations SET claimed_until = $4 WHERE account = $1 AND id = $2 AND claimant = $3";

        const RELEASE: &str = "\
            UPDATE conversations SET claimant = NULL, claimed_until = NULL \
            WHERE account = $1 AND id = $2 AND claimant = $3";

        /// A request's claim from now on, until then.
        struct NewClaim {
            claimant: RequestId,
            now: Timestamp,
            until: Timestamp,
        }

        async fn write_claim(
            account: &AccountId,
            id: ConversationId,
            since: Timestamp,
            claim: NewClaim,
            connection: &mut $connection,
        ) -> Result<ClaimResult, sqlx::Error> {
            let query = of(CLAIM, account, id).bind(since.0).bind(claim.claimant.as_bytes().to_vec());
            let row = changed(query.bind(claim.now.0).bind(claim.until.0), connection).await?;
            if let Some(row) = row {
                return Ok(ClaimResult::Granted(conversation(&row)?));
            }
            let found = read_conversation(account, id, since, connection).await?;
            Ok(if found.is_some() { ClaimResult::Busy } else { ClaimResult::Unknown })
        }

        /// A change of that request's own claim.
        fn held(
            statement: &'static str,
            account: &AccountId,
            id: ConversationId,
            by: RequestId,
        ) -> ConversationStatement {
            of(statement, account, id).bind(by.as_bytes().to_vec())
        }
    };
}

pub(in crate::storage) use {claim_statements, may_grow};
