//! What decisions leave behind, in statements that both databases take.

/// The functions that read and write it, for one database.
macro_rules! story_statements {
    ($database:ty, $arguments:ty, $connection:ty, $row:ty) => {
        use sqlx::Row;

        use crate::catalog::VerdictSource;
        use crate::units::{AccountId, Chance};

        /// A story that is there already stays as it is.
        const KEEP: &str = "\
            INSERT INTO stories (request, account, decided_at, decision, outcome) VALUES ($1, $2, $3, $4, $5) \
            ON CONFLICT (request) DO NOTHING";

        const FIND: &str =
            "SELECT account, decision, outcome FROM stories WHERE request = $1 AND decided_at >= $2";

        const VERDICTS: &str = "SELECT request, source, at, success, weight FROM verdicts WHERE request = $1";

        /// What came with a story does not replace what was said since.
        const SAID: &str = "\
            INSERT INTO verdicts (request, source, at, success, weight) VALUES ($1, $2, $3, $4, $5) \
            ON CONFLICT (request, source) DO NOTHING";

        const JUDGE: &str = "\
            INSERT INTO verdicts (request, source, at, success, weight) VALUES ($1, $2, $3, $4, $5) \
            ON CONFLICT (request, source) DO UPDATE SET \
                at = excluded.at, success = excluded.success, weight = excluded.weight";

        const JUDGED: &str = "\
            SELECT request, source, at, success, weight FROM verdicts WHERE request = $1 AND source = $2";

        /// By the index alone.
        const BEYOND: &str = "SELECT decided_at FROM stories ORDER BY decided_at DESC LIMIT 1 OFFSET $1";

        const PURGE: &str = "\
            DELETE FROM stories WHERE request IN \
                (SELECT request FROM stories WHERE decided_at < $1 ORDER BY decided_at LIMIT $2)";

        const PURGE_VERDICTS: &str = "\
            DELETE FROM verdicts WHERE (request, source) IN \
                (SELECT request, source FROM verdicts WHERE at < $1 ORDER BY at LIMIT $2)";

        const LEARNED: &str = "SELECT replica, saved_at, has_left, state FROM learned";

        const SAVE: &str = "\
            INSERT INTO learned (replica, saved_at, has_left, state) VALUES ($1, $2, $3, $4) \
            ON CONFLICT (replica) DO UPDATE SET \
                saved_at = excluded.saved_at, has_left = excluded.has_left, state = excluded.state";

        const TAKE_OVER: &str = "DELETE FROM learned WHERE replica = $1 AND saved_at = $2";

        const UNLEARN: &str = "DELETE FROM learned WHERE replica = $1";

        type RecordStatement = sqlx::query::Query<'static, $database, $arguments>;

        async fn run(statement: RecordStatement, connection: &mut $connection) -> Result<u64, sqlx::Error> {
            Ok(statement.execute(connection).await?.rows_affected())
        }

        async fn write_stories(stories: &[Arc<RequestRecord>], connection: &mut $connection) -> Result<(), sqlx::Error> {
            for story in stories {
                run(kept(story)?, connection).await?;
                for verdict in &story.verdicts {
                    run(said(SAID, verdict), connection).await?;
                }
            }
            Ok(())
        }

        async fn read_story(
            id: RequestId,
            since: Timestamp,
            connection: &mut $connection,
        ) -> Result<Option<RequestRecord>, sqlx::Error> {
            let query = sqlx::query(FIND).bind(id.as_bytes().to_vec()).bind(since.0);
            let Some(row) = query.fetch_optional(&mut *connection).await? else { return Ok(None) };
            let rows = sqlx::query(VERDICTS).bind(id.as_bytes().to_vec()).fetch_all(connection).await?;
            let mut story = RequestRecord {
                account: AccountId::new(row.try_get::<&str, _>("account")?),
                decision: serde_json::from_str(row.try_get("decision")?).map_err(decode)?,
                outcome: serde_json::from_str(row.try_get("outcome")?).map_err(decode)?,
                verdicts: Vec::new(),
            };
            for row in &rows {
                story.set_verdict(verdict(row)?);
            }
            Ok(Some(story))
        }

        async fn write_verdict(
            new: &Verdict,
            connection: &mut $connection,
        ) -> Result<Option<Verdict>, sqlx::Error> {
            let query = sqlx::query(JUDGED).bind(new.id.as_bytes().to_vec()).bind(new.source.as_str());
            let before = query.fetch_optional(&mut *connection).await?;
            run(said(JUDGE, new), connection).await?;
            before.as_ref().map(verdict).transpose()
        }

        async fn read_beyond(
            most: u32,
            connection: &mut $connection,
        ) -> Result<Option<Timestamp>, sqlx::Error> {
            let row = sqlx::query(BEYOND).bind(i64::from(most)).fetch_optional(connection).await?;
            row.map(|row| row.try_get("decided_at").map(Timestamp)).transpose()
        }

        async fn delete_before(
            before: Timestamp,
            most: u32,
            connection: &mut $connection,
        ) -> Result<u64, sqlx::Error> {
            let purge = |query| sqlx::query(query).bind(before.0).bind(i64::from(most));
            let verdicts = run(purge(PURGE_VERDICTS), connection).await?;
            // As long as there is more of either, the next round comes soon.
            Ok(run(purge(PURGE), connection).await?.max(verdicts))
        }

        /// False where something of what was to be taken over has changed: then all must be rolled back.
        async fn write_learned(
            own: &ReplicaState,
            gone: &[ReplicaState],
            connection: &mut $connection,
        ) -> Result<bool, sqlx::Error> {
            for gone in gone {
                let query = sqlx::query(TAKE_OVER).bind(gone.replica.as_str().to_owned()).bind(gone.at.0);
                if run(query, connection).await? != 1 {
                    return Ok(false);
                }
            }
            let query = sqlx::query(SAVE).bind(own.replica.as_str().to_owned()).bind(own.at.0);
            run(query.bind(i64::from(own.is_final)).bind(own.state.clone()), connection).await?;
            Ok(true)
        }

        fn kept(story: &RequestRecord) -> Result<RecordStatement, sqlx::Error> {
            let RequestRecord { account, decision, outcome, .. } = story;
            let query = sqlx::query(KEEP).bind(decision.id.as_bytes().to_vec());
            let query = query.bind(account.as_str().to_owned()).bind(decision.at.0);
            let encode = |error| sqlx::Error::Encode(Box::new(error));
            let decision = serde_json::to_string(decision).map_err(encode)?;
            Ok(query.bind(decision).bind(serde_json::to_string(outcome).map_err(encode)?))
        }

        fn said(statement: &'static str, verdict: &Verdict) -> RecordStatement {
            let query = sqlx::query(statement).bind(verdict.id.as_bytes().to_vec());
            let query = query.bind(verdict.source.as_str()).bind(verdict.at.0);
            query.bind(verdict.success.get()).bind(verdict.weight)
        }

        fn verdict(row: &$row) -> Result<Verdict, sqlx::Error> {
            let id = row.try_get::<&[u8], _>("request")?.try_into().map_err(decode)?;
            let word: &str = row.try_get("source")?;
            let source = VerdictSource::ALL.into_iter().find(|source| source.as_str() == word);
            Ok(Verdict {
                id: RequestId::from_bytes(id),
                source: source.ok_or_else(|| sqlx::Error::Decode(format!("no source {word:?}").into()))?,
                at: Timestamp(row.try_get("at")?),
                success: Chance::new(row.try_get("success")?),
                weight: row.try_get("weight")?,
            })
        }

        fn saved(row: &$row) -> Result<ReplicaState, sqlx::Error> {
            Ok(ReplicaState {
                replica: ReplicaId::named(row.try_get("replica")?),
                at: Timestamp(row.try_get("saved_at")?),
                is_final: row.try_get::<i64, _>("has_left")? != 0,
                state: row.try_get("state")?,
            })
        }

        fn decode(error: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
            sqlx::Error::Decode(Box::new(error))
        }
    };
}

pub(super) use story_statements;
