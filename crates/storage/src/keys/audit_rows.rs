//! The audit log, as rows.

use crate::sql::{SqlConnection, SqlRow, Statement, sql};
use stint_types::tenant::{AuditEntry, AuditHash, AuditRecord, chained};

const COLUMNS: &str = "number, changed_at, who, action, subject, old_value, new_value, hash";

/// Taken in a transaction, it makes other writers of the log wait for the transaction's end.
const TAKE_PLACES: &str = "\
    UPDATE admin_changes_head SET number = number + $1 RETURNING number - $1 AS number, hash";

const SET_HEAD: &str = "UPDATE admin_changes_head SET hash = $1";

/// Appends entries, in a transaction.
pub(super) async fn append(
    entries: &[AuditEntry],
    connection: &mut dyn SqlConnection,
) -> Result<(), sqlx::Error> {
    if entries.is_empty() {
        return Ok(());
    }
    let take = Statement::new(TAKE_PLACES).bind(entries.len());
    let head = connection.fetch_changed(take).await?.ok_or(sqlx::Error::RowNotFound)?;
    let records = chained(head.number("number")?, AuditHash(head.bytes("hash")?), entries);
    for AuditRecord { number, entry, hash } in &records {
        let put = sql("INSERT INTO admin_changes ({}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)", &[&COLUMNS]);
        let put = Statement::new(put).bind(*number).bind(entry.at).bind(&*entry.who).bind(&*entry.action);
        let put = put.bind(&*entry.subject).bind(entry.before.clone()).bind(entry.after.clone());
        connection.execute(put.bind(&hash.0[..])).await?;
    }
    if let Some(last) = records.last() {
        connection.execute(Statement::new(SET_HEAD).bind(&last.hash.0[..])).await?;
    }
    Ok(())
}

/// So many of the latest entries before a number, the newest first.
pub(super) async fn read_latest(
    before: Option<u64>,
    most: u32,
    connection: &mut dyn SqlConnection,
) -> Result<Vec<AuditRecord>, sqlx::Error> {
    let find =
        sql("SELECT {} FROM admin_changes WHERE number < $1 ORDER BY number DESC LIMIT $2", &[&COLUMNS]);
    let find = Statement::new(find).bind(before.unwrap_or(u64::MAX)).bind(most);
    connection.fetch_all(find).await?.iter().map(record).collect()
}

/// So many entries after a number, the oldest first.
pub(crate) async fn read_after(
    after: u64,
    most: u32,
    connection: &mut dyn SqlConnection,
) -> Result<Vec<AuditRecord>, sqlx::Error> {
    let find = sql("SELECT {} FROM admin_changes WHERE number > $1 ORDER BY number LIMIT $2", &[&COLUMNS]);
    let find = Statement::new(find).bind(after).bind(most);
    connection.fetch_all(find).await?.iter().map(record).collect()
}

/// How many entries there were ever, and the end of their chain.
pub(crate) async fn read_head(connection: &mut dyn SqlConnection) -> Result<(u64, AuditHash), sqlx::Error> {
    let head = connection.fetch_one(Statement::new("SELECT number, hash FROM admin_changes_head")).await?;
    Ok((head.number("number")?, AuditHash(head.bytes("hash")?)))
}

fn record(row: &SqlRow) -> Result<AuditRecord, sqlx::Error> {
    let text = |column| row.get::<&str>(column).map(str::to_owned);
    let optional = |column| Ok::<_, sqlx::Error>(row.get::<Option<&str>>(column)?.map(str::to_owned));
    Ok(AuditRecord {
        number: row.number("number")?,
        entry: AuditEntry {
            at: row.time("changed_at")?,
            who: text("who")?,
            action: text("action")?,
            subject: text("subject")?,
            before: optional("old_value")?,
            after: optional("new_value")?,
        },
        hash: AuditHash(row.bytes("hash")?),
    })
}
