//! Episodes as rows of the table `episodes`, and raises of their limits in `episode_raises`.

use crate::sql::{SqlConnection, SqlRow, Statement, decode_error, sql};
use stint_sessions::agent::{
    Addition, Additions, AnsweredStep, CountedPrompt, EpisodeEnding, EpisodeLength, EpisodeOwner, LastStep,
    RouteTurns, StoredEpisode,
};
use stint_types::chat::{EpisodeLimits, EpisodeRaise};
use stint_types::units::{AccountId, Count, EpisodeId, Timestamp, Tokens};

use super::limits_row::{limits_from_json, limits_to_json, raise_to_json};

const COLUMNS: &str = "account, id, limits, model, class, context, reading, ended, route_used, route_most, steps, used_at, added, key_id";

const INSERT: &str = "\
    INSERT INTO episodes (account, id, limits, context, ended, steps, used_at, key_id) \
    VALUES ($1, $2, '{}', 0, 'open', 0, $3, $4) ON CONFLICT (account, id) DO NOTHING";

const SET_LIMITS: &str = "UPDATE episodes SET limits = $3 WHERE account = $1 AND id = $2";

const INSERT_RAISE: &str = "\
    INSERT INTO episode_raises \
        (account, episode, number, at, money, thinking, turns, tool_calls, tools, is_end) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

/// The values of all [`COLUMNS`] for an episode that begins with a step, and what the step changes of one that is there.
const STEP_VALUES: &str = "\
    VALUES ($1, $2, '{}', $3, $4, $5, $6, $7, $8, $9, 1, $10, $11, $13) ON CONFLICT (account, id) DO UPDATE SET \
        model = excluded.model, class = excluded.class, context = excluded.context, \
        reading = excluded.reading, ended = excluded.ended, route_used = excluded.route_used, \
        route_most = excluded.route_most, steps = episodes.steps + 1, used_at = excluded.used_at, \
        key_id = coalesce(episodes.key_id, excluded.key_id), \
        added = replace(replace(episodes.added, $12, ''), excluded.added, '') || excluded.added";

/// Steps of one episode at the same moment lose nothing of one another's.
const ADD: &str = "UPDATE episodes SET added = replace(added, $3, '') || $3 WHERE account = $1 AND id = $2";

const REMOVE: &str = "UPDATE episodes SET added = replace(added, $3, '') WHERE account = $1 AND id = $2";

const DELETE_BARE: &str =
    "DELETE FROM episodes WHERE account = $1 AND id = $2 AND steps = 0 AND limits = '{}'";

const LENGTHS: &str = "\
    SELECT class, model, steps, ended FROM episodes WHERE model IS NOT NULL ORDER BY used_at DESC LIMIT $1";

const PURGE: &str = "\
    DELETE FROM episodes WHERE (account, id) IN \
        (SELECT account, id FROM episodes WHERE used_at < $1 ORDER BY used_at LIMIT $2)";

/// The raises of an episode are kept as long as the episode.
const PURGE_RAISES: &str = "\
    DELETE FROM episode_raises WHERE NOT EXISTS \
        (SELECT 1 FROM episodes e WHERE e.account = episode_raises.account AND e.id = episode_raises.episode)";

/// The name of an episode among all accounts'.
#[derive(Debug, Clone, Copy)]
pub(super) struct EpisodeRowKey<'a> {
    pub(super) account: &'a AccountId,
    pub(super) id: &'a EpisodeId,
}

impl EpisodeRowKey<'_> {
    fn bound_to(self, sql: &'static str) -> Statement {
        Statement::new(sql).bind(self.account).bind(self.id)
    }
}

/// The episode of that name.
pub(super) async fn read_episode(
    key: EpisodeRowKey<'_>,
    connection: &mut dyn SqlConnection,
) -> Result<Option<StoredEpisode>, sqlx::Error> {
    select_episode(key, "", connection).await
}

/// The same. Nobody else changes it until the transaction ends.
async fn lock_episode(
    key: EpisodeRowKey<'_>,
    connection: &mut dyn SqlConnection,
) -> Result<Option<StoredEpisode>, sqlx::Error> {
    let lock = connection.dialect().for_update();
    select_episode(key, lock, connection).await
}

async fn select_episode(
    key: EpisodeRowKey<'_>,
    lock: &'static str,
    connection: &mut dyn SqlConnection,
) -> Result<Option<StoredEpisode>, sqlx::Error> {
    let sql = sql("SELECT {} FROM episodes WHERE account = $1 AND id = $2{}", &[&COLUMNS, &lock]);
    let find = Statement::new(sql).bind(key.account).bind(key.id);
    connection.fetch_optional(find).await?.as_ref().map(episode).transpose()
}

/// Begins the episode if it is not there, and lowers its limits to these, in a transaction.
pub(super) async fn lower_limits(
    owner: &EpisodeOwner,
    id: &EpisodeId,
    lower: &EpisodeLimits,
    now: Timestamp,
    connection: &mut dyn SqlConnection,
) -> Result<StoredEpisode, sqlx::Error> {
    let key = EpisodeRowKey { account: &owner.account, id };
    connection.execute(key.bound_to(INSERT).bind(now).bind(owner.key)).await?;
    let mut episode = lock_episode(key, connection).await?.ok_or(sqlx::Error::RowNotFound)?;
    if owner.owns(&episode) && episode.lower(lower) {
        set_limits(key, &episode, connection).await?;
    }
    Ok(episode)
}

/// Raises the limits of an episode, in a transaction.
pub(super) async fn raise_limits(
    key: EpisodeRowKey<'_>,
    more: &EpisodeRaise,
    now: Timestamp,
    connection: &mut dyn SqlConnection,
) -> Result<Option<StoredEpisode>, sqlx::Error> {
    let Some(mut episode) = lock_episode(key, connection).await? else { return Ok(None) };
    episode.raise(more);
    set_limits(key, &episode, connection).await?;
    let insert = key.bound_to(INSERT_RAISE).bind(episode.raised.raises).bind(now);
    let insert = insert.bind(more.cost).bind(more.thinking).bind(more.turns).bind(more.tools.all);
    let insert = insert.bind(raise_to_json(more).map_err(encode_error)?).bind(i64::from(more.is_end));
    connection.execute(insert).await?;
    Ok(Some(episode))
}

async fn set_limits(
    key: EpisodeRowKey<'_>,
    episode: &StoredEpisode,
    connection: &mut dyn SqlConnection,
) -> Result<(), sqlx::Error> {
    let limits = limits_to_json(&episode.stated, &episode.raised).map_err(encode_error)?;
    connection.execute(key.bound_to(SET_LIMITS).bind(limits)).await.map(drop)
}

/// Episodes in the order of their names, of one account or of all.
pub(super) async fn read_list(
    account: Option<&AccountId>,
    after: Option<&(AccountId, EpisodeId)>,
    most: u32,
    connection: &mut dyn SqlConnection,
) -> Result<Vec<(AccountId, StoredEpisode)>, sqlx::Error> {
    let of_account = if account.is_some() { "AND account = $4 " } else { "" };
    let sql = sql(
        "SELECT {} FROM episodes WHERE (account, id) > ($1, $2) {}ORDER BY account, id LIMIT $3",
        &[&COLUMNS, &of_account],
    );
    let (last, name) = after.map_or(("", ""), |(account, id)| (account.as_str(), id.as_str()));
    let mut find = Statement::new(sql).bind(last).bind(name).bind(most);
    if let Some(account) = account {
        find = find.bind(account);
    }
    let rows = connection.fetch_all(find).await?;
    rows.iter().map(|row| Ok((row.account("account")?, episode(row)?))).collect()
}

/// The episodes that were used last, the latest first.
pub(super) async fn read_recent(
    account: Option<&AccountId>,
    most: u32,
    connection: &mut dyn SqlConnection,
) -> Result<Vec<(AccountId, StoredEpisode)>, sqlx::Error> {
    let of_account = if account.is_some() { "WHERE account = $2 " } else { "" };
    let sql = sql(
        "SELECT {} FROM episodes {}ORDER BY used_at DESC, account, id LIMIT $1",
        &[&COLUMNS, &of_account],
    );
    let mut find = Statement::new(sql).bind(most);
    if let Some(account) = account {
        find = find.bind(account);
    }
    let rows = connection.fetch_all(find).await?;
    rows.iter().map(|row| Ok((row.account("account")?, episode(row)?))).collect()
}

/// Counts a step of an episode, which begins with it if it is not there.
pub(super) async fn record_step(
    step: &AnsweredStep,
    connection: &mut dyn SqlConnection,
) -> Result<(), sqlx::Error> {
    let AnsweredStep { owner: EpisodeOwner { account, key }, id, last, at, .. } = step;
    let record =
        Statement::new(sql("INSERT INTO episodes ({}) {}", &[&COLUMNS, &STEP_VALUES])).bind(account).bind(id);
    let record = record.bind(&*last.model).bind(last.class.as_str()).bind(last.context);
    let record = record.bind(last.reading.map(|reading| reading.to_bytes().to_vec()));
    let record = record.bind(last.ended.as_str());
    let record = record.bind(last.route_turns.map(|turns| turns.used));
    let record = record.bind(last.route_turns.map(|turns| turns.most));
    let lines = |added: Vec<Addition>| Additions::from(added).to_lines();
    let begun = step.begun.iter().cloned().collect();
    let record = record.bind(*at).bind(lines(step.added.clone())).bind(lines(begun)).bind(*key);
    connection.execute(record).await.map(drop)
}

/// Adds to what was added to the prompts of an episode; returns whether it is there.
pub(super) async fn record_additions(
    key: EpisodeRowKey<'_>,
    added: &[Addition],
    connection: &mut dyn SqlConnection,
) -> Result<bool, sqlx::Error> {
    let lines = Additions::from(added.to_vec()).to_lines();
    Ok(connection.execute(key.bound_to(ADD).bind(lines)).await? > 0)
}

/// Takes back what was added for a step; where that is the first, with the episode, if there is nothing else of it.
pub(super) async fn delete_beginning(
    key: EpisodeRowKey<'_>,
    added: &[Addition],
    is_first: bool,
    connection: &mut dyn SqlConnection,
) -> Result<(), sqlx::Error> {
    for addition in added {
        let line = Additions::from(vec![addition.clone()]).to_lines();
        connection.execute(key.bound_to(REMOVE).bind(line)).await?;
    }
    if is_first {
        connection.execute(key.bound_to(DELETE_BARE)).await?;
    }
    Ok(())
}

/// How many steps the latest episodes have.
pub(super) async fn read_lengths(
    most: u32,
    connection: &mut dyn SqlConnection,
) -> Result<Vec<EpisodeLength>, sqlx::Error> {
    let rows = connection.fetch_all(Statement::new(LENGTHS).bind(most)).await?;
    let length = |row| -> Result<Option<EpisodeLength>, sqlx::Error> {
        let (last, steps) = (last_step(row)?, row.count("steps")?);
        Ok(last.map(|last| EpisodeLength { class: last.class, model: last.model, steps, ended: last.ended }))
    };
    rows.iter().filter_map(|row| length(row).transpose()).collect()
}

/// Deletes the oldest episodes with their raises; returns how many.
pub(super) async fn delete_before(
    before: Timestamp,
    most: u32,
    connection: &mut dyn SqlConnection,
) -> Result<u64, sqlx::Error> {
    let purged = connection.execute(Statement::new(PURGE).bind(before).bind(most)).await?;
    if purged > 0 {
        connection.execute(Statement::new(PURGE_RAISES)).await?;
    }
    Ok(purged)
}

fn episode(row: &SqlRow) -> Result<StoredEpisode, sqlx::Error> {
    let (stated, raised) = limits_from_json(row.get("limits")?).map_err(decode_error)?;
    Ok(StoredEpisode {
        last: last_step(row)?,
        steps: row.count("steps")?,
        added: Additions::from_lines(row.get("added")?),
        ..StoredEpisode::new(row.parsed("id")?, row.parsed_or_null("key_id")?, stated, row.time("used_at")?)
            .with_raise(raised)
    })
}

fn last_step(row: &SqlRow) -> Result<Option<LastStep>, sqlx::Error> {
    let Some(model) = row.get::<Option<&str>>("model")? else { return Ok(None) };
    let class: &str = row.get("class")?;
    let word: &str = row.get("ended")?;
    let ended = EpisodeEnding::ALL.into_iter().find(|ending| ending.as_str() == word);
    // Lengths are read without the columns below.
    let context = row.get::<i64>("context").unwrap_or_default();
    let reading = row.get::<Option<&[u8]>>("reading").ok().flatten();
    let turns = |column| row.get::<Option<i64>>(column).unwrap_or_default();
    let turns = turns("route_used").zip(turns("route_most"));
    let count = |count| Count(u64::try_from(count).unwrap_or_default());
    Ok(Some(LastStep {
        model: model.into(),
        class: serde_json::from_value(class.into()).map_err(decode_error)?,
        context: Tokens(u64::try_from(context).unwrap_or_default()),
        reading: reading.and_then(CountedPrompt::from_bytes),
        ended: ended.ok_or_else(|| decode_error(format!("no ending {word:?}")))?,
        route_turns: turns.map(|(used, most)| RouteTurns { used: count(used), most: count(most) }),
    }))
}

fn encode_error(error: serde_json::Error) -> sqlx::Error {
    sqlx::Error::Encode(Box::new(error))
}
