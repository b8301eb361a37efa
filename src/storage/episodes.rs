//! Runs of agents, in statements that both databases take.

/// The functions that read and write runs, for one database.
macro_rules! episode_statements {
    ($database:ty, $arguments:ty, $connection:ty, $row:ty) => {
        use sqlx::Row;

        use crate::agent::{EpisodeEnding, LastStep, CountedPrompt, RouteTurns};
        use crate::storage::episode_limits_row::{limits_from_json, limits_to_json, raise_to_json};
        use crate::units::{Count, Tokens};

        const READ: &str = "\
            SELECT id, limits, model, class, context, reading, ended, route_used, route_most, steps, used_at \
            FROM episodes WHERE account = $1 AND id = $2";

        const BEGIN: &str = "\
            INSERT INTO episodes (account, id, limits, context, ended, steps, used_at) \
            VALUES ($1, $2, '{}', 0, 'open', 0, $3) ON CONFLICT (account, id) DO NOTHING";

        const LIST: &str = "\
            SELECT account, id, limits, model, class, context, reading, ended, route_used, route_most, steps, used_at \
            FROM episodes WHERE (account, id) > ($1, $2) ORDER BY account, id LIMIT $3";

        const LIST_OF: &str = "\
            SELECT account, id, limits, model, class, context, reading, ended, route_used, route_most, steps, used_at \
            FROM episodes WHERE (account, id) > ($1, $2) AND account = $4 ORDER BY account, id LIMIT $3";

        const RAISED: &str = "\
            INSERT INTO episode_raises \
                (account, episode, number, at, money, thinking, turns, tool_calls, tools, is_end) \
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

        // The entries of a run are kept as long as the run.
        const PURGE_RAISES: &str = "\
            DELETE FROM episode_raises WHERE NOT EXISTS \
                (SELECT 1 FROM episodes e WHERE e.account = episode_raises.account AND e.id = episode_raises.episode)";

        const LIMIT: &str = "UPDATE episodes SET limits = $3 WHERE account = $1 AND id = $2";

        const STEP: &str = "\
            INSERT INTO episodes \
                (account, id, limits, model, class, context, reading, ended, route_used, route_most, steps, used_at) \
            VALUES ($1, $2, '{}', $3, $4, $5, $6, $7, $8, $9, 1, $10) ON CONFLICT (account, id) DO UPDATE SET \
                model = excluded.model, class = excluded.class, context = excluded.context, \
                reading = excluded.reading, ended = excluded.ended, route_used = excluded.route_used, \
                route_most = excluded.route_most, steps = episodes.steps + 1, used_at = excluded.used_at";

        const CONTINUED: &str = "\
            UPDATE episode_links SET continued = 1 \
            WHERE account = $1 AND link = $2 AND episode = $3 AND continued = 0";

        const RELEASED: &str = "\
            UPDATE episode_links SET continued = continued - 1 \
            WHERE account = $1 AND link = $2 AND episode = $3 AND continued > 0";

        const LINK: &str = "\
            INSERT INTO episode_links (account, link, episode, continued, at) VALUES ($1, $2, $3, 0, $4) \
            ON CONFLICT (account, link, episode) DO UPDATE SET at = excluded.at";

        const TWINS: &str = "\
            SELECT episode, continued, at FROM episode_links WHERE account = $1 AND link = $2 AND at >= $3 \
            ORDER BY continued, at DESC, episode LIMIT $4";

        // Identical runs that nobody goes on with would pile up.
        const SURPLUS: &str = "\
            DELETE FROM episode_links WHERE account = $1 AND link = $2 AND episode IN \
                (SELECT episode FROM episode_links WHERE account = $1 AND link = $2 \
                 ORDER BY continued, at DESC, episode LIMIT 1000 OFFSET $3)";

        const COURSES: &str = "\
            SELECT class, model, steps, ended FROM episodes WHERE model IS NOT NULL \
            ORDER BY used_at DESC LIMIT $1";

        const PURGE: &str = "\
            DELETE FROM episodes WHERE (account, id) IN \
                (SELECT account, id FROM episodes WHERE used_at < $1 ORDER BY used_at LIMIT $2)";

        const PURGE_LINKS: &str = "\
            DELETE FROM episode_links WHERE (account, link, episode) IN \
                (SELECT account, link, episode FROM episode_links WHERE at < $1 ORDER BY at LIMIT $2)";

        type EpisodeStatement = sqlx::query::Query<'static, $database, $arguments>;

        async fn run(statement: EpisodeStatement, connection: &mut $connection) -> Result<u64, sqlx::Error> {
            Ok(statement.execute(connection).await?.rows_affected())
        }

        fn of(statement: &'static str, account: &AccountId, id: &EpisodeId) -> EpisodeStatement {
            sqlx::query(statement).bind(account.as_str().to_owned()).bind(id.as_str().to_owned())
        }

        fn tied(statement: &'static str, account: &AccountId, link: &HistoryHash, id: &EpisodeId) -> EpisodeStatement {
            let query = sqlx::query(statement).bind(account.as_str().to_owned());
            query.bind(link.0.to_vec()).bind(id.as_str().to_owned())
        }

        async fn read_episode(
            statement: &'static str,
            (account, id): (&AccountId, &EpisodeId),
            connection: &mut $connection,
        ) -> Result<Option<StoredEpisode>, sqlx::Error> {
            let row = of(statement, account, id).fetch_optional(connection).await?;
            row.as_ref().map(episode).transpose()
        }

        /// Begins the run if it is not there, and lowers its limits, where nobody else does meanwhile; `lock` reads it so.
        async fn lower_limits(
            lock: &'static str,
            (account, id): (&AccountId, &EpisodeId),
            lower: &EpisodeLimits,
            now: Timestamp,
            connection: &mut $connection,
        ) -> Result<StoredEpisode, sqlx::Error> {
            run(of(BEGIN, account, id).bind(now.0), connection).await?;
            let found = read_episode(lock, (account, id), connection).await?;
            let mut episode = found.ok_or(sqlx::Error::RowNotFound)?;
            if episode.lower(lower) {
                let limits = limits_to_json(&episode.stated, &episode.raised).map_err(encode)?;
                run(of(LIMIT, account, id).bind(limits), connection).await?;
            }
            Ok(episode)
        }

        /// Raises the limits of a run, where nobody else does meanwhile; `lock` reads it so.
        async fn raise_limits(
            lock: &'static str,
            (account, id): (&AccountId, &EpisodeId),
            more: &EpisodeRaise,
            now: Timestamp,
            connection: &mut $connection,
        ) -> Result<Option<StoredEpisode>, sqlx::Error> {
            let Some(mut episode) = read_episode(lock, (account, id), connection).await? else { return Ok(None) };
            episode.raise(more);
            let limits = limits_to_json(&episode.stated, &episode.raised).map_err(encode)?;
            run(of(LIMIT, account, id).bind(limits), connection).await?;
            let entered = of(RAISED, account, id).bind(i64::from(episode.raised.raises)).bind(now.0);
            let entered = entered.bind(number(more.cost.0)).bind(number(more.thinking.0));
            let entered = entered.bind(number(more.turns.0)).bind(number(more.tools.all.0));
            let entered = entered.bind(raise_to_json(more).map_err(encode)?).bind(i64::from(more.is_end));
            run(entered, connection).await?;
            Ok(Some(episode))
        }

        async fn read_list(
            account: Option<&AccountId>,
            after: Option<&(AccountId, EpisodeId)>,
            most: u32,
            connection: &mut $connection,
        ) -> Result<Vec<(AccountId, StoredEpisode)>, sqlx::Error> {
            let (last, name) = after.map_or(("", ""), |(account, id)| (account.as_str(), id.as_str()));
            let query = sqlx::query(if account.is_some() { LIST_OF } else { LIST });
            let mut query = query.bind(last.to_owned()).bind(name.to_owned()).bind(i64::from(most));
            if let Some(account) = account {
                query = query.bind(account.as_str().to_owned());
            }
            let rows = query.fetch_all(connection).await?;
            let one = |row| Ok((AccountId::new(Row::try_get::<&str, _>(row, "account")?), episode(row)?));
            rows.iter().map(one).collect()
        }

        /// The run as it is, where these limits would change nothing about it.
        async fn unchanged(
            (account, id): (&AccountId, &EpisodeId),
            lower: &EpisodeLimits,
            connection: &mut $connection,
        ) -> Result<Option<StoredEpisode>, sqlx::Error> {
            let found = read_episode(READ, (account, id), connection).await?;
            Ok(found.filter(|episode| !episode.clone().lower(lower)))
        }

        async fn read_twins(
            account: &AccountId,
            link: &HistoryHash,
            since: Timestamp,
            connection: &mut $connection,
        ) -> Result<Vec<IdenticalEpisode>, sqlx::Error> {
            let query = sqlx::query(TWINS).bind(account.as_str().to_owned());
            let query = query.bind(link.0.to_vec()).bind(since.0).bind(twins_max());
            let rows = query.fetch_all(connection).await?;
            rows.iter().map(twin).collect()
        }

        async fn write_step(step: &AnsweredStep, connection: &mut $connection) -> Result<(), sqlx::Error> {
            let AnsweredStep { account, id, from, to, last, at, .. } = step;
            let query = of(STEP, account, id).bind(last.model.to_string()).bind(last.class.as_str());
            let query = query.bind(number(last.context.0));
            let query = query.bind(last.reading.map(|reading| reading.to_bytes().to_vec()));
            let query = query.bind(last.ended.as_str());
            let turns = |of: fn(RouteTurns) -> Count| last.route_turns.map(|turns| number(of(turns).0));
            let query = query.bind(turns(|turns| turns.used)).bind(turns(|turns| turns.most)).bind(at.0);
            run(query, connection).await?;
            let tie = |statement, link| tied(statement, account, link, id);
            if let Some(from) = from {
                run(tie(CONTINUED, from), connection).await?;
            }
            for link in to {
                run(tie(LINK, link).bind(at.0), connection).await?;
                let surplus = sqlx::query(SURPLUS).bind(account.as_str().to_owned());
                run(surplus.bind(link.0.to_vec()).bind(twins_max()), &mut *connection).await?;
            }
            Ok(())
        }

        async fn read_courses(most: u32, connection: &mut $connection) -> Result<Vec<EpisodeLength>, sqlx::Error> {
            let rows = sqlx::query(COURSES).bind(i64::from(most)).fetch_all(connection).await?;
            let course = |row| -> Result<Option<EpisodeLength>, sqlx::Error> {
                let (last, steps) = (last_step(row)?, count(row, "steps")?);
                Ok(last.map(|last| EpisodeLength { class: last.class, model: last.model, steps, ended: last.ended }))
            };
            rows.iter().filter_map(|row| course(row).transpose()).collect()
        }

        async fn delete_before(
            before: Timestamp,
            most: u32,
            connection: &mut $connection,
        ) -> Result<u64, sqlx::Error> {
            let purge = |query| sqlx::query(query).bind(before.0).bind(i64::from(most));
            let links = run(purge(PURGE_LINKS), connection).await?;
            let purged = run(purge(PURGE), connection).await?;
            if purged > 0 {
                run(sqlx::query(PURGE_RAISES), connection).await?;
            }
            Ok(purged.max(links))
        }

        fn episode(row: &$row) -> Result<StoredEpisode, sqlx::Error> {
            let id = row.try_get::<&str, _>("id")?.parse().map_err(decode)?;
            let (stated, raised) = limits_from_json(row.try_get("limits")?).map_err(decode)?;
            Ok(StoredEpisode {
                last: last_step(row)?,
                steps: count(row, "steps")?,
                ..StoredEpisode::new(id, stated, Timestamp(row.try_get("used_at")?)).with_raise(raised)
            })
        }

        fn last_step(row: &$row) -> Result<Option<LastStep>, sqlx::Error> {
            let Some(model) = row.try_get::<Option<&str>, _>("model")? else { return Ok(None) };
            let class: &str = row.try_get("class")?;
            let word: &str = row.try_get("ended")?;
            let ended = EpisodeEnding::ALL.into_iter().find(|ending| ending.as_str() == word);
            // What only the whole row tells is not asked for where courses are.
            let context = row.try_get::<i64, _>("context").unwrap_or_default();
            let reading = row.try_get::<Option<&[u8]>, _>("reading").ok().flatten();
            let turns = |column| row.try_get::<Option<i64>, _>(column).unwrap_or_default();
            let turns = turns("route_used").zip(turns("route_most"));
            let count = |count| Count(u64::try_from(count).unwrap_or_default());
            Ok(Some(LastStep {
                model: model.into(),
                class: serde_json::from_value(class.into()).map_err(decode)?,
                context: Tokens(u64::try_from(context).unwrap_or_default()),
                reading: reading.and_then(CountedPrompt::from_bytes),
                ended: ended.ok_or_else(|| sqlx::Error::Decode(format!("no ending {word:?}").into()))?,
                route_turns: turns.map(|(used, most)| RouteTurns { used: count(used), most: count(most) }),
            }))
        }

        fn twin(row: &$row) -> Result<IdenticalEpisode, sqlx::Error> {
            Ok(IdenticalEpisode {
                id: row.try_get::<&str, _>("episode")?.parse().map_err(decode)?,
                continued: count(row, "continued")?,
                at: Timestamp(row.try_get("at")?),
            })
        }

        fn count(row: &$row, column: &str) -> Result<Count, sqlx::Error> {
            Ok(Count(u64::try_from(row.try_get::<i64, _>(column)?).unwrap_or_default()))
        }

        fn twins_max() -> i64 {
            i64::try_from(IdenticalEpisode::IDENTICAL_MAX).unwrap_or(i64::MAX)
        }

        fn number(count: u64) -> i64 {
            i64::try_from(count).unwrap_or(i64::MAX)
        }

        fn encode(error: serde_json::Error) -> sqlx::Error {
            sqlx::Error::Encode(Box::new(error))
        }

        fn decode(error: impl std::error::Error + Send + Sync + 'static) -> sqlx::Error {
            sqlx::Error::Decode(Box::new(error))
        }
    };
}

/// The trait for a store of one database, whose own are its connections (`reader`, `slow_reader`, `writer`) and what must be
/// done in its own way (`begin`, `hand_out`, `commit_step`, `commit_raise`).
macro_rules! episode_store {
    ($store:ty) => {
        use futures_util::FutureExt;
        use futures_util::future::BoxFuture;

        use crate::agent::{EpisodeStore, EpisodesError};

        impl EpisodeStore for $store {
            fn open<'a>(
                &'a self,
                account: &'a AccountId,
                id: &'a EpisodeId,
                limits: &'a EpisodeLimits,
                now: Timestamp,
            ) -> BoxFuture<'a, Result<StoredEpisode, EpisodesError>> {
                let opened = self.begin((account, id), limits, now);
                async move { opened.await.map_err(|source| self.failed(source)) }.boxed()
            }

            fn raise<'a>(
                &'a self,
                account: &'a AccountId,
                id: &'a EpisodeId,
                more: &'a EpisodeRaise,
                now: Timestamp,
            ) -> BoxFuture<'a, Result<Option<StoredEpisode>, EpisodesError>> {
                let raised = self.commit_raise((account, id), more, now);
                async move { raised.await.map_err(|source| self.failed(source)) }.boxed()
            }

            fn list<'a>(
                &'a self,
                account: Option<&'a AccountId>,
                after: Option<&'a (AccountId, EpisodeId)>,
                most: u32,
            ) -> BoxFuture<'a, Result<Vec<(AccountId, StoredEpisode)>, EpisodesError>> {
                let read =
                    async move { read_list(account, after, most, &mut *self.slow_reader().await?).await };
                async move { read.await.map_err(|source| self.failed(source)) }.boxed()
            }

            fn read<'a>(
                &'a self,
                account: &'a AccountId,
                id: &'a EpisodeId,
            ) -> BoxFuture<'a, Result<Option<StoredEpisode>, EpisodesError>> {
                let read = async move { read_episode(READ, (account, id), &mut *self.reader().await?).await };
                async move { read.await.map_err(|source| self.failed(source)) }.boxed()
            }

            fn find<'a>(
                &'a self,
                account: &'a AccountId,
                link: &'a HistoryHash,
                since: Timestamp,
            ) -> BoxFuture<'a, Result<Option<EpisodeId>, EpisodesError>> {
                let found = self.hand_out(account, link, since);
                async move { found.await.map_err(|source| self.failed(source)) }.boxed()
            }

            fn release<'a>(
                &'a self,
                account: &'a AccountId,
                link: &'a HistoryHash,
                id: &'a EpisodeId,
            ) -> BoxFuture<'a, Result<(), EpisodesError>> {
                let released =
                    async move { run(tied(RELEASED, account, link, id), &mut *self.writer().await?).await };
                async move { released.await.map(drop).map_err(|source| self.failed(source)) }.boxed()
            }

            fn identical_episodes<'a>(
                &'a self,
                account: &'a AccountId,
                link: &'a HistoryHash,
                since: Timestamp,
            ) -> BoxFuture<'a, Result<Vec<IdenticalEpisode>, EpisodesError>> {
                let read = async move { read_twins(account, link, since, &mut *self.reader().await?).await };
                async move { read.await.map_err(|source| self.failed(source)) }.boxed()
            }

            fn record_step<'a>(&'a self, step: &'a AnsweredStep) -> BoxFuture<'a, Result<(), EpisodesError>> {
                async move { self.commit_step(step).await.map_err(|source| self.failed(source)) }.boxed()
            }

            fn episode_lengths(&self, most: u32) -> BoxFuture<'_, Result<Vec<EpisodeLength>, EpisodesError>> {
                let read = async move { read_courses(most, &mut *self.slow_reader().await?).await };
                async move { read.await.map_err(|source| self.failed(source)) }.boxed()
            }

            fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, EpisodesError>> {
                let deleted = async move { delete_before(before, most, &mut *self.writer().await?).await };
                async move { deleted.await.map_err(|source| self.failed(source)) }.boxed()
            }
        }
    };
}

pub(super) use {episode_statements, episode_store};
