//! Changes that are several statements in one transaction.

/// The functions that make them, for one database, which puts items in its own way (`put_items`).
///
/// The row of the conversation is changed or locked before anything else, that of the account after it. So changes of one
/// conversation follow one another, and none waits for another that waits for it.
macro_rules! edit_statements {
    ($connection:ty, $locked:literal) => {
        use crate::storage::conversations::{ItemRemoval, may_grow};

        /// Takes the places of new items, and ends the claim.
        const LENGTHEN: &str = concat!(
            "\
            UPDATE conversations SET next_place = next_place + $6, bytes = bytes + $7, \
                claimant = NULL, claimed_until = NULL, episode = coalesce($9, episode), \
                touched_at = CASE WHEN touched_at < $5 THEN $5 ELSE touched_at END \
            WHERE account = $1 AND id = $2 AND touched_at >= $3 AND bytes <= $8 AND ",
            may_grow!(),
            " RETURNING next_place",
        );

        /// How a conversation stands; it stays so until this transaction ends.
        const STANDING: &str = concat!(
            "SELECT bytes, ",
            may_grow!(),
            " AS may_grow FROM conversations WHERE account = $1 AND id = $2 AND touched_at >= $3",
            $locked,
        );

        const REMOVE: &str =
            "DELETE FROM conversation_items WHERE account = $1 AND conversation = $2 AND place = $3";

        const SHRINK: &str = "\
            UPDATE conversations SET bytes = bytes - $3, \
                touched_at = CASE WHEN touched_at < $4 THEN $4 ELSE touched_at END \
            WHERE account = $1 AND id = $2";

        struct ConversationGrowth {
            bytes: i64,
            may_grow: bool,
        }

        async fn make_edit(
            edit: ConversationEdit<'_>,
            connection: &mut $connection,
        ) -> Result<ConversationWriteResult, sqlx::Error> {
            match edit {
                ConversationEdit::Create(new, items, bounds) => create(new, items, bounds, connection).await,
                ConversationEdit::Lengthen(new, since, bounds) => {
                    lengthen(new, since, bounds, connection).await
                }
                ConversationEdit::Remove(removal) => remove(removal, connection).await,
            }
        }

        async fn create(
            new: &StoredConversation,
            items: &[StoredItem],
            bounds: ConversationLimits,
            connection: &mut $connection,
        ) -> Result<ConversationWriteResult, sqlx::Error> {
            let bytes = whole(new.size() + items.iter().map(StoredItem::size).sum::<usize>());
            if bytes > whole(bounds.conversation) {
                return Ok(ConversationWriteResult::Full);
            }
            let query = of(MAKE, &new.account, new.id).bind(new.at.0).bind(new.metadata.to_string());
            let query = query.bind(new.episode.as_ref().map(|episode| episode.as_str().to_owned()));
            if run(query.bind(1 + whole(items.len())).bind(bytes), connection).await? > 0 {
                put_items(&new.account, new.id, 1, items, connection).await?;
            }
            make_room(&new.account, new.id, bounds.account, connection).await?;
            Ok(ConversationWriteResult::Done)
        }

        async fn lengthen(
            new: &ConversationAppend,
            since: Timestamp,
            bounds: ConversationLimits,
            connection: &mut $connection,
        ) -> Result<ConversationWriteResult, sqlx::Error> {
            // The bytes that it may have before.
            let room = whole(bounds.conversation).saturating_sub(whole(new.size()));
            let first = loop {
                if let Some(first) = take_places(new, since, room, connection).await? {
                    break first;
                }
                // What was in the way may be gone by now. Then it stays so, and the next try succeeds.
                match read_standing(&new.account, new.id, since, new.claimant, new.at, connection).await? {
                    None => return Ok(ConversationWriteResult::Unknown),
                    Some(standing) if !standing.may_grow => return Ok(ConversationWriteResult::Busy),
                    Some(standing) if standing.bytes > room => return Ok(ConversationWriteResult::Full),
                    Some(_) => {}
                }
            };
            put_items(&new.account, new.id, first, &new.items, connection).await?;
            make_room(&new.account, new.id, bounds.account, connection).await?;
            Ok(ConversationWriteResult::Done)
        }

        /// The first of the places; none where something is in the way.
        async fn take_places(
            new: &ConversationAppend,
            since: Timestamp,
            room: i64,
            connection: &mut $connection,
        ) -> Result<Option<i64>, sqlx::Error> {
            let count = whole(new.items.len());
            let query = of(LENGTHEN, &new.account, new.id).bind(since.0);
            let query = query.bind(new.claimant.map(|claimant| claimant.as_bytes().to_vec())).bind(new.at.0);
            let query = query.bind(count).bind(whole(new.size())).bind(room);
            let query = query.bind(new.episode.as_ref().map(|episode| episode.as_str().to_owned()));
            let row = changed(query, connection).await?;
            row.map(|row| Ok(row.try_get::<i64, _>("next_place")? - count)).transpose()
        }

        async fn read_standing(
            account: &AccountId,
            id: ConversationId,
            since: Timestamp,
            claimant: Option<RequestId>,
            now: Timestamp,
            connection: &mut $connection,
        ) -> Result<Option<ConversationGrowth>, sqlx::Error> {
            let query = of(STANDING, account, id).bind(since.0);
            let query = query.bind(claimant.map(|claimant| claimant.as_bytes().to_vec())).bind(now.0);
            let Some(row) = query.fetch_optional(connection).await? else { return Ok(None) };
            // Whether nobody is the claimant of something is neither true nor false there.
            let may_grow = row.try_get::<Option<bool>, _>("may_grow")?.unwrap_or(false);
            Ok(Some(ConversationGrowth { bytes: row.try_get("bytes")?, may_grow }))
        }

        async fn remove(
            removal: ItemRemoval<'_>,
            connection: &mut $connection,
        ) -> Result<ConversationWriteResult, sqlx::Error> {
            let ItemRemoval { account, id, item, since, now } = removal;
            let standing = read_standing(account, id, since, None, now, connection).await?;
            let found = read_item(account, id, item, since, connection).await?;
            let (Some(standing), Some(found)) = (standing, found) else {
                return Ok(ConversationWriteResult::Unknown);
            };
            if !standing.may_grow {
                return Ok(ConversationWriteResult::Busy);
            }
            run(of(REMOVE, account, id).bind(whole(found.position)), connection).await?;
            run(of(SHRINK, account, id).bind(whole(found.item.size())).bind(now.0), connection).await?;
            Ok(ConversationWriteResult::Done)
        }
    };
}

pub(in crate::storage) use edit_statements;
