//! Inserting journal entries. The rows of each table go in with one statement, their columns as arrays.

use sqlx::{PgConnection, Postgres};

use crate::journal::{
    Cell, EXTENSIONS, METERINGS, RESERVATIONS, RESOLUTION_PARTS, RESOLUTIONS, SortedEntries, Table,
};
use crate::sql::{SqlText, sql};
use stint_ledger::JournalEntry;

use super::text::clean;

/// A column that is the same in all rows.
struct ConstantColumn {
    name: &'static str,
    value: Option<i64>,
}

/// Inserts all of these, where they are not there yet, as those of the replica with this epoch.
pub(super) async fn insert(
    connection: &mut PgConnection,
    epoch: Option<i64>,
    entries: &[JournalEntry],
) -> Result<(), sqlx::Error> {
    let sorted = SortedEntries::of(entries);
    let epoch = ConstantColumn { name: "epoch", value: epoch };
    insert_rows(&RESERVATIONS, Some(epoch), &sorted.dispatched, connection).await?;
    insert_rows(&EXTENSIONS, None, &sorted.extended, connection).await?;
    insert_rows(&METERINGS, None, &sorted.metered, connection).await?;
    insert_rows(&RESOLUTION_PARTS, None, &sorted.parts.iter().collect::<Vec<_>>(), connection).await?;
    insert_rows(&RESOLUTIONS, None, &sorted.resolved, connection).await
}

async fn insert_rows<E: Sync>(
    table: &Table<E>,
    constant: Option<ConstantColumn>,
    entries: &[&E],
    connection: &mut PgConnection,
) -> Result<(), sqlx::Error> {
    if entries.is_empty() {
        return Ok(());
    }
    let sql = insertion(table, constant.as_ref().map(|column| column.name));
    let mut query = sqlx::query(sql.into_driver::<Postgres>());
    for column in table.columns {
        query = match column.cell {
            Cell::Int(value) => query.bind(entries.iter().map(|entry| value(entry)).collect::<Vec<_>>()),
            Cell::Bytes(value) => query.bind(entries.iter().map(|entry| value(entry)).collect::<Vec<_>>()),
            Cell::Text(value) => {
                let texts = entries.iter().map(|entry| value(entry).map(|text| clean(&text)));
                query.bind(texts.collect::<Vec<_>>())
            }
        };
    }
    if let Some(column) = constant {
        query = query.bind(column.value);
    }
    query.execute(connection).await.map(drop)
}

/// Its text depends on the table alone, so that connections keep it prepared.
fn insertion<E>(table: &Table<E>, constant: Option<&'static str>) -> SqlText {
    let Table { name, columns, is_for_unresolved } = table;
    let names = table.column_names();
    let kinds = columns.iter().map(|column| match column.cell {
        Cell::Int(_) => "bigint",
        Cell::Text(_) => "text",
        Cell::Bytes(_) => "bytea",
    });
    let arrays = kinds.enumerate().map(|(place, kind)| sql("${}::{}[]", &[&(place + 1), &kind]));
    let arrays = SqlText::joined(arrays, ", ");
    let (constant_name, constant_value) = constant.map_or_else(Default::default, |constant| {
        (sql("{}, ", &[&constant]), sql("${}, ", &[&(columns.len() + 1)]))
    });
    let condition = if *is_for_unresolved {
        "WHERE NOT EXISTS (SELECT 1 FROM resolutions r WHERE r.reservation = new.reservation) "
    } else {
        ""
    };
    sql(
        "INSERT INTO {} ({}{}) SELECT {}new.* FROM UNNEST({}) AS new ({}) {}ON CONFLICT DO NOTHING",
        &[name, &constant_name, &names, &constant_value, &arrays, &names, &condition],
    )
}
