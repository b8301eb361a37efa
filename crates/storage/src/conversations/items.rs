//! The items of conversations, as rows of the table `conversation_items`.

use crate::sql::{SqlConnection, SqlRow, Statement, ToSqlValue, decode_error, sql, to_column};
use stint_sessions::agent::conversations::{ItemPage, PositionedItem, StoredItem};
use stint_types::units::{AccountId, ConversationId, Timestamp};

use super::records::of;

/// How many items are inserted by one statement.
const INSERT_MAX: usize = 1024;

/// Items of a conversation that was touched since $3.
const SELECT: &str = "\
    SELECT item.place, item.id, item.value FROM conversation_items item \
    JOIN conversations one ON one.account = item.account AND one.id = item.conversation \
    WHERE item.account = $1 AND item.conversation = $2 AND one.touched_at >= $3";

/// A page of a conversation's items.
pub(super) async fn read_items(
    account: &AccountId,
    id: ConversationId,
    page: ItemPage,
    since: Timestamp,
    connection: &mut dyn SqlConnection,
) -> Result<Vec<PositionedItem>, sqlx::Error> {
    let (range, end) = if page.newest_first {
        ("item.place < $4 ORDER BY item.place DESC", i64::MAX)
    } else {
        ("item.place > $4 ORDER BY item.place", i64::MIN)
    };
    let after = page.after.map_or(end, to_column);
    let find = of(sql("{} AND {} LIMIT $5", &[&SELECT, &range]), account, id).bind(since).bind(after);
    connection.fetch_all(find.bind(page.limit)).await?.iter().map(positioned_item).collect()
}

/// The first item of that id.
pub(super) async fn read_item(
    account: &AccountId,
    id: ConversationId,
    item: &str,
    since: Timestamp,
    connection: &mut dyn SqlConnection,
) -> Result<Option<PositionedItem>, sqlx::Error> {
    // The index has the first bytes of an id.
    let sql = sql(
        "{} AND substr(item.id, 1, 64) = substr($4, 1, 64) AND item.id = $4 ORDER BY item.place LIMIT 1",
        &[&SELECT],
    );
    let find = of(sql, account, id).bind(since).bind(item.as_bytes());
    connection.fetch_optional(find).await?.as_ref().map(positioned_item).transpose()
}

/// Inserts items at the places from `first` on, with few statements: others wait for the conversation meanwhile.
pub(super) async fn insert_items(
    account: &AccountId,
    id: ConversationId,
    first: i64,
    items: &[StoredItem],
    connection: &mut dyn SqlConnection,
) -> Result<(), sqlx::Error> {
    let placed: Vec<(i64, &StoredItem)> = (first..).zip(items).collect();
    for part in placed.chunks(INSERT_MAX) {
        let row = |&(place, item): &(i64, &StoredItem)| {
            [
                account.to_sql(),
                id.to_sql(),
                place.to_sql(),
                item.id.as_bytes().to_sql(),
                item.value.to_string().to_sql(),
                item.size().to_sql(),
            ]
        };
        let insert = Statement::with_rows(
            connection.dialect(),
            "INSERT INTO conversation_items (account, conversation, place, id, value, bytes) VALUES ",
            6,
            part.iter().flat_map(row).collect(),
            "",
        );
        connection.execute(insert).await?;
    }
    Ok(())
}

fn positioned_item(row: &SqlRow) -> Result<PositionedItem, sqlx::Error> {
    let id = String::from_utf8(row.get("id")?).map_err(decode_error)?;
    let item = StoredItem { id: id.into(), value: row.get::<String>("value")?.into() };
    Ok(PositionedItem { position: u64::try_from(row.get::<i64>("place")?).map_err(decode_error)?, item })
}
