//! Changes of several rows, each made in one transaction.
//!
//! The row of the conversation is changed or locked before anything else, and that of the account after it. So changes of one
//! conversation follow one another, and there is no deadlock.

use crate::sql::{SqlConnection, sql, to_column};
use stint_sessions::agent::conversations::{
    ConversationAppend, ConversationLimits, ConversationWriteResult, StoredConversation, StoredItem,
};
use stint_types::units::{AccountId, ConversationId, RequestId, Timestamp};

use super::items::{insert_items, read_item};
use super::records::{CONVERSATIONS, of};

/// One that is there already stays as it is.
const INSERT: &str = "\
    INSERT INTO conversations (account, id, created_at, touched_at, metadata, episode, next_place, bytes, key_id) \
    VALUES ($1, $2, $3, $3, $4, $5, $6, $7, $8) ON CONFLICT (account, id) DO NOTHING";

/// Whether a conversation may grow at $5: by the request $4 that has its claim, or without one while nobody has.
const MAY_GROW: &str = "(claimant = $4 OR $4 IS NULL AND (claimant IS NULL OR claimed_until <= $5))";

const REMOVE: &str = "DELETE FROM conversation_items WHERE account = $1 AND conversation = $2 AND place = $3";

const SHRINK: &str = "\
    UPDATE conversations SET bytes = bytes - $3, \
        touched_at = CASE WHEN touched_at < $4 THEN $4 ELSE touched_at END \
    WHERE account = $1 AND id = $2";

/// A change of several rows, made whole or not at all.
#[derive(Debug, Clone, Copy)]
pub(super) enum ConversationEdit<'a> {
    Create(&'a StoredConversation, &'a [StoredItem], ConversationLimits),
    Append(&'a ConversationAppend, Timestamp, ConversationLimits),
    Remove(ItemRemoval<'a>),
}

/// An item that is to be taken out of its conversation.
#[derive(Debug, Clone, Copy)]
pub(super) struct ItemRemoval<'a> {
    pub(super) account: &'a AccountId,
    pub(super) id: ConversationId,
    pub(super) item: &'a str,
    pub(super) since: Timestamp,
    pub(super) now: Timestamp,
}

struct ConversationGrowth {
    bytes: i64,
    may_grow: bool,
}

/// Makes a change, in a transaction.
pub(super) async fn make_edit(
    edit: ConversationEdit<'_>,
    connection: &mut dyn SqlConnection,
) -> Result<ConversationWriteResult, sqlx::Error> {
    match edit {
        ConversationEdit::Create(new, items, limits) => create(new, items, limits, connection).await,
        ConversationEdit::Append(new, since, limits) => append(new, since, limits, connection).await,
        ConversationEdit::Remove(removal) => remove(removal, connection).await,
    }
}

async fn create(
    new: &StoredConversation,
    items: &[StoredItem],
    limits: ConversationLimits,
    connection: &mut dyn SqlConnection,
) -> Result<ConversationWriteResult, sqlx::Error> {
    let bytes = to_column(new.size() + items.iter().map(StoredItem::size).sum::<usize>());
    if bytes > to_column(limits.conversation) {
        return Ok(ConversationWriteResult::Full);
    }
    let insert = of(INSERT, &new.account, new.id).bind(new.at).bind(&*new.metadata);
    let insert = insert.bind(new.episode.as_ref()).bind(1 + to_column(items.len())).bind(bytes).bind(new.key);
    if connection.execute(insert).await? > 0 {
        insert_items(&new.account, new.id, 1, items, connection).await?;
    }
    CONVERSATIONS.make_room(&new.account, new.id.as_bytes(), limits.account, connection).await?;
    Ok(ConversationWriteResult::Done)
}

async fn append(
    new: &ConversationAppend,
    since: Timestamp,
    limits: ConversationLimits,
    connection: &mut dyn SqlConnection,
) -> Result<ConversationWriteResult, sqlx::Error> {
    // The bytes that it may have before.
    let room = to_column(limits.conversation).saturating_sub(to_column(new.size()));
    let first = loop {
        if let Some(first) = take_places(new, since, room, connection).await? {
            break first;
        }
        // What was in the way may be gone by now. Then it stays so, and the next try succeeds.
        match read_growth(&new.account, new.id, since, new.claimant, new.at, connection).await? {
            None => return Ok(ConversationWriteResult::Unknown),
            Some(growth) if !growth.may_grow => return Ok(ConversationWriteResult::Busy),
            Some(growth) if growth.bytes > room => return Ok(ConversationWriteResult::Full),
            Some(_) => {}
        }
    };
    insert_items(&new.account, new.id, first, &new.items, connection).await?;
    CONVERSATIONS.make_room(&new.account, new.id.as_bytes(), limits.account, connection).await?;
    Ok(ConversationWriteResult::Done)
}

/// Takes the places of new items, and ends the claim. Returns the first of them; none where something is in the way.
async fn take_places(
    new: &ConversationAppend,
    since: Timestamp,
    room: i64,
    connection: &mut dyn SqlConnection,
) -> Result<Option<i64>, sqlx::Error> {
    let sql = sql(
        "UPDATE conversations SET next_place = next_place + $6, bytes = bytes + $7, \
            claimant = NULL, claimed_until = NULL, episode = coalesce($9, episode), \
            touched_at = CASE WHEN touched_at < $5 THEN $5 ELSE touched_at END \
         WHERE account = $1 AND id = $2 AND touched_at >= $3 AND bytes <= $8 AND {} \
         RETURNING next_place",
        &[&MAY_GROW],
    );
    let count = to_column(new.items.len());
    let change = of(sql, &new.account, new.id).bind(since).bind(new.claimant).bind(new.at);
    let change = change.bind(count).bind(new.size()).bind(room).bind(new.episode.as_ref());
    let row = connection.fetch_changed(change).await?;
    row.map(|row| Ok(row.get::<i64>("next_place")? - count)).transpose()
}

/// How large a conversation is and whether it may grow; it stays so until this transaction ends.
async fn read_growth(
    account: &AccountId,
    id: ConversationId,
    since: Timestamp,
    claimant: Option<RequestId>,
    now: Timestamp,
    connection: &mut dyn SqlConnection,
) -> Result<Option<ConversationGrowth>, sqlx::Error> {
    let sql = sql(
        "SELECT bytes, {} AS may_grow FROM conversations \
         WHERE account = $1 AND id = $2 AND touched_at >= $3{}",
        &[&MAY_GROW, &connection.dialect().for_update()],
    );
    let find = of(sql, account, id).bind(since).bind(claimant).bind(now);
    let Some(row) = connection.fetch_optional(find).await? else { return Ok(None) };
    // A comparison with a claimant that is NULL is neither true nor false.
    let may_grow = row.get::<Option<bool>>("may_grow")?.unwrap_or(false);
    Ok(Some(ConversationGrowth { bytes: row.get("bytes")?, may_grow }))
}

async fn remove(
    removal: ItemRemoval<'_>,
    connection: &mut dyn SqlConnection,
) -> Result<ConversationWriteResult, sqlx::Error> {
    let ItemRemoval { account, id, item, since, now } = removal;
    let growth = read_growth(account, id, since, None, now, connection).await?;
    let found = read_item(account, id, item, since, connection).await?;
    let (Some(growth), Some(found)) = (growth, found) else {
        return Ok(ConversationWriteResult::Unknown);
    };
    if !growth.may_grow {
        return Ok(ConversationWriteResult::Busy);
    }
    connection.execute(of(REMOVE, account, id).bind(found.position)).await?;
    connection.execute(of(SHRINK, account, id).bind(found.item.size()).bind(now)).await?;
    Ok(ConversationWriteResult::Done)
}
