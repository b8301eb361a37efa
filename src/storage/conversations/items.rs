//! What stands in conversations.

/// The functions that read it, for one database.
macro_rules! item_statements {
    ($connection:ty, $row:ty) => {
        const OLDEST_FIRST: &str = "\
            SELECT item.place, item.id, item.value FROM conversation_items item \
            JOIN conversations one ON one.account = item.account AND one.id = item.conversation \
            WHERE item.account = $1 AND item.conversation = $2 AND one.touched_at >= $3 AND item.place > $4 \
            ORDER BY item.place LIMIT $5";

        const NEWEST_FIRST: &str = "\
            SELECT item.place, item.id, item.value FROM conversation_items item \
            JOIN conversations one ON one.account = item.account AND one.id = item.conversation \
            WHERE item.account = $1 AND item.conversation = $2 AND one.touched_at >= $3 AND item.place < $4 \
            ORDER BY item.place DESC LIMIT $5";

        /// By the beginning of its id first: that much of it the index has.
        const ITEM: &str = "\
            SELECT item.place, item.id, item.value FROM conversation_items item \
            JOIN conversations one ON one.account = item.account AND one.id = item.conversation \
            WHERE item.account = $1 AND item.conversation = $2 AND one.touched_at >= $3 \
              AND substr(item.id, 1, 64) = substr($4, 1, 64) AND item.id = $4 \
            ORDER BY item.place LIMIT 1";

        async fn read_items(
            account: &AccountId,
            id: ConversationId,
            page: ItemPage,
            since: Timestamp,
            connection: &mut $connection,
        ) -> Result<Vec<PositionedItem>, sqlx::Error> {
            let (statement, end) = match page.newest_first {
                true => (NEWEST_FIRST, i64::MAX),
                false => (OLDEST_FIRST, i64::MIN),
            };
            let query = of(statement, account, id).bind(since.0).bind(page.after.map_or(end, whole));
            query.bind(i64::from(page.limit)).fetch_all(connection).await?.iter().map(placed).collect()
        }

        async fn read_item(
            account: &AccountId,
            id: ConversationId,
            item: &str,
            since: Timestamp,
            connection: &mut $connection,
        ) -> Result<Option<PositionedItem>, sqlx::Error> {
            let query = of(ITEM, account, id).bind(since.0).bind(item.as_bytes().to_vec());
            query.fetch_optional(connection).await?.as_ref().map(placed).transpose()
        }

        fn placed(row: &$row) -> Result<PositionedItem, sqlx::Error> {
            let id = String::from_utf8(row.try_get("id")?).map_err(decode)?;
            let item = StoredItem { id: id.into(), value: row.try_get::<String, _>("value")?.into() };
            Ok(PositionedItem { position: u64::try_from(row.try_get::<i64, _>("place")?).map_err(decode)?, item })
        }
    };
}

pub(in crate::storage) use item_statements;
