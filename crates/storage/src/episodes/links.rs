//! Links: which episodes a history may be continued in. The table `episode_links`.
//!
//! Identical histories have one link with several episodes. A request that continues the history is given the episode that
//! was given out least often.

use crate::sql::{SqlConnection, SqlDialect, SqlRow, Statement};
use stint_sessions::agent::{AnsweredStep, BrokenOffStep, EpisodeOwner, HistoryHash, IdenticalEpisode};
use stint_types::units::{AccountId, EpisodeId, Timestamp};

const CONTINUED: &str = "\
    UPDATE episode_links SET continued = 1 \
    WHERE account = $1 AND link = $2 AND episode = $3 AND continued = 0";

const RELEASED: &str = "\
    UPDATE episode_links SET continued = continued - 1 \
    WHERE account = $1 AND link = $2 AND episode = $3 AND continued > 0";

const LINK: &str = "\
    INSERT INTO episode_links (account, link, episode, continued, at) VALUES ($1, $2, $3, 0, $4) \
    ON CONFLICT (account, link, episode) DO UPDATE SET at = excluded.at";

/// By its beginning an episode stands as its step does: it runs, or broke off.
const LINK_BEGINNING: &str = "\
    INSERT INTO episode_links (account, link, episode, at, continued) VALUES ($1, $2, $3, $4, $5) \
    ON CONFLICT (account, link, episode) DO UPDATE SET at = excluded.at, continued = excluded.continued";

const UNLINK: &str = "DELETE FROM episode_links WHERE account = $1 AND link = $2 AND episode = $3";

/// A key has no episode of another one of its name.
const IDENTICAL: &str = "\
    SELECT episode, continued, at FROM episode_links WHERE account = $1 AND link = $2 AND at >= $3 \
    AND NOT EXISTS (SELECT 1 FROM episodes e WHERE e.account = $1 AND e.id = episode AND e.key_id <> $4) \
    ORDER BY continued, at DESC, episode LIMIT $5";

/// Identical episodes that nobody continues would pile up.
const SURPLUS: &str = "\
    DELETE FROM episode_links WHERE account = $1 AND link = $2 AND episode IN \
        (SELECT episode FROM episode_links WHERE account = $1 AND link = $2 \
         ORDER BY continued, at DESC, episode LIMIT 1000 OFFSET $3)";

const PURGE: &str = "\
    DELETE FROM episode_links WHERE (account, link, episode) IN \
        (SELECT account, link, episode FROM episode_links WHERE at < $1 ORDER BY at LIMIT $2)";

/// Requests that come at the same moment are given different episodes, where there are several. PostgreSQL checks a row that was
/// given out meanwhile again by this condition alone, and not by its place in the order. So the condition must say that
/// nobody has had the row.
const GIVE_OUT_UNUSED: &str = "\
    UPDATE episode_links SET continued = continued + 1 \
    WHERE account = $1 AND link = $2 AND episode = \
        (SELECT episode FROM episode_links \
         WHERE account = $1 AND link = $2 AND at >= $3 AND continued = 0 \
         AND NOT EXISTS (SELECT 1 FROM episodes e WHERE e.account = $1 AND e.id = episode AND e.key_id <> $4) \
         ORDER BY at DESC, episode LIMIT 1 FOR UPDATE SKIP LOCKED) \
    RETURNING episode";

/// Where all were given out, the one that was given out least often.
const GIVE_OUT: &str = "\
    UPDATE episode_links SET continued = continued + 1 \
    WHERE account = $1 AND link = $2 AND episode = \
        (SELECT episode FROM episode_links WHERE account = $1 AND link = $2 AND at >= $3 \
         AND NOT EXISTS (SELECT 1 FROM episodes e WHERE e.account = $1 AND e.id = episode AND e.key_id <> $4) \
         ORDER BY continued, at DESC, episode LIMIT 1) \
    RETURNING episode";

/// Gives out an episode that continues this history.
pub(super) async fn give_out(
    owner: &EpisodeOwner,
    link: &HistoryHash,
    since: Timestamp,
    connection: &mut dyn SqlConnection,
) -> Result<Option<EpisodeId>, sqlx::Error> {
    let statements: &[&str] = match connection.dialect() {
        // One connection writes, so nobody else gives out the same.
        SqlDialect::Sqlite => &[GIVE_OUT],
        SqlDialect::Postgres => &[GIVE_OUT_UNUSED, GIVE_OUT],
    };
    for statement in statements {
        let statement = Statement::new(*statement).bind(&owner.account).bind(&link.0[..]).bind(since);
        let statement = statement.bind(owner.key);
        if let Some(row) = connection.fetch_changed(statement).await? {
            return row.parsed("episode").map(Some);
        }
    }
    Ok(None)
}

/// Takes back what was given out.
pub(super) fn release(account: &AccountId, link: &HistoryHash, id: &EpisodeId) -> Statement {
    tied(RELEASED, account, link, id)
}

/// Episodes with this history.
pub(super) async fn read_identical(
    owner: &EpisodeOwner,
    link: &HistoryHash,
    since: Timestamp,
    connection: &mut dyn SqlConnection,
) -> Result<Vec<IdenticalEpisode>, sqlx::Error> {
    let find = Statement::new(IDENTICAL).bind(&owner.account).bind(&link.0[..]).bind(since).bind(owner.key);
    let rows = connection.fetch_all(find.bind(IdenticalEpisode::IDENTICAL_MAX)).await?;
    rows.iter().map(identical_episode).collect()
}

/// Links the histories that a step leads to with its episode, which is not found by the step's beginning any more.
pub(super) async fn link_step(
    step: &AnsweredStep,
    connection: &mut dyn SqlConnection,
) -> Result<(), sqlx::Error> {
    let AnsweredStep { owner: EpisodeOwner { account, .. }, id, from, to, begun, at, .. } = step;
    if let Some(from) = from {
        connection.execute(tied(CONTINUED, account, from, id)).await?;
    }
    if let Some(begun) = begun {
        connection.execute(tied(UNLINK, account, &begun.before.broken_off(), id)).await?;
    }
    for to in to {
        link(account, to, id, *at, connection).await?;
    }
    Ok(())
}

/// Links the beginning of a step with its episode.
pub(super) async fn link_beginning(
    step: &BrokenOffStep,
    connection: &mut dyn SqlConnection,
) -> Result<(), sqlx::Error> {
    let BrokenOffStep { owner: EpisodeOwner { account, .. }, id, link, at, .. } = step;
    let insert = tied(LINK_BEGINNING, account, link, id).bind(*at).bind(step.continued());
    connection.execute(insert).await?;
    delete_surplus(account, link, connection).await
}

/// Takes that back.
pub(super) fn unlink_beginning(step: &BrokenOffStep) -> Statement {
    tied(UNLINK, &step.owner.account, &step.link, &step.id)
}

/// Links a history with the episode that goes on from it.
async fn link(
    account: &AccountId,
    link: &HistoryHash,
    id: &EpisodeId,
    at: Timestamp,
    connection: &mut dyn SqlConnection,
) -> Result<(), sqlx::Error> {
    connection.execute(tied(LINK, account, link, id).bind(at)).await?;
    delete_surplus(account, link, connection).await
}

async fn delete_surplus(
    account: &AccountId,
    link: &HistoryHash,
    connection: &mut dyn SqlConnection,
) -> Result<(), sqlx::Error> {
    let surplus = Statement::new(SURPLUS).bind(account).bind(&link.0[..]);
    connection.execute(surplus.bind(IdenticalEpisode::IDENTICAL_MAX)).await.map(drop)
}

/// Deletes the oldest links; returns how many.
pub(super) async fn delete_before(
    before: Timestamp,
    most: u32,
    connection: &mut dyn SqlConnection,
) -> Result<u64, sqlx::Error> {
    connection.execute(Statement::new(PURGE).bind(before).bind(most)).await
}

fn tied(sql: &'static str, account: &AccountId, link: &HistoryHash, id: &EpisodeId) -> Statement {
    Statement::new(sql).bind(account).bind(&link.0[..]).bind(id)
}

fn identical_episode(row: &SqlRow) -> Result<IdenticalEpisode, sqlx::Error> {
    Ok(IdenticalEpisode {
        id: row.parsed("episode")?,
        continued: row.count("continued")?,
        at: row.time("at")?,
    })
}
